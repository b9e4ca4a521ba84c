"""jitney explain: for every architecture, GPU or not."""
import unittest

import support

ARCHS = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"]
ATTENTION = ["--q", "1,4096,32,128", "--kv", "1,4096,8,128", "--format", "bf16", "--causal"]
KERNELS = {
    "attn_prefill_wgmma", "attn_prefill_mma", "attn_prefill_scalar", "attn_decode_cluster", "attn_decode_mma",
    "attn_decode_scalar",
}


# A problem of each operation, in its shortest form.
SHORTEST = {
    "attention": ["--q", "1,64,8,64"],
    "rotary": ["--q", "1,16,8,64"],
    "append-kv": ["--new", "4,7,8,64"],
    "merge-states": ["--out", "33,8,128"],
    "rms-norm": ["--x", "8,4096"],
    "gated-activation": ["--gate", "8,4096"],
    "fp8-quantize": ["--x", "64,64"],
    "fp8-gemm": ["--a", "64,64", "--b", "64,64"],
    "fp8-linear": ["--x", "64,64", "--weight", "32,64"],
    "fp8-linear-backward": ["--grad-y", "64,96", "--x-codes", "64,128"],
    "fp8-linear-inference": ["--x", "16,4096", "--weight", "4096,4096"],
}


class Explain(support.CommandTest):
    def test_every_operation(self):
        listed = self.succeed("ops", "--json").json["operations"]
        self.assertEqual(sorted(SHORTEST), sorted(each["name"].replace("_", "-") for each in listed))
        for operation, problem in SHORTEST.items():
            with self.subTest(operation=operation):
                answer = self.explain(operation, *problem, "--arch", "sm_90a", gpu=False)
                launches = answer.get("launches") or [{"spec": answer["chosen"]}]
                for launch in launches:
                    self.assertTrue(launch["spec"].endswith("@sm_90a"))
                self.assertTrue(answer["candidates"])

    def test_rows_of_a_layer(self):
        def chosen(*arguments):
            return self.explain(*arguments, "--arch", "sm_90a", gpu=False)["chosen"]

        norm = ["rms-norm", "--x", "8,4096"]
        self.assertIn("format=bf16,weight=none,", chosen(*norm))
        self.assertIn("weight=fp32,", chosen(*norm, "--weight", "4096", "--format-weight", "fp32"))
        added = chosen(*norm, "--residual", "8,4096", "--dtype", "fp16")
        self.assertIn("format=fp16,", added)
        self.assertIn("residual=1", added)
        self.assertIn("result=e4m3_rows", chosen(*norm, "--out-format", "e4m3", "--scale"))
        gate = chosen("gated-activation", "--gate", "8,4096", "--activation", "gelu_tanh")
        self.assertIn("activation=gelu_tanh", gate)
        self.fail_with(2, ["x", "[rows..., d]"], "explain", "rms-norm", "--arch", "sm_90a")
        self.fail_with(2, ["--residual"], "explain", *norm, "--residual", "x", "--arch", "sm_90a")

    def test_short_forms_and_fields_say_the_same(self):
        def same(operation, short, fields):
            with self.subTest(operation=operation, short=short):
                answers = [self.explain(operation, *words, "--arch", "sm_90a", gpu=False) for words in (short, fields)]
                self.assertEqual(*answers)

        same("attention", ["--q", "8,1,8,64", "--kv", "8,512,2,64", "--page-size", "16"],
             ["--q", "8,1,8,64", "--k", "256,16,2,64", "--v", "256,16,2,64", "--block-table", "8,32", "--kv-lens", "8"])
        same("attention", ["--q", "9,8,64", "--q-lens", "4,5"],
             ["--q", "9,8,64", "--qo-indptr", "3", "--k", "9,8,64", "--v", "9,8,64", "--kv-indptr", "3", "--q-lens", "4,5"])
        same("merge-states", ["--out", "33,8,128", "--parts", "3"],
             ["--parts.out", "3,33,8,128", "--parts.lse", "3,33,8", "--lse"])
        product = ["--a", "64,256", "--b", "384,256", "--trans-b"]
        for word, fields in (("one", ["--dequant-scale", "1"]), ("sides", ["--scale-a", "64", "--scale-b", "384"]),
                             ("blocks", ["--scale-a", "64,2", "--scale-b", "3,2"])):
            same("fp8-gemm", [*product, "--scales", word], [*product, *fields])
        same("rotary", ["--q", "1,16,8,64", "--rotary-dim", "32"], ["--q", "1,16,8,64", "--cos", "16,16", "--sin", "16,16"])
        same("append-kv", ["--new", "4,7,8,64", "--style", "half_split", "--rotary-dim", "32"],
             ["--new-k", "4,7,8,64", "--new-v", "4,7,8,64", "--k", "4,7,8,64", "--v", "4,7,8,64", "--kv-lens", "4",
              "--style", "half_split", "--cos", "1,16", "--sin", "1,16"])

    def explain(self, *arguments, **options):
        return self.succeed("explain", *arguments, "--json", **options).json

    def test_attention_on_every_arch(self):
        for arch in ARCHS:
            with self.subTest(arch=arch):
                answer = self.explain("attention", *ATTENTION, "--arch", arch, gpu=False)
                self.assertTrue(answer["chosen"].endswith("@" + arch), answer["chosen"])
                self.assertEqual(len(answer["grid"]), 3)
                self.assertGreater(answer["grid"][0], 1)
                self.assertGreaterEqual(answer["block"][0], 32)
                self.assertGreater(answer["shared_bytes"], 0)
                self.assertGreaterEqual(answer["workspace_bytes"], 0)
                self.assertTrue(KERNELS <= {each["kernel"] for each in answer["candidates"]})
                for each in answer["candidates"]:
                    self.assertEqual(each["accepted"], each["reason"] == "")
                accepted = [each["kernel"] for each in answer["candidates"] if each["accepted"]]
                self.assertTrue(answer["chosen"].startswith(accepted[0] + "<"))

    def test_rotary_on_every_arch(self):
        for arch in ARCHS:
            with self.subTest(arch=arch):
                answer = self.explain(
                    "rotary", "--q", "1,16,8,64", "--format", "bf16", "--arch", arch, gpu=False
                )
                self.assertRegex(answer["chosen"], f"^rotary_emb<.*style=interleaved.*>@{arch}$")
        half = self.explain(
            "rotary", "--q", "1,16,8,64", "--k", "1,16,2,64", "--style", "half_split",
            "--rotary-dim", "32", "--arch", "sm_80",
        )
        self.assertIn("style=half_split", half["chosen"])

    def test_fp8_quantize_on_every_arch(self):
        for arch in ARCHS:
            with self.subTest(arch=arch):
                answer = self.explain(
                    "fp8-quantize", "--x", "4096,4096", "--amax", "--arch", arch, gpu=False
                )
                software = ",software=1" if int(arch[3:].rstrip("a")) < 89 else ""
                self.assertEqual(
                    answer["chosen"],
                    f"fp8_quantize<format=bf16,out=e4m3,codes=row,amax=1{software}>@{arch}",
                )
        dynamic = self.explain(
            "fp8-quantize", "--x", "5,4,3,160", "--format", "fp32", "--out-format", "e5m2",
            "--both", "--dynamic", "--arch", "sm_90a",
        )
        self.assertEqual(
            dynamic["chosen"], "fp8_quantize<format=fp32,out=e5m2,codes=both>@sm_90a"
        )
        self.assertEqual(
            dynamic["before"], ["fp8_quantize<format=fp32,out=e4m3,codes=none,amax=1>@sm_90a"]
        )

    def test_fp8_quantize_with_several_scales(self):
        texts = {"row": "fp8_quantize_rows<format=bf16,out=e4m3,width=8,threads=512,vectors=1>@sm_90a",
                 "group": "fp8_quantize_groups<format=bf16,out=e4m3,scale_rows=1>@sm_90a",
                 "block": "fp8_quantize_groups<format=bf16,out=e4m3,scale_rows=128>@sm_90a"}
        for granularity, text in texts.items():
            with self.subTest(granularity=granularity):
                answer = self.explain("fp8-quantize", "--x", "16,4096", "--dynamic", "--granularity", granularity,
                                      "--power-of-two", "--arch", "sm_90a")
                self.assertEqual(answer["chosen"], text)
                self.assertEqual(answer["before"], [])
                self.assertEqual(answer["workspace_bytes"], 0)

    def test_fp8_gemm_on_every_arch(self):
        for arch in ARCHS:
            with self.subTest(arch=arch):
                answer = self.explain(
                    "fp8-gemm", "--a", "4096,4096", "--b", "4096,4096", "--trans-b", "--arch",
                    arch, gpu=False,
                )
                number = int(arch[3:].rstrip("a"))
                if number < 89:
                    self.assertIsNone(answer["chosen"])
                    reasons = {each["kernel"]: each["reason"] for each in answer["candidates"]}
                    self.assertEqual(
                        reasons,
                        {
                            "fp8_gemm_wgmma": f"needs sm_90a, this is sm_{number}",
                            "fp8_gemm_mma": f"FP8 tensor cores need sm_89 or newer, this is sm_{number}",
                        },
                    )
                else:
                    unpacks = "unpack=1" in answer["chosen"]
                    self.assertEqual(unpacks, 90 <= number < 120 and arch != "sm_90a")
                    hopper = answer["chosen"].startswith("fp8_gemm_wgmma<")
                    self.assertEqual(hopper, arch == "sm_90a")
        split = self.explain(
            "fp8-gemm", "--a", "64,16384", "--b", "4096,16384", "--trans-b", "--format-a", "e5m2",
            "--out", "fp32", "--bias", "bf16", "--arch", "sm_90a",
        )
        self.assertIn("a=e5m2,b=e4m3,out=fp32", split["chosen"])
        self.assertGreater(split["splits"], 1)
        # Where the rows lie otherwise the kernel that takes them leaves parts of K there.
        self.assertGreater(split["workspace_bytes"], 0)

    def test_append_kv(self):
        def chosen(*arguments, arch="sm_90a"):
            return self.explain("append-kv", *arguments, "--arch", arch, gpu=False)["chosen"]

        self.assertEqual(
            chosen("--new", "520,8,128", "--requests", "9", "--page-size", "16"),
            "append_kv<format=bf16,pairs=4,queries=packed,kv=paged>@sm_90a",
        )
        for arch in ARCHS:
            plain = chosen("--new", "4,7,8,64", "--format", "fp16", arch=arch)
            self.assertRegex(plain, f"^append_kv<format=fp16,.*@{arch}$")
            self.assertNotIn("packed", plain)
            self.assertNotIn("paged", plain)
        turned = chosen("--new", "4,7,8,64", "--style", "half_split", "--rotary-dim", "32")
        self.assertIn("half_split", turned)
        with_q = self.explain("append-kv", "--new", "4,7,8,64", "--style", "interleaved",
                              "--q-heads", "32", "--arch", "sm_80")
        self.assertIn("interleaved", with_q["chosen"])
        self.assertEqual([each["kernel"] for each in with_q["candidates"]], ["append_kv"])
        self.assertIsNone(chosen("--new", "0,8,128"))
        for words, arguments in (
            (["--new"], []),
            (["--new", "[8, 128]"], ["--new", "8,128"]),
            (["--requests", "--new"], ["--new", "4,7,8,64", "--requests", "4"]),
            (["--rotary-dim", "--style"], ["--new", "4,7,8,64", "--rotary-dim", "4"]),
            (["--q-heads", "--style"], ["--new", "4,7,8,64", "--q-heads", "4"]),
            (["rotary dimension is 65"], ["--new", "4,7,8,65", "--style", "half_split"]),
            (["--page-size", "0"], ["--new", "4,7,8,64", "--page-size", "0"]),
        ):
            self.fail_with(2, words, "explain", "append-kv", *arguments, "--arch", "sm_80")

    def test_merge_states(self):
        for arch in ARCHS:
            for out in ("2,16,8,128", "33,8,128"):
                answer = self.explain("merge-states", "--out", out, "--parts", "3", "--arch", arch,
                                      gpu=False)
                self.assertRegex(answer["chosen"], f"^attn_merge_states<.*@{arch}$")
                self.assertGreater(answer["grid"][0], 0)
        for words, arguments in ((["--out", "[4]"], ["--out", "4"]),
                                 (["--parts", "1"], ["--out", "33,8,128", "--parts", "1"])):
            self.fail_with(2, words, "explain", "merge-states", *arguments, "--arch", "sm_80")

    def test_a_linear_layer_on_every_arch(self):
        layer = ["fp8-linear", "--x", "4096,4096", "--weight", "6144,4096"]
        for arch in ARCHS:
            with self.subTest(arch=arch):
                answer = self.explain(*layer, "--arch", arch, gpu=False)
                self.assertEqual(answer["arch"], arch)
                reasons = {each["kernel"]: each["reason"] for each in answer["candidates"]}
                number = int(arch[3:].rstrip("a"))
                if number < 89:
                    self.assertEqual(answer["launches"], [])
                    self.assertIn("sm_89 or newer", reasons["fp8_gemm_mma"])
                    continue
                hopper = "" if arch == "sm_90a" else f"needs sm_90a, this is sm_{number}"
                self.assertEqual(reasons, {"fp8_quantize": "", "fp8_gemm_wgmma": hopper, "fp8_gemm_mma": ""})
                cast = f"fp8_quantize<format=bf16,out=e4m3,codes=row,amax=1>@{arch}"
                specs = [launch["spec"] for launch in answer["launches"]]
                self.assertEqual(specs[:3], [cast, cast, f"fp8_update<threads=256>@{arch}"])
                self.assertEqual(len(specs), 4)
                gemm = self.explain(
                    "fp8-gemm", "--a", "4096,4096", "--b", "6144,4096", "--trans-b", "--arch", arch
                )
                self.assertEqual(specs[3], gemm["chosen"])
                self.assertEqual(answer["launches"][3]["grid"], gemm["grid"])
                self.assertGreater(answer["workspace_bytes"], (4096 + 6144) * 4096)

    def test_what_the_options_of_a_linear_layer_do(self):
        def specs(*flags, x="64,100"):
            answer = self.explain("fp8-linear", "--x", x, "--weight", "96,100", *flags, "--arch", "sm_89")
            return [launch["spec"] for launch in answer["launches"]]

        self.assertNotIn("unaligned", specs()[-1])
        self.assertIn("unaligned=1", specs("--save")[-1])
        self.assertIn("promote=1", specs()[-1])
        self.assertNotIn("promote", specs("--fast-accum")[-1])
        self.assertIn("a=e5m2,b=e5m2,out=fp16", specs("--fp8-format", "e5m2", "--dtype", "fp16")[-1])
        self.assertEqual(len(specs("--recipe", "dynamic")), 6)
        self.assertEqual(len(specs("--bias", "bf16")), 4)
        back = specs("--backward", x="2,32,100")
        self.assertEqual([spec.split("<")[0] for spec in back],
                         ["fp8_quantize", "fp8_update", "fp8_gemm_mma", "fp8_gemm_mma"])
        self.assertIn("out=e5m2", back[0])
        self.assertIn("a=e5m2,b=e4m3", back[-1])
        summed = specs("--backward", "--bias", "fp32", "--fp8-format", "e4m3")
        self.assertEqual(summed[2], "column_sums<format=bf16,out=fp32>@sm_89")
        self.assertIn("a=e4m3,b=e4m3", summed[-1])
        self.assertEqual(specs(x="0,100"), [])

    def test_a_linear_layer_for_people(self):
        layer = ["explain", "fp8-linear", "--x", "8,64", "--weight", "32,64", "--arch"]
        people = self.succeed(*layer, "sm_90a").out
        for words in ("fp8_update<threads=256>@sm_90a", "1 x 1 x 1", "workspace of the call: ", "yes"):
            self.assertIn(words, people)
        self.assertIn("no kernel runs this on sm_80", self.succeed(*layer, "sm_80").out)

    def test_linear_layers_that_cannot_be_meant(self):
        def refuse(words, *arguments):
            self.fail_with(2, words, "explain", "fp8-linear", *arguments, "--arch", "sm_90a")

        refuse(["--weight"], "--x", "4,8")
        refuse(["--weight", "[8]"], "--x", "4,8", "--weight", "8")
        refuse(["weight", "[16, 9]", "[16, 8]"], "--x", "4,8", "--weight", "16,9")
        refuse(["--save", "--backward"], "--x", "4,8", "--weight", "16,8", "--save", "--backward")
        refuse(["--recipe", "static"], "--x", "4,8", "--weight", "16,8", "--recipe", "static")
        refuse(["--fp8-format", "bf16"], "--x", "4,8", "--weight", "16,8", "--fp8-format", "bf16")

    def test_a_mask_and_a_decode(self):
        answer = self.explain(
            "attention", "--q", "1,1,32,128", "--kv", "1,65536,8,128", "--mask", "1,65536",
            "--arch", "sm_90a",
        )
        self.assertIn("attn_decode_cluster<", answer["chosen"])
        self.assertIn("mask=1", answer["chosen"])
        self.assertGreater(answer["workspace_bytes"], 0)

    def test_requests_and_pages(self):
        heads = ["32,128", "8,128"]

        def chosen(q, kv, *flags):
            answer = self.explain(
                "attention", "--q", f"{q},{heads[0]}", "--kv", f"{kv},{heads[1]}", "--causal",
                *flags, "--arch", "sm_90a", gpu=False,
            )
            self.assertGreater(answer["shared_bytes"], 0)
            return answer

        prefill = chosen("4096", "8,4096", "--page-size", "16")
        self.assertIn("queries=packed,kv=paged,causal=1", prefill["chosen"])
        (ahead,) = prefill["before"]
        self.assertTrue(ahead.startswith("attn_work_map<") and ahead.endswith("@sm_90a"), ahead)
        self.assertGreater(prefill["workspace_bytes"], 0)
        rejected = {each["kernel"]: each["reason"] for each in prefill["candidates"]}
        self.assertIn("length", rejected["attn_decode_mma"])
        self.assertEqual(prefill["grid"][0], 132)  # blocks stay
        # Where the host knows the lengths there are as many blocks as tiles, and no more.
        mma = ["--page-size", "16", "--force", "attn_prefill_mma"]
        unknown = chosen("4096", "8,4096", *mma)
        known = chosen("4096", "4,4096", *mma, "--q-lens", "4093,1,1,1")
        self.assertEqual(known["chosen"], unknown["chosen"])
        self.assertLess(known["grid"][0], unknown["grid"][0])
        tile_m = int(known["chosen"].split("tile=")[1].split("x")[0])
        self.assertEqual(known["grid"][0], 8 * (-(-4093 * 4 // tile_m) + 3))

        ragged = chosen("4096", "4096", "--q-lens", "4000,96")
        self.assertIn("queries=packed,kv=dense", ragged["chosen"])
        decode = chosen("8,1", "8,4096", "--page-size", "1")
        self.assertIn("attn_decode_cluster<", decode["chosen"])
        self.assertIn("kv=paged", decode["chosen"])
        self.assertEqual(decode["before"], [])
        self.assertEqual(chosen("8,1", "8,4096", "--page-size", "64"), decode)
        self.assertIn("kv=dense", chosen("8,1", "8,4096", "--lengths")["chosen"])
        # A hint of short requests in wide tables: fewer parts of the keys.
        short = chosen("8,1", "8,131072", "--page-size", "16", "--max-kv-len", "128")
        wide = chosen("8,1", "8,131072", "--page-size", "16")
        self.assertLess(short["splits"], wide["splits"])

    def test_options_of_attention(self):
        for flags, words in (
            (["--window-left", "127"], "window=1"),
            (["--window-right", "0"], "window=1"),
            (["--softcap", "50"], "softcap=1"),
            (["--alibi"], "alibi=1"),
            (["--sinks"], "sinks=1"),
            (["--mask", "2,1,512"], "mask=1"),
            (["--append", "1"], "append=1"),
            (["--window-left", "-1", "--causal"], "causal=0>"),  # one query sees all, causal or not
        ):
            with self.subTest(flags=flags):
                answer = self.explain(
                    "attention", "--q", "2,1,8,64", "--kv", "2,512,8,64", "--page-size", "16",
                    *flags, "--arch", "sm_80",
                )
                self.assertIn(words, answer["chosen"])
        alone, beside = (
            self.explain(
                "attention", "--q", f"{batch},1,8,64", "--kv", f"{batch},8192,8,64", "--lengths",
                "--batch-invariant", "--arch", "sm_80",
            )
            for batch in (1, 64)
        )
        self.assertTrue(alone["batch_invariant"])
        self.assertEqual(alone["split_keys"], beside["split_keys"])
        together = self.explain(
            "attention", "--q", "20,8,64", "--kv", "2,512,8,64", "--mask", "2,20,512", "--alibi",
            "--window-left", "9", "--softcap", "2", "--sinks", "--arch", "sm_80",
        )["chosen"]
        self.assertIn("mask=1,window=1,softcap=1,alibi=1,sinks=1>", together)
        people = self.succeed(
            "explain", "attention", "--q", "20,8,64", "--q-lens", "20", "--arch", "sm_80"
        ).out
        self.assertIn("goes ahead     attn_work_map<", people)

    def test_requests_that_cannot_be_meant(self):
        def refuse(words, *arguments):
            with self.subTest(arguments=arguments):
                self.fail_with(2, words, "explain", "attention", *arguments, "--arch", "sm_80")

        refuse(["--q-lens"], "--q", "20,8,64")
        refuse(["--q-lens are 19", "--q is [20, 8, 64]"], "--q", "20,8,64", "--q-lens", "7,12")
        refuse(["--q-lens are 20"], "--q", "1,20,8,64", "--q-lens", "20")
        for lengths in ("7,", "7,-1", "x", "7 ,13", "1.5", ""):
            refuse(["--q-lens"], "--q", "20,8,64", "--q-lens", lengths)
        refuse(["--q-lens", "2147483647"], "--q", "20,8,64", "--q-lens", "2147483647,1")
        refuse(["--page-size"], "--q", "20,8,64", "--q-lens", "20", "--page-size", "16")
        refuse(["--page-size", "\"0\""], "--q", "1,20,8,64", "--page-size", "0")
        refuse(["--lengths"], "--q", "1,20,8,64", "--page-size", "4", "--lengths")
        refuse(["[1, 20, 8, 64]"], "--q", "20,8,64", "--kv", "2,20,8,64", "--q-lens", "20")
        refuse(["--kv is [2, 20, 8, 64]", "[1, 20, 8, 64]"], "--q", "1,1,8,64", "--kv", "2,20,8,64", "--page-size", "4")
        refuse(["ragged"], "--q", "20,8,64", "--q-lens", "20", "--append", "1")
        refuse(["up to 64", "q_len is 65"], "--q", "1,65,8,64", "--append", "65")
        room = ["--q", "1,1,8,128", "--kv", "1,5,8,128", "--append", "6"]
        refuse(["--append is 6", "at most kv_len, 5 keys", "--kv"], *room)
        refuse(["--append is 6", "5 keys"], *room, "--page-size", "16")
        self.explain("attention", *room[:-1], "5", "--arch", "sm_80")
        refuse(["softcap"], "--q", "1,20,8,64", "--softcap", "0")
        refuse(["scale"], "--q", "1,20,8,64", "--scale", "0")
        refuse(["--window-left", "-2"], "--q", "1,20,8,64", "--window-left", "-2")

    def test_a_kernel_by_name(self):
        answer = self.explain("attention", *ATTENTION, "--arch", "sm_80", "--force", "attn_prefill_scalar")
        self.assertTrue(answer["chosen"].startswith("attn_prefill_scalar<"))
        rejected = [each for each in answer["candidates"] if not each["accepted"]]
        self.assertEqual(len(rejected), len(answer["candidates"]) - 1)
        for other in ("append_kv", "attn_merge_states", "rotary_emb", "attn_work_map"):
            self.fail_with(
                2, [other, "attn_prefill_mma"],
                "explain", "attention", *ATTENTION, "--arch", "sm_80", "--force", other,
            )

    def test_products_beyond_all_memory(self):
        def refuse(words, size):
            self.fail_with(
                2, words, "explain", "fp8-gemm", "--a", f"{size},16", "--b", f"{size},16",
                "--trans-b", "--arch", "sm_90a",
            )

        refuse(["m, n and k are 2147483647, 2147483647 and 16", "2147418112"], 2147483647)
        refuse(["out has the shape [2147418112, 2147418112]", "more elements"], 2147418112)

    def test_nothing_can_run_it(self):
        answer = self.explain("attention", "--q", "1,8,1,600", "--arch", "sm_80")
        self.assertIsNone(answer["chosen"])
        for each in answer["candidates"]:
            self.assertFalse(each["accepted"])
            self.assertTrue(each["reason"])
        self.assertIsNone(self.explain("attention", *ATTENTION, "--arch", "sm_70")["chosen"])
        people = self.succeed("explain", "attention", "--q", "1,8,1,600", "--arch", "sm_80")
        self.assertIn("no kernel runs this on sm_80", people.out)
        self.assertIn("head_dim 600", people.out)

    def test_for_people(self):
        people = self.succeed("explain", "attention", *ATTENTION, "--arch", "sm_75").out
        self.assertIn("attn_prefill_scalar<", people)
        self.assertIn("needs sm_80 or newer", people)

    def test_unknown_architectures(self):
        for arch in ("sm_foo", "80", "sm_", "sm_90b", "compute_80", "sm_99999", "sm_12", "sm_77",
                     "sm_95", "sm_122", "sm_999"):
            self.fail_with(2, [arch, "sm_80", "sm_90a"], "explain", "attention", *ATTENTION,
                           "--arch", arch)

    def test_options_that_contradict_each_other(self):
        self.fail_with(2, ["--transposed", "--both"], "explain", "fp8-quantize", "--x", "64,64",
                       "--arch", "sm_90a", "--transposed", "--both")
        self.fail_with(2, ["--arch", "--device"], "explain", "rotary", "--q", "1,2,3,4",
                       "--arch", "sm_90a", "--device", "0")
        self.fail_with(2, ["--device", "--backend reference"], "bench", "rotary", "--q", "1,2,3,4",
                       "--backend", "reference", "--device", "0")

    def test_numbers_out_of_range(self):
        for option in ("--scale", "--softcap"):
            for value in ("1e-50", "1e300", "1e-400", "0", "-1", "nan", "inf", "x", ""):
                self.fail_with(2, [option, f'"{value}"', "from 1.4e-45 to 3.4e+38", "0.125"],
                               "explain", "attention", *ATTENTION, "--arch", "sm_90a", option, value)
        large = "9" * 30
        for option, words in (
            ("--window-left", ["from -1 to 2147483647"]),
            ("--max-kv-len", ["from 1 to"]),
            ("--page-size", ["from 1 to"]),
            ("--append", ["from 1 to"]),
            ("--kv", ["more than 64 bits hold", "1,4096,32,128"]),
            ("--mask", ["more than 64 bits hold"]),
            ("--q-lens", ["more than 64 bits hold", "7,1,512"]),
        ):
            self.fail_with(2, [option, large, *words], "explain", "attention", "--q", "1,8,4,64",
                           "--arch", "sm_90a", option, large)

    def test_names_of_architectures_that_no_gpu_uses(self):
        for arch, used in (("sm_90", "sm_90a"), ("sm_120a", "sm_120"), ("sm_100f", "sm_100")):
            self.fail_with(2, [arch, used], "explain", "attention", *ATTENTION, "--arch", arch)

    def test_no_gpu_and_no_arch(self):
        self.fail_with(1, ["GPU", "sm_90a"], "explain", "attention", *ATTENTION, gpu=False)
        self.fail_with(1, ["GPU"], "explain", "rotary", "--q", "1,2,3,4", gpu=False)

    def test_shapes_that_cannot_be_meant(self):
        for shape in (
            "1,2,3",
            "1,2,3,4,5",
            "1,2,3,4,5,6",
            "1,-2,3,64",
            "1,2,,64",
            "1,2,3,64,",
            "a,b,c,d",
            "1 ,2,3,64",
            "1.5,2,3,64",
            "0x10,2,3,64",
            "99999999999999999999,1,1,64",
            "9223372036854775807,9223372036854775807,1,64",
        ):
            for operation in ("attention", "rotary"):
                with self.subTest(shape=shape, operation=operation):
                    self.fail_with(2, ["--q"], "explain", operation, "--q", shape, "--arch", "sm_80")

    def test_shapes_that_do_not_fit(self):
        def refuse(*arguments, words=()):
            with self.subTest(arguments=arguments):
                self.fail_with(2, words, "explain", *arguments, "--arch", "sm_80")

        refuse("attention", "--q", "1,8,8,64", "--kv", "1,8,3,64")
        refuse("attention", "--q", "1,8,8,64", "--kv", "2,8,8,64")
        refuse("attention", "--q", "1,8,8,64", "--kv", "1,8,8,32")
        refuse("attention", "--q", "1,8,8,0")
        refuse("attention", "--q", "1,8,8,64", "--mask", "1,7", words=["mask"])
        refuse("attention", "--q", "1,8,8,64", "--mask", "8", words=["mask"])
        refuse("attention", "--q", "1,8,8,64", "--format", "fp64", words=["--format", "fp64"])
        refuse("rotary", "--q", "1,8,8,64", "--rotary-dim", "128", words=["128"])
        refuse("rotary", "--q", "1,8,8,64", "--rotary-dim", "7", words=["7"])
        refuse("rotary", "--q", "1,8,8,64", "--k", "1,9,8,64")
        refuse("rotary", "--q", "1,8,8,64", "--style", "spiral", words=["--style"])

    def test_an_empty_problem(self):
        self.assertIsNone(self.explain("attention", "--q", "0,8,8,64", "--arch", "sm_80")["chosen"])


if __name__ == "__main__":
    unittest.main()
