"""jitney run attention on requests as a server has them, against the same requests one by one."""
import math
import os
import random
import unittest

import support
from serving import Requests
from support import read_safetensors, safetensors

# Option sets: flags, and tensors by name.
OPTIONS = {
    "none": ([], ()),
    "causal": (["--causal"], ()),
    "window": (["--causal", "--window-left", "3"], ()),
    "both sides": (["--window-left", "2", "--window-right", "1"], ()),
    "softcap": (["--softcap", "1.5", "--scale", "0.5"], ()),
    "alibi and sinks": (["--causal"], ("alibi_slopes", "sinks")),
    "all": (
        ["--causal", "--window-left", "4", "--softcap", "2", "--scale", "0.75"],
        ("alibi_slopes", "sinks"),
    ),
}


def by_hand(requests, request, flags, extras):
    """out and lse of one request in double precision, rows before heads."""
    options = dict(zip(flags, flags[1:]))
    causal = "--causal" in flags
    left, right = int(options.get("--window-left", -1)), int(options.get("--window-right", -1))
    cap = float(options.get("--softcap", 0))
    head_dim = requests.head_dim
    scale = float(options.get("--scale", 1 / math.sqrt(head_dim)))
    kv_len, q_len = requests.kv_lens[request], requests.q_lens[request]
    out, lse = [], []
    for i, query in enumerate(requests.q[request]):
        place = i + kv_len - q_len
        for head in range(requests.heads):
            kv_head = head // (requests.heads // requests.kv_heads)
            part = slice(kv_head * head_dim, (kv_head + 1) * head_dim)
            scores, values = [], []
            for j, key in enumerate(requests.k[request]):
                if (causal and j > place) or (left >= 0 and j < place - left):
                    continue
                if right >= 0 and j > place + right:
                    continue
                mine = query[head * head_dim : (head + 1) * head_dim]
                score = scale * sum(a * b for a, b in zip(mine, key[part]))
                if cap:
                    score = cap * math.tanh(score / cap)
                if "alibi_slopes" in extras:
                    score -= requests.alibi_slopes[head] * abs(place - j)
                scores.append(score)
                values.append(requests.v[request][j][part])
            if not scores:
                out += [0.0] * head_dim
                lse.append(-math.inf)
                continue
            weights = [math.exp(score) for score in scores]
            total = sum(weights) + (math.exp(requests.sinks[head]) if "sinks" in extras else 0)
            out += [sum(w * v[d] for w, v in zip(weights, values)) / total for d in range(head_dim)]
            lse.append(math.log(total))
    return out, lse


