"""The command line itself: help, versions, what is unknown, and streams that can't be written."""
import os
import subprocess
import unittest

import support

COMMANDS = [
    [],
    ["prewarm"],
    ["run"],
    ["run", "attention"],
    ["run", "rotary"],
    ["explain"],
    ["explain", "attention"],
    ["explain", "rotary"],
    ["cache"],
    ["cache", "list"],
    ["cache", "stat"],
    ["cache", "verify"],
    ["cache", "prune"],
    ["cache", "clear"],
    ["cache", "export"],
    ["cache", "import"],
    ["doctor"],
    ["bench"],
    ["bench", "attention"],
    ["bench", "rotary"],
]


class Line(support.CommandTest):
    def test_every_command_has_help_and_json(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                outcome = self.succeed(*command, "--help")
                self.assertIn(" ".join(["jitney", *command]), outcome.out)
                self.assertIn("--json", outcome.out)
                self.assertEqual(outcome.err, "")

    def test_version(self):
        self.assertRegex(self.succeed("--version").out, r"^jitney \d+\.\d+\.\d+\n$")
        version = self.succeed("--version", "--json").json["version"]
        self.assertRegex(version, r"^\d+\.\d+\.\d+$")

    def test_what_is_missing(self):
        self.fail_with(2, ["jitney needs a subcommand", "prewarm", "doctor"])
        self.fail_with(2, ["jitney cache needs a subcommand", "list", "verify"], "cache")
        self.fail_with(2, ["jitney run needs a subcommand", "attention"], "run", "--json")
        self.fail_with(2, ["IN is required", "jitney run attention --help"], "run", "attention")
        self.fail_with(2, ["--output"], "run", "rotary", "in.safetensors")
        self.fail_with(2, ["--q"], "explain", "attention", "--arch", "sm_80")

    def test_what_is_unknown(self):
        self.fail_with(2, ["no subcommand \"dance\"", "explain"], "dance")
        self.fail_with(2, ["jitney cache has no subcommand \"lists\""], "cache", "lists")
        self.fail_with(2, ["jitney cache list has no option --frob"], "cache", "list", "--frob")
        self.fail_with(2, ["jitney has no option --frob"], "--frob", "doctor")
        self.fail_with(2, ["jitney doctor takes no argument \"now\""], "doctor", "now")

    def test_an_option_without_its_value(self):
        self.fail_with(2, ["--max-bytes"], "cache", "prune", "--max-bytes")

    def test_json_may_stand_anywhere(self):
        for arguments in (["--json", "cache", "stat"], ["cache", "--json", "stat"]):
            self.assertEqual(self.succeed(*arguments).json["entries"], 0)

    def test_an_error_is_one_line(self):
        outcome = self.fail_with(2, ["no subcommand"], "cache", "a\tb\x1b[31m")
        self.assertEqual(outcome.err.count("\n"), 1)
        self.assertNotIn("\x1b", outcome.err)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.fail_output(full)

    def fail_output(self, stream):
        outcome = self.run_command("cache", "stat", stdout=stream)
        self.assertEqual(outcome.status, 1)
        self.assertIn("jitney: error: can't write to standard output", outcome.err)

    def test_a_reader_that_left(self):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "w") as stream:
            outcome = self.run_command("cache", "stat", stdout=stream)
        # Ended by the signal, as any filter; or, where it is ignored, with an error.
        self.assertIn(outcome.status, (-13, 1))

    def test_a_closed_output_takes_no_file(self):
        # The output file must not become standard output.
        done = subprocess.run(
            [support.COMMAND, "cache", "export", self.path("bundle")],
            env={**os.environ, "JITNEY_CACHE_DIR": self.cache},
            preexec_fn=lambda: os.close(1),
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("can't write to standard output", done.stderr)
        with open(self.path("bundle"), "rb") as file:
            self.assertNotIn(b"exported", file.read())


if __name__ == "__main__":
    unittest.main()
