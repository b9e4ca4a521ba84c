"""Attention as a server asks for it: requests of several lengths, and the files that hold them.

Numbers are fp32, which the files carry exactly; what belongs to no request is NaN, and what a table
holds behind the last page of a request is no page at all.
"""
import math
import random

JUNK = 2**31 - 1


class Requests:
    """q, k and v of each request: rows of heads of numbers."""

    def __init__(self, q_lens, kv_lens, seed=1, heads=4, kv_heads=2, head_dim=8):
        self.random = random.Random(seed)
        self.q_lens, self.kv_lens = list(q_lens), list(kv_lens)
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim
        self.q = [self.rows(length, heads) for length in q_lens]
        self.k = [self.rows(length, kv_heads) for length in kv_lens]
        self.v = [self.rows(length, kv_heads) for length in kv_lens]
        self.alibi_slopes = [2.0**-i for i in range(heads)]
        self.sinks = [0.5 * i - 0.5 for i in range(heads)]

    def row(self, heads):
        return [self.random.randrange(-2048, 2048) / 1024 for _ in range(heads * self.head_dim)]

    def rows(self, length, heads):
        return [self.row(heads) for _ in range(length)]

    def tensor(self, shape, rows):
        return ("F32", [*shape, self.head_dim], [value for row in rows for value in row])

    def nothing(self):
        return [math.nan] * (self.kv_heads * self.head_dim)

    # The queries.

    def equal_queries(self):
        shape = [len(self.q), self.q_lens[0], self.heads]
        return {"q": self.tensor(shape, [row for rows in self.q for row in rows])}

    def ragged_queries(self):
        rows = [row for rows in self.q for row in rows]
        rows += [[math.nan] * len(self.row(self.heads))] * 2
        return {
            "q": self.tensor([len(rows), self.heads], rows),
            "qo_indptr": ("I32", [len(self.q) + 1], sums(self.q_lens)),
        }

    # The keys and values.

    def lens(self):
        return {"kv_lens": ("I32", [len(self.kv_lens)], self.kv_lens)}

    def indptr(self):
        return {"kv_indptr": ("I32", [len(self.kv_lens) + 1], sums(self.kv_lens))}

    def padded_keys(self):
        longest = max(self.kv_lens) + 1
        shape = [len(self.k), longest, self.kv_heads]

        def padded(requests):
            return [row for rows in requests for row in rows + [self.nothing()] * (longest - len(rows))]

        return {
            "k": self.tensor(shape, padded(self.k)), "v": self.tensor(shape, padded(self.v)),
            **self.lens(),
        }

    def ragged_keys(self):
        shape = [sum(self.kv_lens), self.kv_heads]
        return {
            "k": self.tensor(shape, [row for rows in self.k for row in rows]),
            "v": self.tensor(shape, [row for rows in self.v for row in rows]),
            **self.indptr(),
        }

    def pools(self, page_size, flat=False):
        """The pools, and the pages of each request in them, in random order."""
        pages = [list(range(-(-length // page_size))) for length in self.kv_lens]
        free = list(range(sum(map(len, pages)) + 2))
        self.random.shuffle(free)
        pages = [[free.pop() for _ in each] for each in pages]
        total = sum(map(len, pages)) + 2
        pools = {}
        for name, requests in (("k_pool", self.k), ("v_pool", self.v)):
            rows = [self.nothing() for _ in range(total * page_size)]
            for request, values in enumerate(requests):
                for i, row in enumerate(values):
                    rows[pages[request][i // page_size] * page_size + i % page_size] = row
            shape = [total, self.kv_heads] if flat else [total, page_size, self.kv_heads]
            pools[name] = self.tensor(shape, rows)
        return pools, pages

    def block_table(self, page_size, lengths):
        pools, pages = self.pools(page_size)
        width = max(map(len, pages)) + 2
        table = [page for row in pages for page in row + [JUNK] * (width - len(row))]
        return {**pools, **lengths, "block_table": ("I32", [len(pages), width], table)}

    def token_table(self, lengths):
        pools, slots = self.pools(1, flat=True)
        width = max(map(len, slots)) + 1
        # Rows in the order of the pool of requests: backwards, with one of nobody's between.
        rows = []
        for row in reversed(slots):
            rows += [row + [JUNK] * (width - len(row)), [JUNK] * width]
        indices = [2 * (len(slots) - 1 - i) for i in range(len(slots))]
        return {
            **pools, **lengths,
            "req_to_token": ("I32", [len(rows), width], [slot for row in rows for slot in row]),
            "req_pool_indices": ("I32", [len(slots)], indices),
        }

    def page_list(self, page_size):
        pools, pages = self.pools(page_size)
        last = [(length - 1) % page_size + 1 if length else JUNK for length in self.kv_lens]
        return {
            **pools,
            "kv_page_indptr": ("I32", [len(pages) + 1], sums(map(len, pages))),
            "kv_page_indices": (
                "I32", [sum(map(len, pages)) + 1], [page for row in pages for page in row] + [JUNK],
            ),
            "last_page_len": ("I32", [len(pages)], last),
        }

    def forms(self):
        """name -> the tensors of the keys in that form."""
        return {
            "padded": self.padded_keys(),
            "ragged": self.ragged_keys(),
            "token table and lengths": self.token_table(self.lens()),
            "token table and indptr": self.token_table(self.indptr()),
            "pages of 1": self.block_table(1, self.lens()),
            "pages of 3": self.block_table(3, self.lens()),
            "pages of 16 and indptr": self.block_table(16, self.indptr()),
            "list of pages of 4": self.page_list(4),
        }

    def alone(self, request):
        """The same request as a dense batch of one."""
        return {
            "q": self.tensor([1, self.q_lens[request], self.heads], self.q[request]),
            "k": self.tensor([1, self.kv_lens[request], self.kv_heads], self.k[request]),
            "v": self.tensor([1, self.kv_lens[request], self.kv_heads], self.v[request]),
        }


def sums(lengths):
    total, result = 0, [0]
    for length in lengths:
        total += length
        result.append(total)
    return result