class Serving(support.CommandTest):
    def attention(self, tensors, *flags, extras=(), requests=None):
        """The tensors that come out."""
        tensors = dict(tensors)
        for name in extras:
            tensors[name] = ("F32", [requests.heads], getattr(requests, name))
        source = self.write("in", safetensors(tensors))
        outcome = self.succeed(
            "run", "attention", source, "-o", self.path("out"), "--lse", "--json", *flags
        )
        self.exact = outcome.json["backend"] == "reference"
        return read_safetensors(self.path("out"))

    def one_by_one(self, requests, flags, extras):
        """out and lse of all requests, [rows, heads, ...], from dense calls of one request each."""
        out, lse = [], []
        for request, q_len in enumerate(requests.q_lens):
            result = self.attention(
                requests.alone(request), *flags, extras=extras, requests=requests
            )
            out += result["out"][2]
            by_head = result["lse"][2]
            lse += [by_head[head * q_len + i] for i in range(q_len) for head in range(requests.heads)]
            wanted, wanted_lse = by_hand(requests, request, flags, extras)
            self.assert_close(result["out"][2], wanted, 1e-4)
            self.assert_close(lse[len(lse) - len(wanted_lse) :], wanted_lse, 1e-4)
        return out, lse

    def assert_close(self, got, wanted, tolerance):
        self.assertEqual(len(got), len(wanted))
        for a, b in zip(got, wanted):
            self.assertTrue(a == b or abs(a - b) <= tolerance, (a, b))

    def assert_same(self, got, wanted):
        # The reference adds in the same order whatever the form; kernels divide the keys anew.
        self.assert_close(got, wanted, 0 if self.exact else 1e-5)

    def test_every_form_of_ragged_requests(self):
        requests = Requests(q_lens=[3, 0, 1, 6], kv_lens=[7, 5, 0, 4])
        for options, (flags, extras) in OPTIONS.items():
            out, lse = self.one_by_one(requests, flags, extras)
            # Rows that belong to no request come out as zeros.
            out += [0.0] * (2 * requests.heads * requests.head_dim)
            lse += [0.0] * (2 * requests.heads)
            for form, keys in requests.forms().items():
                with self.subTest(options=options, form=form):
                    result = self.attention(
                        {**requests.ragged_queries(), **keys}, *flags, extras=extras, requests=requests
                    )
                    self.assertEqual(sorted(result), ["lse", "out"])
                    self.assertEqual(result["out"][1], [12, 4, 8])
                    self.assertEqual(result["lse"][1], [12, 4])
                    self.assert_same(result["out"][2], out)
                    self.assert_same(result["lse"][2], lse)

    def test_every_form_of_equal_queries(self):
        requests = Requests(q_lens=[2, 2, 2], kv_lens=[5, 1, 19], seed=2)
        for options in ("none", "all"):
            flags, extras = OPTIONS[options]
            out, lse = self.one_by_one(requests, flags, extras)
            for form, keys in requests.forms().items():
                with self.subTest(options=options, form=form):
                    result = self.attention(
                        {**requests.equal_queries(), **keys}, *flags, "--max-kv-len", "19",
                        extras=extras, requests=requests,
                    )
                    self.assert_same(result["out"][2], out)
                    shape = result["lse"][1]
                    self.assertEqual(shape, [3, 4, 2])
                    by_rows = [
                        result["lse"][2][(b * 4 + head) * 2 + i]
                        for b in range(3) for i in range(2) for head in range(4)
                    ]
                    self.assert_same(by_rows, lse)

    def test_a_mask_over_pages(self):
        requests = Requests(q_lens=[2, 3], kv_lens=[6, 4], seed=3)
        source = random.Random(3)
        mask = [[[source.random() < 0.6 for _ in range(7)] for _ in range(3)] for _ in range(2)]
        flat = [keep for rows in mask for row in rows for keep in row]
        tensors = {**requests.ragged_queries(), **requests.block_table(3, requests.lens())}
        got = self.attention({**tensors, "mask": ("BOOL", [2, 3, 7], flat)})
        wanted = []
        for request in range(2):
            q_len, kv_len = requests.q_lens[request], requests.kv_lens[request]
            mine = [keep for row in mask[request][:q_len] for keep in row[:kv_len]]
            alone = {**requests.alone(request), "mask": ("BOOL", [1, q_len, kv_len], mine)}
            wanted += self.attention(alone)["out"][2]
        self.assert_same(got["out"][2][: len(wanted)], wanted)

    def test_indices_of_64_bits(self):
        requests = Requests(q_lens=[3, 2], kv_lens=[7, 5], seed=4)
        tensors = {**requests.ragged_queries(), **requests.page_list(4)}
        wanted = self.attention(tensors)
        wide = {
            name: ("I64", tensor[1], tensor[2]) if tensor[0] == "I32" else tensor
            for name, tensor in tensors.items()
        }
        self.assertEqual(self.attention(wide), wanted)

    def test_appended_keys(self):
        """What the call writes, and that it attends to it."""
        requests = Requests(q_lens=[2, 2, 2], kv_lens=[7, 2, 1], seed=5)
        out, _ = self.one_by_one(requests, ["--causal"], ())
        new_len = 2  # more than the last request has keys: its first new row has no place
        new = {}
        for name, rows in (("new_k", requests.k), ("new_v", requests.v)):
            last = []
            for request in rows:
                mine = request[-new_len:]
                last += [requests.nothing()] * (new_len - len(mine)) + mine
            new[name] = requests.tensor([3, new_len, requests.kv_heads], last)
        for form, keys in requests.forms().items():
            pools = ("k_pool", "v_pool") if "k_pool" in keys else ("k", "v")
            with self.subTest(form=form):
                before = {name: list(keys[name][2]) for name in pools}
                emptied = dict(keys)
                for name, rows in zip(pools, (requests.k, requests.v)):
                    values = list(keys[name][2])
                    for request in rows:
                        for row in request[-new_len:]:
                            at = self.place_of(values, row)
                            values[at : at + len(row)] = requests.nothing()
                    emptied[name] = (*keys[name][:2], values)
                result = self.attention(
                    {**requests.equal_queries(), **emptied, **new}, "--causal"
                )
                self.assertEqual(sorted(result), sorted(["out", "lse", *pools]))
                self.assert_same(result["out"][2], out)
                for name in pools:
                    self.assertEqual(result[name][:2], keys[name][:2])
                    for got, wanted in zip(result[name][2], before[name]):
                        self.assertTrue(got == wanted or (math.isnan(got) and math.isnan(wanted)))

    def place_of(self, values, row):
        for at in range(0, len(values), len(row)):
            if values[at : at + len(row)] == row:
                return at
        raise AssertionError("the row is not there")

    def refuse(self, words, tensors, *flags):
        source = self.write("in", safetensors(tensors))
        with self.subTest(words=words):
            self.fail_with(2, words, "run", "attention", source, "-o", self.path("none"), *flags)

    def test_a_logits_function_needs_a_gpu(self):
        requests = Requests(q_lens=[2, 2], kv_lens=[9, 9])
        source = self.write("in", safetensors(requests.alone(0)))
        call = ["run", "attention", source, "-o", self.path("out"), "--logits"]
        self.fail_with(1, ["logits function", "GPU"], *call, self.write("f", "score"), gpu=False)
        for text, words in (
            ("", ["empty"]),
            ("score)", ["line 1", "'('"]),
            ("param float slope\nscore", ['no tensor "slope"']),
            ("param float mask\nscore", ["'mask'", "rename"]),
        ):
            self.fail_with(2, words, *call, self.write("f", text), gpu=False)
        self.fail_with(1, ["absent"], *call, self.path("absent"), gpu=False)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_values_that_cannot_be_meant(self):
        """Whatever backend would have run it: the sentence names tensor, place and value."""
        requests = Requests(q_lens=[3, 2], kv_lens=[7, 5], seed=6)

        def with_value(tensors, name, at, value):
            kind, shape, values = tensors[name]
            values = list(values)
            values[at] = value
            return {**requests.ragged_queries(), **tensors, name: (kind, shape, values)}

        table = requests.block_table(4, requests.lens())  # 4 columns, 6 pages
        self.refuse(["block_table[1, 0] is 6", "6 pages"], with_value(table, "block_table", 4, 6))
        self.refuse(["block_table[0, 1] is -1"], with_value(table, "block_table", 1, -1))
        self.refuse(["kv_lens[1] is 17", "block_table", "16"], with_value(table, "kv_lens", 1, 17))
        self.refuse(["kv_lens[0] is -1"], with_value(table, "kv_lens", 0, -1))

        by_indptr = requests.block_table(4, requests.indptr())
        self.refuse(["kv_indptr[2] is 6", "7"], with_value(by_indptr, "kv_indptr", 2, 6))
        self.refuse(["kv_indptr[0] is -3"], with_value(by_indptr, "kv_indptr", 0, -3))
        self.refuse(["kv_indptr[2] is 99", "92 keys"], with_value(by_indptr, "kv_indptr", 2, 99))

        tokens = requests.token_table(requests.lens())  # 3 rows of use to nobody, 8 columns, 14 slots
        self.refuse(["req_to_token[2, 0] is 14", "14 slots"], with_value(tokens, "req_to_token", 16, 14))
        self.refuse(["req_pool_indices[1] is 4"], with_value(tokens, "req_pool_indices", 1, 4))
        self.refuse(["req_pool_indices[0] is -1"], with_value(tokens, "req_pool_indices", 0, -1))
        self.refuse(["kv_lens[0] is 9", "req_to_token"], with_value(tokens, "kv_lens", 0, 9))

        pages = requests.page_list(4)
        self.refuse(["last_page_len[0] is 5", "4"], with_value(pages, "last_page_len", 0, 5))
        self.refuse(["last_page_len[1] is 0"], with_value(pages, "last_page_len", 1, 0))
        self.refuse(["kv_page_indptr[1] is 6"], with_value(pages, "kv_page_indptr", 1, 6))
        self.refuse(["kv_page_indptr[2] is 1"], with_value(pages, "kv_page_indptr", 2, 1))
        self.refuse(["kv_page_indices[3] is 77"], with_value(pages, "kv_page_indices", 3, 77))

        ragged = {**requests.ragged_queries(), **requests.ragged_keys()}
        self.refuse(["kv_indptr[2] is 13", "12"], with_value(ragged, "kv_indptr", 2, 13))
        self.refuse(["qo_indptr[1] is 6", "5"], {
            **ragged, "qo_indptr": ("I32", [3], [0, 6, 5])
        } | {"q": requests.tensor([5, 4], requests.q[0] + requests.q[1])})
        padded = requests.padded_keys()
        self.refuse(["kv_lens[0] is 9", "8 keys"], with_value(padded, "kv_lens", 0, 9))

        wide = with_value(pages, "last_page_len", 1, 5_000_000_000)
        wide["last_page_len"] = ("I64", *wide["last_page_len"][1:])
        self.refuse(["last_page_len[1] is 5000000000", "32 bits"], wide)
        wide = with_value(table, "block_table", 5, -(2**31) - 1)
        wide["block_table"] = ("I64", *wide["block_table"][1:])
        self.refuse(["block_table[1, 1] is -2147483649"], wide)

    def test_two_requests_that_append_to_one_place(self):
        requests = Requests(q_lens=[1, 1], kv_lens=[5, 5], seed=7)
        tensors = {**requests.equal_queries(), **requests.block_table(4, requests.lens())}
        kind, shape, pages = tensors["block_table"]
        width = shape[1]
        pages = pages[:width] + [pages[width], pages[1]] + pages[width + 2 :]
        new = requests.tensor([2, 1, 2], requests.rows(2, 2))
        self.refuse(
            ["requests 0 and 1 both append", f"page {pages[1]}"],
            {**tensors, "block_table": (kind, shape, pages), "new_k": new, "new_v": new},
        )

    def test_tensors_that_do_not_fit(self):
        requests = Requests(q_lens=[2, 2], kv_lens=[7, 5], seed=8)
        table = {**requests.equal_queries(), **requests.block_table(4, requests.lens())}

        def without(tensors, *names):
            return {name: tensor for name, tensor in tensors.items() if name not in names}

        self.refuse(["no tensor \"v\", nor \"v_pool\""], without(table, "v_pool"))
        self.refuse(["nothing that names its pages"], without(table, "block_table"))
        self.refuse(["both k_pool and k"], {**table, "k": table["k_pool"]})
        self.refuse(["kv_lens or in kv_indptr", "neither"], without(table, "kv_lens"))
        self.refuse(["kv_lens or in kv_indptr", "both"], {**table, **requests.indptr()})
        pages = {**requests.equal_queries(), **requests.page_list(4)}
        self.refuse(["come together"], without(pages, "last_page_len"))
        self.refuse(["come together"], without(pages, "kv_page_indptr"))
        self.refuse(["block_table and kv_page_indices"], {**table, **pages})
        self.refuse(["leave kv_lens out"], {**pages, **requests.lens()})
        ragged = {**requests.ragged_queries(), **requests.ragged_keys()}
        self.refuse(["q has 4 dimensions", "3: [total_q"], {**ragged, **requests.equal_queries()})
        self.refuse(["q has 3 dimensions", "4: [batch"], without(ragged, "qo_indptr"))
        self.refuse(["kv_indptr", "int32"], {**ragged, "kv_indptr": ("F32", [3], [0.0, 7.0, 12.0])})
        self.refuse(["kv_lens has 3"], {**table, "kv_lens": ("I32", [3], [1, 1, 1])})
        self.refuse(["alibi_slopes"], {**table, "alibi_slopes": ("F32", [2], [1.0, 1.0])})
        self.refuse(["sinks", "fp32"], {**table, "sinks": ("BF16", [4], [0] * 4)})
        new = requests.tensor([2, 1, 2], requests.rows(2, 2))
        self.refuse(["new_v"], {**table, "new_k": new})
        self.refuse(["new_k", "ragged"], {**ragged, "new_k": new, "new_v": new})
        turned = requests.tensor([1, 2, 2], requests.rows(2, 2))
        self.refuse(["new_k has the shape"], {**table, "new_k": turned, "new_v": new})
        self.refuse(["page size of 0"], {
            **table, "k_pool": ("F32", [6, 0, 2, 8], []), "v_pool": ("F32", [6, 0, 2, 8], [])
        })

    def test_options_that_cannot_be_meant(self):
        requests = Requests(q_lens=[2], kv_lens=[3], seed=9)
        source = self.write("in", safetensors(requests.alone(0)))
        for flags, words in (
            (["--window-left", "-2"], ["--window-left", "-2"]),
            (["--window-right", "x"], ["--window-right", "x"]),
            (["--window-left", "3000000000"], ["--window-left"]),
            (["--softcap", "0"], ['--softcap is "0"']),
            (["--softcap", "-3"], ['--softcap is "-3"']),
            (["--softcap", "inf"], ["--softcap"]),
            (["--max-kv-len", "-1"], ["--max-kv-len"]),
        ):
            with self.subTest(flags=flags):
                self.fail_with(2, words, "run", "attention", source, "-o", self.path("none"), *flags)

    def test_empty_batches(self):
        requests = Requests(q_lens=[0, 0], kv_lens=[3, 4], seed=10)
        for keys in (requests.ragged_keys(), requests.block_table(2, requests.lens())):
            result = self.attention({**requests.ragged_queries(), **keys})
            self.assertEqual(set(result["out"][2]), {0.0})
        nobody = {
            "q": ("F32", [0, 4, 8], []), "qo_indptr": ("I32", [1], [0]),
            "k": ("F32", [0, 2, 8], []), "v": ("F32", [0, 2, 8], []), "kv_indptr": ("I32", [1], [0]),
        }
        self.assertEqual(self.attention(nobody)["out"], ("F32", [0, 4, 8], []))


if __name__ == "__main__":
    unittest.main()
