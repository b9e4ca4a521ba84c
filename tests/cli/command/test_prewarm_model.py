"""jitney prewarm --model: what it compiles for a server is what calls of that server ask for."""
import json
import os
import random
import unittest

import support

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
    "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "rope_theta": 500000.0, "rope_scaling": None, "max_position_embeddings": 8192,
}
GEMMA = {
    "model_type": "gemma2", "torch_dtype": "float16", "hidden_size": 2304, "head_dim": 256,
    "num_attention_heads": 8, "num_key_value_heads": 4, "sliding_window": 4096,
    "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
}
MISTRAL = {**LLAMA, "model_type": "mistral", "sliding_window": 4096, "layer_types": ["sliding_attention"] * 2}
BLOOM = {
    "model_type": "bloom", "torch_dtype": "float32", "hidden_size": 1024, "num_attention_heads": 16,
}


class Model(support.CommandTest):
    def config(self, fields, **changes):
        return self.write("config.json", json.dumps({**fields, **changes}))

    def listed(self, fields, *flags, arch="sm_90a", **changes):
        source = self.config(fields, **changes)
        return self.succeed(
            "prewarm", "--model", source, "--arch", arch, *flags, "--list", "--json", gpu=False
        ).json["specs"]

    def test_a_llama_3_8b_server(self):
        for arch in ("sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"):
            specs = self.listed(LLAMA, arch=arch)
            self.assertEqual(len(specs), len(set(specs)))
            rows = [spec for spec in specs if spec.startswith(("rms_norm<", "gated_activation<"))]
            self.assertEqual(len(rows), 3)  # norms with a residual and without one, and the gate
            # On Hopper one kernel takes ragged prefill, however long, and one ragged decode.
            self.assertEqual(len(specs) - len(rows), 15)
            self.assertTrue(all(spec.endswith("@" + arch) for spec in specs))
        padded = self.listed(LLAMA, "--kv-cache", "padded")
        self.assertFalse([spec for spec in padded if "kv=paged" in spec])
        both = self.listed(LLAMA, "--kv-cache", "both")
        self.assertEqual(set(both), set(padded) | set(self.listed(LLAMA)))
        people = self.succeed(
            "prewarm", "--model", self.config(LLAMA), "--arch", "sm_80", "--arch", "sm_90a", "--list"
        ).out.splitlines()
        self.assertEqual(people, self.listed(LLAMA, arch="sm_80") + self.listed(LLAMA))
        self.assertFalse(os.path.exists(self.cache), "nothing was compiled")

    def explained(self, problem, heads, options):
        q_heads, kv_heads, head_dim, name = heads
        answer = self.succeed(
            "explain", "attention", "--q", f"{problem['q']},{q_heads},{head_dim}",
            "--kv", f"{problem['kv']},{kv_heads},{head_dim}", "--format", name, "--causal",
            *problem["flags"], *options, "--arch", "sm_90a", "--json", gpu=False,
        ).json
        return [answer["chosen"], *answer["before"]]

    def random_step(self, source, paged):
        """A call as a server makes it."""
        requests = source.choice([1, 2, 7, 64, 256])
        kv_len = source.choice([1, 100, 4096, 100_000])
        pages = ["--page-size", str(source.choice([1, 16, 64]))] if paged else ["--lengths"]
        kind = source.choice(["prefill", "first", "decode", "append", "several"])
        if kind == "first":  # ragged prefill of new requests over their own keys
            lengths = [source.randrange(1, 3000) for _ in range(requests)]
            total = sum(lengths)
            return {"q": total, "kv": total, "flags": ["--q-lens", ",".join(map(str, lengths))]}
        if kind == "prefill":
            return {"q": source.choice([requests, 999, 16384]), "kv": f"{requests},{kv_len}", "flags": pages}
        q_len = 1 if kind == "decode" else source.randrange(1, 64 if kind == "append" else 600)
        new = source.randrange(1, 9) if kind == "append" else 0
        flags = pages + (["--append", str(new)] if new else [])
        # The new keys are among those that a request has.
        return {"q": f"{requests},{q_len}", "kv": f"{requests},{max(kv_len, new)}", "flags": flags}

    def test_the_catalogue_covers_what_calls_choose(self):
        source = random.Random(support.SEED)
        for name, config, heads, windows, options in (
            ("llama", LLAMA, (32, 8, 128, "bf16"), [None], []),
            ("gemma", GEMMA, (8, 4, 256, "fp16"), [None, 4095], ["--softcap", "50"]),
            ("mistral", MISTRAL, (32, 8, 128, "bf16"), [4095], []),
            ("bloom", BLOOM, (16, 16, 64, "fp32"), [None], ["--alibi"]),
        ):
            for cache in ("paged", "padded"):
                specs = self.listed(config, "--kv-cache", cache)
                for _ in range(15):
                    step = self.random_step(source, cache == "paged")
                    window = source.choice(windows)
                    flags = [] if window is None else ["--window-left", str(window)]
                    with self.subTest(model=name, cache=cache, step=step, window=window):
                        for spec in self.explained(step, heads, options + flags):
                            self.assertIn(spec, specs)

    def test_norms_and_gates_are_covered(self):
        """What documentation says of a type's norms and gates, and the calls that follow."""
        def missing(config, *calls, arch="sm_90a"):
            specs = self.listed(config, arch=arch)
            name = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[config["torch_dtype"]]
            chosen = set()
            for operation, *words in calls:
                for rows in ("1", "7", "4096"):
                    problem = [word.replace("ROWS", rows) for word in words]
                    answer = self.succeed("explain", operation, *problem, "--format", name, "--arch", arch,
                                          "--json", gpu=False).json
                    chosen.add(answer["chosen"])
            return chosen - set(specs)

        def norms(d, *flags, residual=True):
            plain = ["rms-norm", "--x", f"ROWS,{d}", "--weight", str(d), *flags]
            return [plain, [*plain, "--residual", f"ROWS,{d}"]] if residual else [plain]

        def gate(d, activation):
            return ["gated-activation", "--gate", f"ROWS,{2 * d}", "--activation", activation]

        layer_norm = ["--subtract-mean"]
        sixteen = {"torch_dtype": "bfloat16", "num_attention_heads": 16}
        for config, calls in (
            (LLAMA, norms(4096)),
            ({**LLAMA, "rms_norm_eps": 1e-5, "hidden_act": "silu", "intermediate_size": 14336},
             [*norms(4096), gate(14336, "silu")]),
            ({**LLAMA, "hidden_size": 896, "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864,
              "model_type": "qwen2"}, [*norms(896), gate(4864, "silu")]),
            ({**LLAMA, "model_type": "qwen3_moe", "head_dim": 128, "hidden_size": 2048, "intermediate_size": 6144,
              "moe_intermediate_size": 768}, [*norms(2048), *norms(128, residual=False), gate(6144, "silu"), gate(768, "silu")]),
            ({**GEMMA, "hidden_activation": "gelu_pytorch_tanh", "intermediate_size": 9216, "rms_norm_eps": 1e-6},
             [*norms(2304, "--one-plus-weight"), gate(9216, "gelu_tanh")]),
            ({**GEMMA, "model_type": "gemma3_text"}, norms(256, "--one-plus-weight", residual=False)),
            ({**LLAMA, "model_type": "olmo2", "rms_norm_eps": 1e-6},
             [*norms(4096), *norms(1024, residual=False)]),
            ({**sixteen, "model_type": "cohere", "hidden_size": 8192, "num_attention_heads": 64, "layer_norm_eps": 1e-5,
              "intermediate_size": 22528, "hidden_act": "silu"},
             [*norms(8192, *layer_norm), *norms(128, *layer_norm, residual=False), gate(22528, "silu")]),
            ({**BLOOM, "layer_norm_epsilon": 1e-5}, norms(1024, *layer_norm, "--bias", "1024")),
            ({**sixteen, "model_type": "gpt2", "n_embd": 1024, "n_head": 16, "n_inner": None,
              "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}, norms(1024, *layer_norm, "--bias", "1024")),
            ({**sixteen, "model_type": "unheard_of", "hidden_size": 1000, "head_dim": 40, "intermediate_size": 3333},
             [*norms(1000), *norms(1000, *layer_norm), *norms(40, residual=False), gate(3333, "silu")]),
        ):
            with self.subTest(model=config["model_type"]):
                self.assertEqual(missing(config, *calls), set())
        self.assertEqual(len(missing(LLAMA, *norms(4096), arch="sm_75")), 0)
        # What the model has not is not compiled.
        gates = [spec for spec in self.listed({**BLOOM, "layer_norm_epsilon": 1e-5}) if spec.startswith("gated_activation")]
        self.assertEqual(gates, [])
        odd = {**LLAMA, "hidden_act": "xielu"}
        self.assertIn("xielu", self.succeed("prewarm", "--model", self.config(odd), "--arch", "sm_80", "--list",
                                            "--json").out)
        self.assertFalse([spec for spec in self.listed(odd) if spec.startswith("gated_activation")])

    def test_rotary_is_covered(self):
        specs = self.listed(LLAMA)
        for q in ("1,1,40,128", "8,512,40,128"):
            chosen = self.succeed(
                "explain", "rotary", "--q", q, "--style", "half_split", "--arch", "sm_90a", "--json"
            ).json["chosen"]
            self.assertIn(chosen, specs)
        turned = self.listed(LLAMA, "--style", "interleaved")
        self.assertEqual(len([spec for spec in turned if "interleaved" in spec]), 2)
        self.assertFalse([spec for spec in self.listed(BLOOM) if "half_split" in spec])

    def test_what_the_options_of_a_model_do(self):
        def has(words, specs):
            attention = [spec for spec in specs if spec.startswith(("attn_prefill", "attn_decode"))]
            return {words in spec for spec in attention}

        self.assertEqual(has("softcap=1", self.listed(GEMMA)), {True})
        self.assertEqual(has("window=1", self.listed(GEMMA)), {True, False})
        self.assertEqual(has("window=1", self.listed(MISTRAL)), {True})
        self.assertEqual(has("window=1", self.listed(GEMMA, use_sliding_window=False)), {False})
        self.assertEqual(has("head_dim=256", self.listed(GEMMA, head_dim=None)), {True})
        self.assertEqual(has("window=1", self.listed(GEMMA, layer_types=["full_attention"])), {False})
        self.assertEqual(has("alibi=1", self.listed(BLOOM)), {True})
        self.assertEqual(has("sinks=1", self.listed(LLAMA, model_type="gpt_oss")), {True})
        self.assertEqual(has("head_dim=256", self.listed(LLAMA, head_dim=256)), {True})
        self.assertEqual(has("format=fp16", self.listed(LLAMA, "--format", "fp16")), {True})
        self.assertEqual(self.listed(LLAMA, num_key_value_heads=None)[0], "attn_work_map<threads=256>@sm_90a")
        inside = {"model_type": "gemma3", "torch_dtype": "bfloat16", "text_config": {**GEMMA, "torch_dtype": None}}
        self.assertEqual(has("format=bf16", self.listed(inside)), {True})

    def test_what_was_read_is_told(self):
        source = self.config(GEMMA, num_hidden_layers=26)
        # Nothing can be kept, so that nothing is compiled: entries fail, and what was read is told.
        for flags, environment in ((["--list"], {}), ([], {"JITNEY_CACHE_MAX_BYTES": "0"})):
            answer = self.run_command(
                "prewarm", "--model", source, "--arch", "sm_90a", *flags, "--json", gpu=False, **environment
            ).json["model"]
            self.assertEqual(answer["model_type"], "gemma2")
            self.assertEqual(answer["file"], source)
            self.assertEqual(answer["unserved"], [])
            layers = {layer["kind"]: layer for layer in answer["layers"]}
            self.assertEqual(set(layers), {"sliding_attention", "full_attention"})
            for layer in layers.values():
                told = [layer[name] for name in ("part", "q_heads", "kv_heads", "d_qk", "d_v", "count")]
                self.assertEqual(told, ["decoder", 8, 4, 256, 256, 13])
                told = [layer[name] for name in ("causal", "softcap", "alibi", "sinks", "logits", "served")]
                self.assertEqual(told, [True, True, False, False, False, True])
                self.assertEqual((layer["rotary_styles"], layer["rotary_dim"]), (["half_split"], 256))
                self.assertEqual((layer["format"], layer["window_right"]), ("fp16", -1))
            self.assertEqual(layers["sliding_attention"]["window_left"], 4095)
            self.assertEqual(layers["full_attention"]["window_left"], -1)
        listed = self.succeed("prewarm", "--model", source, "--arch", "sm_90a", "--list", gpu=False)
        self.assertRegex(listed.err, r"sliding_attention +decoder +13 +8 +4 +256 +256 +4095 +yes +half_split 256")

    def test_encoders_are_dense_and_not_causal(self):
        bert = {"model_type": "bert", "hidden_size": 768, "num_attention_heads": 12, "torch_dtype": "float16",
                "position_embedding_type": "absolute"}
        specs = self.listed(bert)
        attention = [spec for spec in specs if spec.startswith(("attn_prefill", "attn_decode"))]
        self.assertTrue(attention)
        for spec in attention:
            self.assertIn("head_dim=64", spec)
            self.assertIn("kv=dense,causal=0", spec)
        self.assertEqual({spec.split("<")[0] for spec in specs},
                         {"attn_work_map", "attn_prefill_wgmma", "attn_prefill_mma", "attn_decode_cluster", "rms_norm"})

    def test_what_is_not_served_is_named_and_the_rest_compiled(self):
        def partly(words, fields=LLAMA, **changes):
            source = self.config(fields, **changes)
            arguments = ["prewarm", "--model", source, "--arch", "sm_90a", "--list"]
            outcome = self.fail_with(1, ["config.json", *words], *arguments, gpu=False)
            self.assertTrue(outcome.out.startswith("attn_"))
            answer = self.run_command(*arguments, "--json", gpu=False)
            self.assertEqual(answer.status, 1)
            self.assertEqual(answer.json["specs"], outcome.out.splitlines())
            self.assertTrue(any(words[0] in sentence for sentence in answer.json["model"]["unserved"]))
            return answer.json

        partly(["kv_cache_scheme"], quantization_config={
            "quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}})
        partly(["weight_block_size"], quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]})
        partly(["head_dim_of_some"], head_dim_of_some=64)
        chunked = {"model_type": "llama4_text", "torch_dtype": "bfloat16", "hidden_size": 5120, "head_dim": 128,
                   "num_attention_heads": 40, "num_key_value_heads": 8, "num_hidden_layers": 4,
                   "attention_chunk_size": 8192}
        answer = partly(["chunked_attention", "chunk of 8192", "--logits"], chunked)
        self.assertFalse([spec for spec in answer["specs"] if "logits" in spec])
        function = self.write("chunks", "param int chunk\nplace / chunk == key / chunk ? score : -1e30f\n")
        specs = self.listed(chunked, "--logits", function)
        self.assertTrue([spec for spec in specs if "logits=" in spec and "paged" in spec])

    def test_foreign_text_is_shown_and_not_obeyed(self):
        source = self.write("a\n\x1b[2Jb", json.dumps(LLAMA))
        told = self.succeed("prewarm", "--model", source, "--arch", "sm_80", "--list", gpu=False).err
        self.assertNotIn("\x1b", told)
        self.assertTrue(told.startswith(self.path("a\\n\\x1b[2Jb: llama\n")), told)

    def test_fp32_says_that_it_gets_scalar_kernels(self):
        small = self.config({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "torch_dtype": "float32"})
        arguments = ["prewarm", "--model", small, "--arch", "sm_80", "--list"]
        self.assertIn("scalar kernels", self.succeed(*arguments, gpu=False).err)
        self.assertNotIn("scalar kernels", self.succeed(*arguments, "--format", "fp16", gpu=False).err)

    def test_infinity_nan_and_large_files(self):
        text = json.dumps({**LLAMA, "a": float("inf"), "b": [-float("inf"), float("nan")]})
        self.assertIn("Infinity", text)
        source = self.write("config.json", text)
        self.succeed("prewarm", "--model", source, "--arch", "sm_80", "--list", gpu=False)
        labels = {str(i): "a label of this class" for i in range(110_000)}
        large = self.config(LLAMA, id2label=labels)
        self.assertGreater(os.path.getsize(large), 3 << 20)
        self.succeed("prewarm", "--model", large, "--arch", "sm_80", "--list", gpu=False)

    def test_compiled_once(self):
        small = {"hidden_size": 64, "num_attention_heads": 2, "torch_dtype": "float32", "alibi": True}
        arguments = ["prewarm", "--model", self.config(small), "--arch", "sm_80", "--json"]
        first = self.succeed(*arguments, gpu=False).json
        self.assertEqual(first["failed"], 0)
        self.assertEqual(first["compiled"], len(self.listed(small, arch="sm_80")))
        second = self.succeed(*arguments, gpu=False).json
        self.assertEqual((second["compiled"], second["cached"]), (0, first["compiled"]))
        people = self.succeed(*arguments[:-1], gpu=False).out
        self.assertIn(f"{first['compiled']} specializations: compiled 0, cached", people)

    def test_a_list_is_a_manifest(self):
        small = self.config({"hidden_size": 64, "num_attention_heads": 2, "torch_dtype": "float32"})
        text = self.succeed("prewarm", "--model", small, "--arch", "sm_80", "--list").out
        manifest = self.write("manifest", text)
        again = self.succeed("prewarm", "--manifest", manifest, "--list", "--json").json["specs"]
        self.assertEqual(again, text.splitlines())

    def test_files_that_are_no_configuration(self):
        def refuse(status, words, content):
            with self.subTest(content=str(content)[:60]):
                source = self.write("config.json", content)
                self.fail_with(
                    status, ["config.json", *words], "prewarm", "--model", source, "--arch", "sm_80", "--list"
                )

        refuse(2, ["no JSON"], "")
        refuse(2, ["no JSON"], "{")
        refuse(2, ["no JSON"], b"\xff\xfe{}")
        refuse(2, ["no JSON"], json.dumps(LLAMA) + "x")
        refuse(2, ["no JSON", "nested"], "[" * 100_000)
        refuse(2, ["no JSON", "nested"], '{"hidden_size": ' + "[" * 100_000 + "]" * 100_000 + "}")
        refuse(2, ["must hold an object"], "[1, 2]")
        refuse(2, ["twice", "hidden_size"], '{"hidden_size": 1, "a": {"hidden_size": 2}, "hidden_size": 3}')
        refuse(2, ["no num_attention_heads"], "{}")
        refuse(2, ["too many"], " " * ((64 << 20) + 1))
        self.fail_with(1, ["absent"], "prewarm", "--model", self.path("absent"), "--arch", "sm_80")
        self.fail_with(1, [self.directory], "prewarm", "--model", self.directory, "--arch", "sm_80")

    def test_values_that_cannot_be_meant(self):
        def refuse(words, fields=LLAMA, **changes):
            with self.subTest(changes=changes):
                source = self.config(fields, **changes)
                self.fail_with(
                    2, ["config.json", *words], "prewarm", "--model", source, "--arch", "sm_80", "--list"
                )

        refuse(["num_attention_heads", '"32"', "whole number"], num_attention_heads="32")
        refuse(["num_attention_heads", "0"], num_attention_heads=0)
        refuse(["num_attention_heads", "-1"], num_attention_heads=-1)
        refuse(["num_attention_heads", "1.5"], num_attention_heads=1.5)
        refuse(["num_attention_heads", "99999999999"], num_attention_heads=99999999999)
        refuse(["32", "5", "divide"], num_key_value_heads=5)
        refuse(["hidden_size", "4095"], hidden_size=4095)
        refuse(["hidden_size"], hidden_size=None)
        refuse(["head_dim", "[1]"], head_dim=[1])
        refuse(["torch_dtype", "float8", "--format"], torch_dtype="float8")
        refuse(["torch_dtype", "--format"], torch_dtype=None)
        refuse(["sliding_window", "true"], sliding_window=True)
        refuse(["use_sliding_window", "1"], sliding_window=5, use_sliding_window=1)
        refuse(["no layers of attention", "mamba"], layer_types=["mamba"])
        refuse(["layer_types", "list of strings"], layer_types="full_attention")
        refuse(["no layers of attention"], layer_types=["linear_attention"])
        refuse(["no sliding_window"], layer_types=["sliding_attention"])
        refuse(["attn_logit_softcapping", "-1"], attn_logit_softcapping=-1)
        refuse(["attn_logit_softcapping", '"50"'], attn_logit_softcapping="50")
        refuse(["rotated", "1.5"], partial_rotary_factor=1.5)
        refuse(["rotates 25 elements"], rotary_dim=25)
        refuse(["rope_parameters", "object"], rope_parameters=3)
        refuse(["text_config.num_attention_heads", "many"],
               {"text_config": {**LLAMA, "num_attention_heads": "many"}})
        refuse(["num_attention_heads", "is 32", "n_head is 16"], n_head=16)
        refuse(["Infinity", "whole number"], head_dim=float("inf"))
        refuse(["kv_lora_rank"], kv_lora_rank=512)
        refuse(["no attention kernel", "1,1,32,1024"], head_dim=1024)

    def test_options_that_cannot_be_meant(self):
        model = ["--model", self.config(LLAMA)]
        self.fail_with(2, ["--model", "--arch"], "prewarm", *model, gpu=False)
        self.fail_with(2, ["--arch", "--model"], "prewarm", "--arch", "sm_80")
        self.fail_with(2, ["sm_foo"], "prewarm", *model, "--arch", "sm_foo")
        self.fail_with(2, ["sm_90a"], "prewarm", *model, "--arch", "sm_90")
        self.fail_with(2, ["--kv-cache", "ring"], "prewarm", *model, "--arch", "sm_80", "--kv-cache", "ring")
        self.fail_with(2, ["--format", "fp8"], "prewarm", *model, "--arch", "sm_80", "--format", "fp8")


if __name__ == "__main__":
    unittest.main()
