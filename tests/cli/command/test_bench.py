"""jitney bench: what it reports, not how fast it is."""
import unittest

import support


class Bench(support.CommandTest):
    def bench(self, *arguments, **options):
        return self.succeed("bench", *arguments, "--samples", "3", "--json", **options).json

    def check(self, result, operation):
        self.assertEqual(result["op"], operation)
        self.assertEqual(result["samples"], 3)
        self.assertGreater(result["p10_ms"], 0)
        self.assertLessEqual(result["p10_ms"], result["median_ms"])
        self.assertLessEqual(result["median_ms"], result["p90_ms"])
        self.assertGreater(result["gbs"], 0)
        self.assertEqual(result["copy_gbs"] is None, result["backend"] == "reference")

    def test_attention_and_rotary_here(self):
        problem = ["--q", "1,64,4,32", "--kv", "1,64,2,32"]
        result = self.bench("attention", *problem)
        self.check(result, "attention")
        flops = 4 * 4 * 64 * 64 * 32
        self.assertAlmostEqual(result["tflops"], flops / result["median_ms"] / 1e9, places=9)
        self.check(self.bench("rotary", "--q", "1,16,8,64", "--k", "1,16,2,64"), "rotary")

    def test_fp8_gemm(self):
        problem = ["--a", "64,48", "--b", "32,48", "--trans-b", "--out", "e4m3", "--amax"]
        result = self.bench("fp8-gemm", *problem, "--bias", "bf16", gpu=False)
        self.check(result, "fp8-gemm")
        flops = 2 * 64 * 32 * 48
        self.assertAlmostEqual(result["tflops"], flops / result["median_ms"] / 1e9, places=12)

    def test_without_a_gpu(self):
        problem = ["--q", "1,16,2,8", "--causal", "--mask", "1,16", "--format", "fp32"]
        result = self.bench("attention", *problem, gpu=False)
        self.check(result, "attention")
        self.assertEqual((result["backend"], result["spec"], result["share"]), ("reference", None, None))
        self.assertAlmostEqual(
            # 16 * 17 / 2 pairs of a query and a key that it sees
            result["tflops"], 4 * 2 * 136 * 8 / result["median_ms"] / 1e9, places=12
        )
        people = self.succeed("bench", "rotary", "--q", "1,16,8,64", "--samples", "2", gpu=False)
        self.assertIn("reference backend", people.out)
        self.assertIn("GB/s", people.out)

    def test_requests_and_pages(self):
        def check(pairs, *problem):
            with self.subTest(problem=problem):
                # 2 heads of 8 elements
                result = self.bench("attention", *problem, "--format", "fp32", gpu=False)
                self.check(result, "attention")
                self.assertAlmostEqual(
                    result["tflops"], 4 * 2 * pairs * 8 / result["median_ms"] / 1e9, places=12
                )

        decode = ["--q", "3,1,2,8", "--kv", "3,50,1,8"]
        check(3 * 50, *decode, "--lengths")
        check(3 * 50, *decode, "--page-size", "1")
        check(3 * 50, *decode, "--page-size", "16", "--append", "1", "--sinks", "--alibi")
        check(3 * 11, *decode, "--page-size", "16", "--causal", "--window-left", "10")
        ragged = ["--q", "10,2,8", "--q-lens", "7,0,3", "--causal"]
        check(28 + 6, *ragged)
        check(28 + 4 * 3 + 6, *ragged, "--kv", "3,7,2,8", "--page-size", "4")
        check(5 + 4 + 4 + 5 + 4 + 4, "--q", "6,2,8", "--q-lens", "2,2,2", "--kv", "13,2,8", "--window-right", "99")
        people = self.succeed("bench", "attention", *ragged, "--samples", "2", gpu=False)
        self.assertIn("TFLOPS", people.out)
        self.assertIn(", 2 samples\n", people.out)
        people = self.succeed("bench", "attention", *ragged, "--samples", "1", gpu=False)
        self.assertIn(", 1 sample\n", people.out)

    def test_problems_that_cannot_be_meant(self):
        self.fail_with(2, ["--q"], "bench", "attention")
        self.fail_with(2, ["--q"], "bench", "attention", "--q", "1,2,3")
        self.fail_with(2, ["--samples"], "bench", "rotary", "--q", "1,2,2,8", "--samples", "0")
        self.fail_with(2, ["nothing"], "bench", "rotary", "--q", "0,2,2,8", gpu=False)
        self.fail_with(2, [], "bench", "attention", "--q", "1,8,8,64", "--kv", "1,8,3,64", gpu=False)
        self.fail_with(1, ["memory"], "bench", "rotary", "--q", "1,1000000,1000000,1000000", gpu=False)
        self.fail_with(
            1, ["takes 69206 GB", "of memory", "smaller"],
            "bench", "attention", "--q", "1000000,4096,32,128", "--kv", "1000000,4096,1,128", gpu=False,
        )
        self.fail_with(
            2, ["--device", "--backend reference"],
            "bench", "rotary", "--q", "1,2,2,8", "--backend", "reference", "--device", "3", gpu=False,
        )
        self.fail_with(1, ["driver"], "bench", "rotary", "--q", "1,2,2,8", "--backend", "jit", gpu=False)


if __name__ == "__main__":
    unittest.main()
