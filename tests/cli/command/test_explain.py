"""jitney explain: for every architecture, GPU or not."""
import unittest

import support

ARCHS = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"]
ATTENTION = ["--q", "1,4096,32,128", "--kv", "1,4096,8,128", "--format", "bf16", "--causal"]
KERNELS = {"attn_prefill_mma", "attn_prefill_scalar", "attn_decode_mma", "attn_decode_scalar"}


class Explain(support.CommandTest):
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

    def test_a_mask_and_a_decode(self):
        answer = self.explain(
            "attention", "--q", "1,1,32,128", "--kv", "1,65536,8,128", "--mask", "1,65536",
            "--arch", "sm_90a",
        )
        self.assertIn("attn_decode_mma<", answer["chosen"])
        self.assertIn("mask=1", answer["chosen"])
        self.assertGreater(answer["workspace_bytes"], 0)

    def test_a_kernel_by_name(self):
        answer = self.explain("attention", *ATTENTION, "--arch", "sm_80", "--force", "attn_prefill_scalar")
        self.assertTrue(answer["chosen"].startswith("attn_prefill_scalar<"))
        rejected = [each for each in answer["candidates"] if not each["accepted"]]
        self.assertEqual(len(rejected), len(answer["candidates"]) - 1)

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
        for arch in ("sm_foo", "80", "sm_", "sm_90b", "compute_80", "sm_99999"):
            self.fail_with(2, [arch], "explain", "attention", *ATTENTION, "--arch", arch)

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
