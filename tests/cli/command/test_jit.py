"""The JIT path of the command, with a driver that has no GPU: everything but the numbers."""
import os
import unittest

import support
from serving import Requests
from support import read_safetensors, safetensors

INPUT = os.path.join(support.DATA, "minilm_layer.safetensors")
DRIVER = os.environ.get("FAKE_CUDA_LIBRARY", "")


@unittest.skipUnless(DRIVER, "FAKE_CUDA_LIBRARY names no library")
class Jit(support.CommandTest):
    def setUp(self):
        super().setUp()
        self.driver = {
            "JITNEY_LIBCUDA": DRIVER,
            "FAKE_CUDA_DEVICES": "90,80",
            "FAKE_CUDA_MEMORY": "host",
        }

    def attention(self, *arguments, **environment):
        return ["run", "attention", INPUT, "-o", self.path("out"), "--json", *arguments], {
            **self.driver, **environment,
        }

    def test_the_kernel_that_explain_names_is_the_one_that_runs(self):
        for device, arch in (("0", "sm_90a"), ("1", "sm_80")):
            with self.subTest(device=device):
                explained = self.succeed(
                    "explain", "attention", "--q", "4,28,12,32", "--mask", "4,28", "--device", device,
                    "--json", **self.driver,
                ).json
                chosen = explained["chosen"]
                self.assertTrue(chosen.endswith("@" + arch), chosen)
                self.assertEqual(explained["before"], [f"attn_mask_bits<threads=256>@{arch}"])
                arguments, environment = self.attention("--device", device, JITNEY_JIT="off")
                self.fail_with(1, [chosen, "jitney prewarm"], *arguments, **environment)
                self.succeed("prewarm", "--spec", chosen)
                self.fail_with(1, [*explained["before"], "jitney prewarm"], *arguments, **environment)
                self.succeed("prewarm", "--spec", *explained["before"])
                result = self.succeed(*arguments, **environment).json
                self.assertEqual((result["backend"], result["spec"]), ("jit", chosen))

    def test_a_logits_function(self):
        function = self.write("function", "param const float* slopes\nparam float cap\n"
                              "param int twice\nparam long long far\n"
                              "cap * score - slopes[head] + twice - float(far)\n")
        requests = Requests(q_lens=[2, 2], kv_lens=[9, 9])
        values = {
            "slopes": ("F32", [4], [1, 2, 3, 4]), "cap": ("F32", [1], [0.5]),
            "twice": ("I32", [], [2]), "far": ("I64", [1], [2**40]),
        }
        dense = {**requests.equal_queries(), **requests.padded_keys(), **requests.lens()}
        source = self.write("in", safetensors({**dense, **values}))
        call = ["run", "attention", source, "-o", self.path("out"), "--json"]
        edited = self.succeed(*call, "--logits", function, **self.driver).json["spec"]
        self.assertRegex(edited, r",logits=[0-9a-f]{16}>@sm_90a$")
        # What explain names, and what prewarm takes the file for.
        explained = self.succeed(
            "explain", "attention", "--q", "2,2,4,8", "--kv", "2,10,2,8", "--lengths", "--format",
            "fp32", "--logits", function, "--arch", "sm_90a", "--json",
        ).json
        self.assertEqual(explained["chosen"], edited)
        warm = self.succeed("prewarm", "--spec", edited, "--logits", function, "--json").json
        self.assertEqual(warm["cached"], 1)
        # Without the function its parameters are tensors of no meaning.
        self.fail_with(2, ["takes q, k, k_pool, v"], *call, **self.driver)
        for name, tensor, words in (
            ("slopes", None, ['no tensor "slopes"']),
            ("cap", ("F32", [2], [1, 2]), ["cap", "'float cap'", "one fp32"]),
            ("cap", ("I32", [1], [1]), ["cap", "one fp32"]),
            ("twice", ("I64", [1], [1]), ["twice", "one int32"]),
        ):
            wrong = {**dense, **values, name: tensor}
            if tensor is None:
                del wrong[name]
            self.write("in", safetensors(wrong))
            self.fail_with(2, words, *call, "--logits", function, **self.driver)

    def test_a_cold_call_compiles_and_keeps(self):
        arguments, environment = self.attention()
        spec = self.succeed(*arguments, **environment).json["spec"]
        listed = self.succeed("cache", "list", "--json").json["entries"]
        self.assertEqual(
            {entry["spec"] for entry in listed}, {spec, "attn_mask_bits<threads=256>@sm_90a"}
        )
        self.assertEqual(read_safetensors(self.path("out"))["out"][1], [4, 28, 12, 32])

    def test_requests_and_pages(self):
        requests = Requests(q_lens=[3, 0, 5], kv_lens=[7, 2, 9])
        tensors = {**requests.ragged_queries(), **requests.block_table(4, requests.lens())}
        source = self.write("serving", safetensors(tensors))
        call = ["run", "attention", source, "-o", self.path("out"), "--causal", "--lse", "--json"]
        result = self.succeed(*call, **self.driver).json
        self.assertEqual(result["backend"], "jit")
        self.assertIn("queries=packed,kv=paged,causal=1", result["spec"])
        explained = self.succeed(
            "explain", "attention", "--q", "10,4,8", "--kv", "3,20,2,8", "--page-size", "4",
            "--causal", "--format", "fp32", "--json", **self.driver,
        ).json
        self.assertEqual(explained["chosen"], result["spec"])
        listed = self.succeed("cache", "list", "--json").json["entries"]
        self.assertEqual(
            [entry["spec"].split("<")[0] for entry in listed], ["attn_prefill_scalar", "attn_work_map"]
        )
        # The driver computes nothing: rows that no kernel writes come out as zeros.
        out = read_safetensors(self.path("out"))
        self.assertEqual((out["out"][1], set(out["out"][2])), ([10, 4, 8], {0.0}))
        self.assertEqual(out["lse"][1], [10, 4])

    def test_new_keys_come_back_with_the_pools(self):
        requests = Requests(q_lens=[1, 1], kv_lens=[7, 2])
        tensors = {**requests.equal_queries(), **requests.block_table(4, requests.lens())}
        tensors["new_k"] = tensors["new_v"] = requests.tensor([2, 1, 2], requests.rows(2, 2))
        source = self.write("append", safetensors(tensors))
        call = ["run", "attention", source, "-o", self.path("out"), "--json"]
        self.assertIn("append=1", self.succeed(*call, **self.driver).json["spec"])
        out = read_safetensors(self.path("out"))
        self.assertEqual(sorted(out), ["k_pool", "out", "v_pool"])
        for name in ("k_pool", "v_pool"):
            self.assertEqual(repr(out[name]), repr((*tensors[name][:2], list(tensors[name][2]))))

    def test_values_are_checked_before_a_gpu_sees_them(self):
        requests = Requests(q_lens=[1, 1], kv_lens=[7, 2])
        tensors = {**requests.equal_queries(), **requests.block_table(4, requests.lens())}
        tensors["kv_lens"] = ("I32", [2], [7, 200])
        source = self.write("bad", safetensors(tensors))
        self.fail_with(
            2, ["kv_lens[1] is 200"], "run", "attention", source, "-o", self.path("out"), **self.driver
        )
        self.assertFalse(os.path.exists(self.cache), "nothing was compiled")

    def test_a_kernel_by_name(self):
        arguments, environment = self.attention("--force", "attn_prefill_scalar")
        self.assertIn("attn_prefill_scalar<", self.succeed(*arguments, **environment).json["spec"])
        arguments, environment = self.attention("--force", "attn_flash")
        self.fail_with(2, ["attn_flash"], *arguments, **environment)

    def test_the_reference_backend_in_spite_of_a_gpu(self):
        for flags, variables in ((["--backend", "reference"], {}), ([], {"JITNEY_BACKEND": "reference"})):
            arguments, environment = self.attention(*flags, **variables)
            self.assertEqual(self.succeed(*arguments, **environment).json["backend"], "reference")

    def test_a_gpu_that_is_not_there(self):
        arguments, environment = self.attention("--device", "2")
        self.fail_with(1, ["no GPU 2"], *arguments, **environment)

    def test_nothing_to_compute(self):
        empty = ("BF16", [1, 0, 2, 8], [])
        source = self.write("in", safetensors({"q": empty, "k": empty, "v": empty}))
        result = self.succeed(
            "run", "attention", source, "-o", self.path("out"), "--json", **self.driver
        ).json
        self.assertIsNone(result["spec"])

    def test_doctor_sees_the_gpus(self):
        report = self.succeed("doctor", "--json", **self.driver).json
        self.assertEqual([gpu["arch"] for gpu in report["gpus"]], ["sm_90a", "sm_80"])
        self.assertTrue(all(gpu["nvrtc_knows"] for gpu in report["gpus"]))
        old = self.run_command("doctor", "--json", FAKE_CUDA_VERSION="11080", **self.driver)
        self.assertEqual(old.status, 1)
        self.assertIn("11.8", "".join(each["message"] for each in old.json["problems"]))
        bare = {**self.driver, "JITNEY_LIBNVRTC": self.path("absent.so")}
        report = self.run_command("doctor", "--json", **bare)
        self.assertEqual(report.status, 1)
        self.assertIn("import a cache", "".join(each["message"] for each in report.json["problems"]))


if __name__ == "__main__":
    unittest.main()
