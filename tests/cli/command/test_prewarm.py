"""jitney prewarm: specializations from the line and from manifests, for several architectures."""
import os
import threading
import unittest

import support

ROTARY_80 = "rotary_emb<format=bf16,style=interleaved,pairs=4>@sm_80"
ROTARY_90A = "rotary_emb<format=bf16,style=interleaved,pairs=4>@sm_90a"


class Prewarm(support.CommandTest):
    def prewarm(self, *arguments, **options):
        return self.succeed("prewarm", *arguments, "--json", **options).json

    def test_two_architectures_then_nothing(self):
        arguments = ["--spec", ROTARY_80, "--spec", ROTARY_90A, "--jobs", "2"]
        first = self.prewarm(*arguments, gpu=False)
        self.assertEqual((first["compiled"], first["cached"], first["failed"]), (2, 0, 0))
        self.assertEqual([entry["spec"] for entry in first["entries"]], [ROTARY_80, ROTARY_90A])
        self.assertGreater(first["seconds"], 0)
        for entry in first["entries"]:
            self.assertEqual(entry["status"], "compiled")
            self.assertGreater(entry["bytes"], 500)
            self.assertGreater(entry["ms"], 0)
            self.assertEqual(entry["error"], "")
        second = self.prewarm(*arguments, gpu=False)
        self.assertEqual((second["compiled"], second["cached"], second["failed"]), (0, 2, 0))
        self.assertEqual(
            [entry["bytes"] for entry in second["entries"]],
            [entry["bytes"] for entry in first["entries"]],
        )

    def test_the_specialization_of_an_explanation(self):
        chosen = self.succeed(
            "explain", "attention", "--q", "4,28,12,32", "--mask", "4,28", "--arch", "sm_90a", "--json"
        ).json["chosen"]
        self.assertEqual(self.prewarm("--spec", chosen)["compiled"], 1)
        listed = self.succeed("cache", "list", "--json").json["entries"]
        self.assertEqual([entry["spec"] for entry in listed], [chosen])

    def test_for_people(self):
        outcome = self.succeed("prewarm", "--spec", ROTARY_80)
        self.assertIn(ROTARY_80, outcome.out)
        self.assertIn("compiled 1, cached 0, failed 0", outcome.out)
        self.assertEqual(outcome.err, "", "no progress bar where stderr is no terminal")

    def test_a_manifest(self):
        manifest = self.write(
            "manifest", f"# for the fleet\n\n  {ROTARY_80}  # A100\r\n{ROTARY_90A}\n{ROTARY_80}"
        )
        summary = self.prewarm("--manifest", manifest)
        self.assertEqual([entry["spec"] for entry in summary["entries"]], [ROTARY_80, ROTARY_90A])
        both = self.prewarm("--manifest", manifest, "--spec", ROTARY_90A)
        self.assertEqual((both["compiled"], both["cached"]), (0, 2))

    def test_more_shared_memory_than_a_gpu_has(self):
        spec = ("fp8_gemm_mma<a=e4m3,b=e4m3,out=bf16,tile=128x128,stages=16,trans_a=0,"
                "trans_b=0,promote=1>@sm_89")
        self.fail_with(2, ["bytes of shared memory", "sm_89 has 101376", spec],
                       "prewarm", "--spec", spec)

    def test_a_logits_function(self):
        spec = ("attn_decode_scalar<head_dim=64,format=fp32,tile=4x32,kv=dense,causal=0,"
                "logits=47b4bc82c5089c83>@sm_80")  # of the text "score"
        function = self.write("function", "score")
        self.assertEqual(self.prewarm("--spec", spec, "--logits", function)["compiled"], 1)
        self.assertEqual(self.prewarm("--spec", spec, "--logits", function)["cached"], 1)
        # With what an editor leaves around it; and a program's, with its declarations apart.
        for text in ("score\n", "\r\n  score\r\n"):
            again = self.prewarm("--spec", spec, "--logits", self.write("again", text))
            self.assertEqual(again["cached"], 1)
        self.fail_with(2, ["--logits"], "prewarm", "--spec", spec)
        other = self.write("other", "param float x\nscore * x\n")
        self.fail_with(2, ["logits=47b4bc82c5089c83", f"{other} has the digest e896da1a22c65f1f"],
                       "prewarm", "--spec", spec, "--logits", other)
        self.fail_with(2, ["empty"], "prewarm", "--spec", spec, "--logits", self.write("no", " "))

    def test_a_manifest_through_a_pipe(self):
        text = f"# from elsewhere\n{ROTARY_80}\n"
        outcome = self.succeed("prewarm", "--manifest", "/dev/stdin", "--json", stdin=text)
        self.assertEqual([entry["spec"] for entry in outcome.json["entries"]], [ROTARY_80])
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        writer = threading.Thread(target=lambda: self.write("pipe", text))
        writer.start()
        listed = self.succeed("prewarm", "--manifest", pipe, "--list").out
        writer.join()
        self.assertEqual(listed, ROTARY_80 + "\n")
        self.fail_with(2, ["/dev/stdin:1:"], "prewarm", "--manifest", "/dev/stdin", stdin="no")
        self.fail_with(2, ["/dev/zero", "too many"], "prewarm", "--manifest", "/dev/zero")

    def test_a_byte_order_mark(self):
        marked = self.write("marked", b"\xef\xbb\xbf" + ROTARY_80.encode() + b"\r\n")
        self.assertEqual(self.succeed("prewarm", "--manifest", marked, "--list").out, ROTARY_80 + "\n")
        inside = self.write("inside", b"\n\xef\xbb\xbf" + ROTARY_80.encode())
        self.fail_with(2, [f"{inside}:2:"], "prewarm", "--manifest", inside)

    def test_options_of_a_model_without_one(self):
        for option, value in (("--kv-cache", "both"), ("--format", "bf16"), ("--style", "half_split"),
                              ("--arch", "sm_80")):
            self.fail_with(2, [option, "--model"], "prewarm", "--spec", ROTARY_80, option, value)
            self.fail_with(2, [option, "--model"], "prewarm", option, value)

    def test_architectures_that_there_are_not(self):
        for arch, words in (("sm_77", ["no GPU is sm_77", "sm_90a"]),
                            ("sm_95", ["no GPU is sm_95", "sm_90a"]),
                            ("sm_12", ["needs sm_75 or newer"])):
            self.fail_with(2, words, "prewarm", "--spec", ROTARY_80.replace("sm_80", arch))

    def test_an_empty_manifest_is_nothing_to_do(self):
        summary = self.prewarm("--manifest", self.write("manifest", "# nothing yet\n"))
        self.assertEqual((summary["compiled"], summary["entries"]), (0, []))

    def test_a_manifest_names_the_line(self):
        manifest = self.write("manifest", f"{ROTARY_80}\n\nrotary_emb<format=bf17>@sm_80\n")
        self.fail_with(2, [f"{manifest}:3:"], "prewarm", "--manifest", manifest)
        self.assertEqual(self.succeed("cache", "list", "--json").json["entries"], [])

    def test_manifests_that_are_none(self):
        self.fail_with(1, ["absent"], "prewarm", "--manifest", self.path("absent"))
        self.fail_with(1, [self.directory], "prewarm", "--manifest", self.directory)
        binary = self.write("binary", bytes(range(256)))
        self.fail_with(2, [f"{binary}:1:"], "prewarm", "--manifest", binary)

    def test_texts_that_are_no_specialization(self):
        for text in (
            "",
            "rotary_emb",
            "attn_flash<head_dim=64>@sm_80",
            "rotary_emb<format=bf16,style=interleaved,pairs=4>",
            "rotary_emb<format=bf16,style=interleaved,pairs=4>@sm_xyz",
            "rotary_emb<format=bf16,style=interleaved,pairs=99999999999>@sm_80",
            "attn_prefill_mma<head_dim=-8,format=bf16,tile=64x64,kv=dense,causal=1>@sm_80",
        ):
            with self.subTest(text=text):
                self.fail_with(2, [], "prewarm", "--spec", text)

    def test_one_wrong_text_stops_all(self):
        old = ROTARY_80.replace("sm_80", "sm_30")
        self.fail_with(2, [old], "prewarm", "--spec", ROTARY_80, "--spec", old)
        self.assertEqual(self.succeed("cache", "list", "--json").json["entries"], [])

    def test_without_a_compiler(self):
        missing = self.path("libnvrtc.so")
        outcome = self.run_command(
            "prewarm", "--spec", ROTARY_90A, "--spec", ROTARY_80, "--json", JITNEY_LIBNVRTC=missing
        )
        self.assertEqual(outcome.status, 1)
        self.assertEqual(outcome.json["failed"], 2)
        for entry in outcome.json["entries"]:
            self.assertEqual(entry["status"], "failed")
            self.assertIn(missing, entry["error"])
        self.assertTrue(outcome.err.startswith("jitney: error: "), outcome.err)

    def test_a_cache_that_cannot_be_written(self):
        blocked = self.write("file", "") + "/cache"
        outcome = self.run_command("prewarm", "--spec", ROTARY_80, "--json", JITNEY_CACHE_DIR=blocked)
        self.assertEqual(outcome.status, 1)
        self.assertEqual(outcome.json["failed"], 1)

    def test_numbers_of_jobs(self):
        for jobs in ("0", "-1", "two", "1.5", "99999999999999999999"):
            self.fail_with(2, ["--jobs", jobs], "prewarm", "--spec", ROTARY_80, "--jobs", jobs)

    def test_nothing_asked_for(self):
        self.fail_with(2, ["--spec", "--manifest"], "prewarm")


if __name__ == "__main__":
    unittest.main()
