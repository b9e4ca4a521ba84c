#!/usr/bin/env python3
"""Makes minilm_layer.safetensors: what one attention layer of a real encoder is given.

Reads the unpacked all-MiniLM-L6-v2 model (its config.json, vocab.txt and model.safetensors), runs
the sentences below through the embeddings and the layers before LAYER in double precision, and
writes that layer's q, k, v in bf16 beside the mask of the padded batch; and, in a file of its own,
the attention of exactly those bf16 values, computed in double precision.

    python3 make_minilm_layer.py path/to/model [--layer 3] [--out DIRECTORY]
"""
import argparse
import json
import math
import pathlib
import re
import struct

import numpy as np

# Lewis Carroll, Alice's Adventures in Wonderland (1865), in the public domain. The lengths differ
# so that the padding, and with it the mask, matters.
SENTENCES = [
    "Alice was beginning to get very tired of sitting by her sister on the bank, and of having "
    "nothing to do.",
    "Down, down, down.",
    "Oh dear! Oh dear! I shall be late!",
    "There was nothing so very remarkable in that; nor did Alice think it so very much out of the "
    "way to hear the Rabbit.",
]


def read_safetensors(path):
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
    return tensors


def write_safetensors(path, tensors, metadata):
    """tensors: name -> (dtype text, array); arrays are written in this order."""
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    for name, (dtype, array) in tensors.items():
        blob = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": dtype,
            "shape": list(array.shape),
            "data_offsets": [offset, offset + len(blob)],
        }
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def tokenize(text, vocabulary):
    """Lower case, words and punctuation apart, each word into its longest known pieces."""
    ids = [vocabulary["[CLS]"]]
    for word in re.findall(r"\w+|[^\w\s]", text.lower()):
        begin = 0
        while begin < len(word):
            for end in range(len(word), begin, -1):
                piece = ("##" if begin else "") + word[begin:end]
                if piece in vocabulary:
                    break
            else:
                raise ValueError(f"no piece of the vocabulary begins {word[begin:]!r}")
            ids.append(vocabulary[piece])
            begin = end
    return ids + [vocabulary["[SEP]"]]


def to_bf16(x):
    """The bits of x rounded to bf16, to nearest, ties to even."""
    bits = x.astype("<f4").view("<u4").astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def from_bf16(bits):
    return (bits.astype("<u4") << 16).view("<f4").astype(np.float64)


def attention(q, k, v, mask):
    """[batch, length, heads, head_dim] in, the same out; mask [batch, kv], true = keep."""
    scores = np.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(q.shape[-1])
    scores = np.where(mask[:, None, None, :], scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("bhij,bjhd->bihd", weights, v)


class Encoder:
    def __init__(self, directory):
        self.config = json.loads((directory / "config.json").read_text())
        words = (directory / "vocab.txt").read_text(encoding="utf-8").split("\n")
        self.vocabulary = {word: index for index, word in enumerate(words)}
        self.weights = read_safetensors(directory / "model.safetensors")

    def linear(self, name, x):
        weight = self.weights[f"{name}.weight"].astype(np.float64)
        return x @ weight.T + self.weights[f"{name}.bias"]

    def layer_norm(self, name, x):
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.config["layer_norm_eps"])
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def batch(self, sentences):
        rows = [tokenize(sentence, self.vocabulary) for sentence in sentences]
        ids = np.full((len(rows), max(map(len, rows))), self.vocabulary["[PAD]"])
        mask = np.zeros(ids.shape, bool)
        for row, (line, keep) in zip(rows, zip(ids, mask)):
            line[: len(row)] = row
            keep[: len(row)] = True
        return ids, mask

    def embed(self, ids):
        table = {
            kind: self.weights[f"embeddings.{kind}_embeddings.weight"]
            for kind in ("word", "position", "token_type")
        }
        x = table["word"][ids].astype(np.float64)
        x += table["position"][: ids.shape[1]] + table["token_type"][0]
        return self.layer_norm("embeddings.LayerNorm", x)

    def qkv(self, layer, x):
        heads = self.config["num_attention_heads"]
        return [
            self.linear(f"encoder.layer.{layer}.attention.self.{name}", x).reshape(
                *x.shape[:2], heads, -1
            )
            for name in ("query", "key", "value")
        ]

    def layer(self, layer, x, mask):
        prefix = f"encoder.layer.{layer}"
        context = attention(*self.qkv(layer, x), mask).reshape(x.shape)
        x = self.layer_norm(
            f"{prefix}.attention.output.LayerNorm",
            x + self.linear(f"{prefix}.attention.output.dense", context),
        )
        inner = self.linear(f"{prefix}.intermediate.dense", x)
        inner *= 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        return self.layer_norm(
            f"{prefix}.output.LayerNorm", x + self.linear(f"{prefix}.output.dense", inner)
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path, help="directory of the unpacked model")
    parser.add_argument("--layer", type=int, default=3, help="which layer's attention, from 0")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    arguments = parser.parse_args()

    encoder = Encoder(arguments.model)
    ids, mask = encoder.batch(SENTENCES)
    x = encoder.embed(ids)
    for layer in range(arguments.layer):
        x = encoder.layer(layer, x, mask)
    q, k, v = (to_bf16(tensor) for tensor in encoder.qkv(arguments.layer, x))
    out = attention(from_bf16(q), from_bf16(k), from_bf16(v), mask)

    origin = {"model": "sentence-transformers/all-MiniLM-L6-v2", "layer": str(arguments.layer)}
    write_safetensors(
        arguments.out / "minilm_layer.safetensors",
        {"q": ("BF16", q), "k": ("BF16", k), "v": ("BF16", v), "mask": ("BOOL", mask)},
        origin,
    )
    write_safetensors(
        arguments.out / "minilm_layer.expected.safetensors",
        {"out": ("F32", out.astype("<f4"))},
        origin,
    )
    print(f"q, k, v: {q.shape}; tokens a sentence: {mask.sum(axis=1).tolist()}")


if __name__ == "__main__":
    main()
