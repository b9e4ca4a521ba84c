"""jitney prewarm --linear: what it compiles for linear layers is what their calls launch."""
import json
import random
import unittest

import support

LLAMA = ["6144,4096", "4096,4096", "28672,4096", "4096,14336"]


def of_layers(*weights):
    return [word for weight in weights for word in ("--linear", weight)]


class Linear(support.CommandTest):
    def listed(self, *arguments, arch="sm_90a"):
        specs = self.succeed(
            "prewarm", *arguments, "--arch", arch, "--list", "--json", gpu=False
        ).json["specs"]
        self.assertEqual(len(specs), len(set(specs)))
        return specs

    def launched(self, rows, weight, *flags, arch="sm_90a"):
        columns = weight.split(",")[1]
        answer = self.succeed(
            "explain", "fp8-linear", "--x", f"{rows},{columns}", "--weight", weight, *flags,
            "--arch", arch, "--json", gpu=False,
        ).json
        return {launch["spec"] for launch in answer["launches"]}

    def test_the_layers_of_llama_3_8b(self):
        layers = of_layers(*LLAMA)
        self.assertEqual(len(self.listed(*layers)), 21)
        self.assertEqual(len(self.listed(*layers, "--backward")), 28)
        self.assertEqual(len(self.listed(*layers, "--backward", "--bias", "bf16")), 29)
        single = [spec for weight in LLAMA for spec in self.listed(*of_layers(weight))]
        self.assertEqual(set(single), set(self.listed(*layers)))

    def test_every_call_is_covered(self):
        source = random.Random(support.SEED)
        for weight, arch, flags in (
            ("4096,4096", "sm_90a", []),
            ("28672,4096", "sm_89", ["--recipe", "dynamic", "--dtype", "fp16"]),
            ("1000,777", "sm_100", ["--bias", "fp32", "--fp8-format", "e5m2"]),
            ("6144,4096", "sm_120", ["--fast-accum"]),
        ):
            layers = of_layers(weight)
            forward = set(self.listed(*layers, *flags, arch=arch))
            both = set(self.listed(*layers, *flags, "--backward", arch=arch))
            self.assertLess(forward, both)
            for _ in range(12):
                rows = source.randrange(1, source.choice([64, 1024, 8193]))
                with self.subTest(weight=weight, arch=arch, rows=rows):
                    self.assertLessEqual(self.launched(rows, weight, *flags, arch=arch), forward)
                    for more in ("--save", "--backward"):
                        self.assertLessEqual(
                            self.launched(rows, weight, *flags, more, arch=arch), both
                        )

    def test_rows(self):
        layer = of_layers("4096,4096")
        self.assertEqual(set(self.listed(*layer, "--rows", "64")), self.launched(64, "4096,4096"))
        self.assertEqual(self.listed(*layer, "--rows", "64..64"), self.listed(*layer, "--rows", "64"))
        self.assertEqual(self.listed(*layer, "--rows", "1..8192"), self.listed(*layer))
        few = set(self.listed(*layer, "--rows", "1..16"))
        self.assertLess(few, set(self.listed(*layer)))
        self.assertEqual(
            few, {spec for rows in range(1, 17) for spec in self.launched(rows, "4096,4096")}
        )

    def test_multiprocessors(self):
        layers = of_layers(*LLAMA)
        self.assertEqual(self.listed(*layers, "--sms", "132"), self.listed(*layers))
        self.assertNotEqual(set(self.listed(*layers, "--sms", "60")), set(self.listed(*layers)))

    def test_together_with_other_sources(self):
        config = self.write("config.json", json.dumps(
            {"hidden_size": 4096, "num_attention_heads": 32, "torch_dtype": "bfloat16"}
        ))
        layer = of_layers("4096,4096")
        model = self.listed("--model", config)
        spec = "rotary_emb<format=fp32,style=interleaved,pairs=1>@sm_80"
        self.assertEqual(
            self.listed("--model", config, *layer, "--spec", spec),
            model + self.listed(*layer) + [spec],
        )
        two = self.succeed(
            "prewarm", *layer, "--arch", "sm_89", "--arch", "sm_90a", "--list", gpu=False
        ).out.splitlines()
        self.assertEqual(two, self.listed(*layer, arch="sm_89") + self.listed(*layer))

    def test_compiled_once(self):
        arguments = ["prewarm", *of_layers("16,32"), "--rows", "4", "--arch", "sm_90a", "--json"]
        first = self.succeed(*arguments, gpu=False).json
        self.assertEqual((first["compiled"], first["failed"]), (3, 0))
        second = self.succeed(*arguments, gpu=False).json
        self.assertEqual((second["compiled"], second["cached"]), (0, 3))

    def test_options_that_cannot_be_meant(self):
        layer = of_layers("4096,4096")

        def refuse(words, *arguments):
            with self.subTest(arguments=arguments):
                self.fail_with(2, words, "prewarm", *arguments, gpu=False)

        for option in (["--rows", "1..2"], ["--backward"], ["--sms", "9"], ["--recipe", "dynamic"],
                       ["--fp8-format", "e4m3"], ["--dtype", "fp16"], ["--bias", "bf16"], ["--fast-accum"]):
            refuse([option[0], "--linear"], *option)
        refuse(["--linear", "--arch"], *layer)
        refuse(["--arch", "--linear"], "--arch", "sm_90a")
        on_hopper = ["--arch", "sm_90a"]
        for rows in ("0", "0..5", "5..4", "1..", "..4", "1...4", "1..x", "-1..4", "1..1048577"):
            refuse(["--rows"], *layer, *on_hopper, "--rows", rows)
        for weight in ("4096", "1,2,3", "0,16", "16,0", "16,x", "16,2147418113", ""):
            refuse(["--linear"], "--linear", weight, *on_hopper)
        refuse(["sm_80", "explain fp8-linear"], *layer, "--arch", "sm_80")
        refuse(["sm_80"], *layer, *on_hopper, "--arch", "sm_80")
        refuse(["--sms", "--arch"], *layer, "--sms", "60")
        refuse(["--sms", "several"], *layer, "--sms", "60", "--arch", "sm_89", *on_hopper)
        refuse(["--sms", "0"], *layer, "--sms", "0", *on_hopper)
        refuse(["--bias", "fp16"], *layer, "--bias", "fp16", *on_hopper)


if __name__ == "__main__":
    unittest.main()
