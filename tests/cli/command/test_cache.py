"""jitney cache, over entries that prewarm makes."""
import os
import pathlib
import stat as modes
import unittest

import support

SPECS = [
    "rotary_emb<format=bf16,style=interleaved,pairs=4>@sm_80",
    "rotary_emb<format=fp16,style=half_split,pairs=8>@sm_80",
]


class Cache(support.CommandTest):
    def fill(self):
        self.succeed("prewarm", "--spec", SPECS[0], "--spec", SPECS[1])

    def entries(self, **environment):
        return self.succeed("cache", "list", "--json", **environment).json["entries"]

    def test_an_empty_cache(self):
        self.assertEqual(self.entries(), [])
        stat = self.succeed("cache", "stat", "--json").json
        self.assertEqual((stat["root"], stat["entries"], stat["bytes"]), (self.cache, 0, 0))
        self.assertEqual(stat["max_bytes"], 1 << 30)
        verify = self.succeed("cache", "verify", "--json").json
        self.assertEqual(verify, {"checked": 0, "bad": [], "other_versions": 0, "unread": []})
        self.assertFalse(os.path.exists(self.cache), "looking makes nothing")
        self.assertEqual(self.succeed("cache", "list").out, "0 entries, 0 B\n")

    def test_list_and_stat(self):
        self.fill()
        entries = self.entries()
        self.assertEqual([entry["spec"] for entry in entries], sorted(SPECS))
        for entry in entries:
            self.assertRegex(entry["digest"], "^[0-9a-f]{32}$")
            self.assertRegex(entry["nvrtc"], r"^nvrtc\d+\.\d+$")
            self.assertGreater(entry["last_used"], 1_600_000_000)
            self.assertEqual(os.path.getsize(entry["path"]), entry["bytes"])
        stat = self.succeed("cache", "stat", "--json").json
        self.assertEqual(stat["entries"], 2)
        self.assertEqual(stat["bytes"], sum(entry["bytes"] for entry in entries))
        self.assertIn(SPECS[0], self.succeed("cache", "list").out)
        self.assertIn(self.cache, self.succeed("cache", "stat").out)

    def test_verify_finds_a_damaged_entry(self):
        self.fill()
        self.assertEqual(self.succeed("cache", "verify", "--json").json["checked"], 2)
        victim = self.entries()[0]["path"]
        with open(victim, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))
        outcome = self.fail_with(1, ["1 of 2 entries"], "cache", "verify", "--json")
        self.assertEqual(outcome.json["checked"], 2)
        (bad,) = outcome.json["bad"]
        self.assertEqual(bad["file"], victim)
        self.assertTrue(bad["reason"])
        self.assertIn(victim, self.run_command("cache", "verify").out)

    def test_a_damaged_entry_of_a_read_only_layer_stays(self):
        self.fill()
        layers = {"JITNEY_CACHE_DIR": self.path("mine") + ":" + self.cache}
        with open(self.entries()[0]["path"], "ab") as file:
            file.write(b"more")
        outcome = self.fail_with(1, ["1 of 2 entries", "read-only"], "cache", "verify", **layers)
        self.assertNotIn("are replaced by it", outcome.err)
        self.assertIn("are replaced by it", self.run_command("cache", "verify").err)

    def test_entries_of_another_version_are_no_faults(self):
        self.fill()
        first, second = self.entries()
        with open(first["path"], "r+b") as file:
            file.seek(8)
            file.write(b"\x63")  # the schema
        verify = self.succeed("cache", "verify", "--json").json
        self.assertEqual(verify, {"checked": 1, "bad": [], "other_versions": 1, "unread": []})
        self.assertEqual(self.succeed("cache", "verify").out,
                         "1 entry checked, 0 bad, and 1 of another version of Jitney\n")
        listed = self.succeed("cache", "list", "--json").json
        self.assertEqual([entry["path"] for entry in listed["entries"]], [second["path"]])
        stat = self.succeed("cache", "stat", "--json").json
        for report in (listed, stat):
            self.assertEqual((report["damaged"], report["other_versions"]), (0, 1))
        self.assertTrue(os.path.exists(first["path"]))

    def test_what_can_not_be_removed(self):
        self.fill()
        user = self.plain_user()
        shards = [os.path.dirname(entry["path"]) for entry in self.entries(**user)]
        for place in (*shards, self.cache):
            os.chmod(place, 0o500)
        self.fail_with(1, ["2 entries could not be removed"], "cache", "clear", **user)
        outcome = self.fail_with(1, ["2 entries could not be removed"],
                                 "cache", "prune", "--max-bytes", "1", "--json", **user)
        self.assertEqual((outcome.json["removed"], outcome.json["entries"]), (0, 2))
        self.assertEqual(self.succeed("cache", "prune", **user).out[:18], "removed 0 entries,")
        # Nothing can be added, and what is there is used.
        report = self.run_command("doctor", "--json", **user).json
        cache = report["cache"]
        self.assertEqual((cache["usable"], cache["writable"], cache["entries"]), (True, False, 2))
        (fault,) = [each["message"] for each in report["problems"] if self.cache in each["message"]]
        self.assertIn("its entries are used", fault)
        self.assertNotIn("is not used", fault)
        for place in (*shards, self.cache):
            os.chmod(place, 0o700)

    def test_a_directory_that_is_named_twice(self):
        self.fill()
        twice = {"JITNEY_CACHE_DIR": self.cache + ":" + self.cache + "/"}
        self.assertEqual(len(self.entries(**twice)), 2)
        self.assertEqual(len(self.succeed("cache", "stat", "--json", **twice).json["layers"]), 1)

    def test_import_where_nothing_is_kept(self):
        self.fill()
        self.succeed("cache", "export", self.path("bundle"))
        outcome = self.fail_with(1, ["JITNEY_CACHE_MAX_BYTES=0"], "cache", "import",
                                 self.path("bundle"), JITNEY_CACHE_MAX_BYTES="0")
        self.assertNotIn("JITNEY_CACHE_DIR", outcome.err)

    def test_list_and_stat_agree_about_a_damaged_entry(self):
        self.fill()
        first, second = self.entries()
        for damage in (
            lambda path: os.truncate(path, 10),
            lambda path: self.write(path, b"no entry at all" * 100),
            lambda path: self.write(path, pathlib.Path(second["path"]).read_bytes()),
        ):
            damage(first["path"])
            listed = self.succeed("cache", "list", "--json").json
            self.assertEqual([entry["path"] for entry in listed["entries"]], [second["path"]])
            stat = self.succeed("cache", "stat", "--json").json
            self.assertEqual((stat["entries"], stat["bytes"]), (1, second["bytes"]))
            self.assertEqual((listed["damaged"], stat["damaged"]), (1, 1))
            (bad,) = stat["layers"][0]["damaged"]
            self.assertEqual(bad["file"], first["path"])
            self.assertTrue(bad["reason"])
            for command in ("list", "stat"):
                self.assertIn("1 damaged file, which jitney cache verify names",
                              self.succeed("cache", command).out)
            self.assertIn(first["path"], self.run_command("cache", "verify").out)

    def test_prune_keeps_what_was_used_last(self):
        self.fill()
        first, second = self.entries()
        os.utime(first["path"], (1_600_000_000, 1_600_000_000))
        removal = self.succeed("cache", "prune", "--max-bytes", str(second["bytes"]), "--json").json
        self.assertEqual(
            removal,
            {
                "removed": 1,
                "removed_bytes": first["bytes"],
                "removed_temporary": {"files": 0, "bytes": 0},
                "entries": 1,
                "bytes": second["bytes"],
                "temporary": {"files": 0, "bytes": 0},
                "unread": [],
            },
        )
        self.assertEqual([entry["spec"] for entry in self.entries()], [second["spec"]])
        self.assertEqual(self.succeed("cache", "prune", "--max-bytes", "1G", "--json").json["removed"], 0)

    def test_prune_refuses_what_is_no_size(self):
        for size in ("-1", "many", "1T", "99999999999999999999"):
            self.fail_with(2, ["--max-bytes", size], "cache", "prune", "--max-bytes", size)

    def test_clear(self):
        self.fill()
        self.assertEqual(self.succeed("cache", "clear", "--json").json["removed"], 2)
        self.assertEqual(self.entries(), [])

    def test_export_and_import(self):
        self.fill()
        bundle = self.path("bundle")
        self.assertEqual(self.succeed("cache", "export", bundle, "--json").json["exported"], 2)
        other = {"JITNEY_CACHE_DIR": self.path("other")}
        report = self.succeed("cache", "import", bundle, "--json", **other).json
        self.assertEqual((report["imported"], report["present"], report["bad"]), (2, 0, []))
        self.assertEqual(len(self.entries(**other)), 2)
        again = self.succeed("cache", "import", bundle, "--json", **other).json
        self.assertEqual((again["imported"], again["present"]), (0, 2))
        # What was imported is what prewarm would have compiled.
        summary = self.succeed("prewarm", "--spec", SPECS[0], "--json", **other).json
        self.assertEqual((summary["compiled"], summary["cached"]), (0, 1))

    def test_import_of_what_is_no_bundle(self):
        self.fail_with(1, ["absent"], "cache", "import", self.path("absent"))
        self.fail_with(1, ["not a bundle"], "cache", "import", self.write("text", "hello"))
        self.fail_with(1, ["not a bundle"], "cache", "import", self.write("empty", ""))
        self.fail_with(1, [self.directory], "cache", "import", self.directory)

    def test_import_of_a_truncated_bundle(self):
        self.fill()
        self.succeed("cache", "export", self.path("bundle"))
        with open(self.path("bundle"), "rb") as file:
            whole = file.read()
        short = self.write("short", whole[:-10])
        outcome = self.fail_with(
            1, ["could not be imported"], "cache", "import", short, "--json",
            JITNEY_CACHE_DIR=self.path("other"),
        )
        self.assertEqual(outcome.json["imported"], 1)
        self.assertEqual(len(outcome.json["bad"]), 1)

    def test_export_replaces_files_alone(self):
        self.fill()
        os.mkfifo(self.path("pipe"))
        self.fail_with(1, ["no regular file"], "cache", "export", self.path("pipe"))
        self.assertTrue(modes.S_ISFIFO(os.stat(self.path("pipe")).st_mode))
        self.fail_with(1, ["no regular file"], "cache", "export", self.path("."))
        with open(self.path("real"), "wb"):
            pass
        os.symlink("real", self.path("link"))
        self.succeed("cache", "export", self.path("link"))
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertGreater(os.path.getsize(self.path("real")), 0)

    def test_export_to_where_nothing_can_be_written(self):
        self.fill()
        self.fail_with(1, ["can't export"], "cache", "export", self.path("no/such/directory/bundle"))

    def commands(self):
        """Every command that looks at the directories."""
        return (["list"], ["stat"], ["verify"], ["prune"], ["clear"], ["export", self.path("bundle")])

    def test_a_directory_that_others_can_write(self):
        self.fill()
        os.chmod(self.cache, 0o777)
        for command in self.commands():
            with self.subTest(command=command):
                people = self.fail_with(1, [self.cache, "not used", "0777"], "cache", *command)
                self.assertEqual(people.err.count("\n"), 1, "one line, no warning beside it")
                self.fail_with(1, [self.cache, "not used"], "cache", *command, "--json")
        self.assertEqual(self.run_command("cache", "list", "--json").json["entries"], [])
        self.assertEqual(self.run_command("cache", "verify", "--json").json["checked"], 0)
        self.assertIn("0777", self.run_command("cache", "stat", "--json").json["layers"][0]["refusal"])
        os.chmod(self.cache, 0o700)
        self.assertEqual(len(self.entries()), 2, "nothing was removed")

    def test_a_directory_of_entries_that_others_can_write(self):
        self.fill()
        shards = [os.path.dirname(entry["path"]) for entry in self.entries()]
        os.chmod(shards[0], 0o770)
        for command in self.commands():
            with self.subTest(command=command):
                self.fail_with(1, [shards[0], "not used", "0770"], "cache", *command)
        stat = self.run_command("cache", "stat", "--json").json
        self.assertEqual([each["file"] for each in stat["layers"][0]["refused"]], [shards[0]])
        self.assertIn(shards[0], self.run_command("doctor").out)
        os.chmod(shards[0], 0o700)
        self.assertEqual(len(self.entries()), 2, "nothing was removed")

    def test_a_cache_that_is_no_directory(self):
        self.write("cache", "a file")
        for command in self.commands():
            with self.subTest(command=command):
                self.fail_with(1, [self.cache, "can't be opened"], "cache", *command)

    def test_a_refused_layer(self):
        """What is used is listed all the same; what touches the private directory alone works."""
        self.fill()
        layer = self.path("layer")
        os.mkdir(layer)
        os.chmod(layer, 0o777)
        layers = {"JITNEY_CACHE_DIR": self.cache + ":" + layer}
        for command in self.commands():
            with self.subTest(command=command):
                if command[0] in ("prune", "clear"):
                    continue
                self.fail_with(1, [layer, "not used"], "cache", *command, **layers)
        listed = self.run_command("cache", "list", "--json", **layers)
        self.assertEqual(len(listed.json["entries"]), 2)
        self.assertEqual(self.succeed("cache", "prune", "--json", **layers).json["entries"], 2)
        self.assertEqual(self.succeed("cache", "clear", "--json", **layers).json["removed"], 2)

    def test_a_file_where_a_directory_of_entries_belongs(self):
        self.fill()
        shard = os.path.dirname(self.entries()[0]["path"])
        os.rename(shard, self.path("moved"))
        self.write(os.path.join("cache", os.path.basename(shard)), "text")
        for command in self.commands():
            with self.subTest(command=command):
                self.fail_with(1, [shard, "is a file", "remove it"], "cache", *command)
        stat = self.run_command("cache", "stat", "--json").json
        self.assertEqual([each["file"] for each in stat["layers"][0]["refused"]], [shard])
        (unread,) = self.run_command("cache", "verify", "--json").json["unread"]
        self.assertEqual(unread["file"], shard)

    def test_what_can_not_be_read_is_named(self):
        self.fill()
        user = self.plain_user()
        hidden, shown = self.entries(**user)
        os.chmod(hidden["path"], 0)
        for command in (["list"], ["stat"], ["verify"], ["export", self.path("bundle")]):
            with self.subTest(command=command):
                outcome = self.fail_with(1, [hidden["path"], "Permission denied"],
                                         "cache", *command, **user)
                self.assertNotIn(shown["path"], outcome.err)
        report = self.run_command("cache", "verify", "--json", **user).json
        self.assertEqual((report["checked"], report["bad"]), (1, []))
        self.assertEqual([each["file"] for each in report["unread"]], [hidden["path"]])
        os.chmod(hidden["path"], 0o600)

    def test_what_stopped_processes_left(self):
        self.fill()
        shard = os.path.dirname(self.entries()[0]["path"])
        self.write(os.path.join("cache", os.path.basename(shard), ".tmp-1-0-a"), "half")
        stat = self.succeed("cache", "stat", "--json").json
        self.assertEqual(stat["temporary"], {"files": 1, "bytes": 4, "abandoned": 1})
        self.assertEqual(stat["layers"][0]["temporary"], stat["temporary"])
        self.assertIn("1 temporary file, 4 B (1 left by", self.succeed("cache", "stat").out)
        removal = self.succeed("cache", "prune", "--json").json
        self.assertEqual(removal["removed_temporary"], {"files": 1, "bytes": 4})
        self.assertEqual(removal["entries"], 2)
        self.assertEqual(self.succeed("cache", "stat", "--json").json["temporary"]["files"], 0)

    def test_an_import_that_does_not_fit(self):
        self.fill()
        sizes = [entry["bytes"] for entry in self.entries()]
        self.succeed("cache", "export", self.path("bundle"))
        small = {"JITNEY_CACHE_DIR": self.path("other"), "JITNEY_CACHE_MAX_BYTES": str(max(sizes))}
        outcome = self.fail_with(1, ["1 entry of", "did not fit", "JITNEY_CACHE_MAX_BYTES"],
                                 "cache", "import", self.path("bundle"), "--json", **small)
        self.assertEqual((outcome.json["imported"], outcome.json["left_out"]), (1, 1))
        self.assertEqual(len(self.entries(**small)), 1)

    def test_foreign_text_is_shown_and_not_obeyed(self):
        """A name may hold anything, and makes neither a line of its own nor moves the cursor."""
        evil = self.path("a\n\x1b[2Jfake<x=1>@sm_90a  nvrtc13.0")
        os.makedirs(evil, 0o700)
        os.chmod(evil, 0o777)
        for command in (["list"], ["stat"], ["verify"]):
            outcome = self.run_command("cache", *command, JITNEY_CACHE_DIR=evil)
            self.assertEqual(outcome.status, 1)
            for text in (outcome.out, outcome.err):
                self.assertNotIn("\x1b", text)
                self.assertNotIn("\nfake", text)
            self.assertIn("\\n\\x1b[2Jfake", outcome.err)
        for arguments in (["explain", "rotary\x1b[2J"], ["prewarm", "--spec", "x\n\x1b<y=1>@sm_80"],
                          ["prewarm", "--model", "a\x1bb\nc"]):
            outcome = self.run_command(*arguments)
            self.assertNotEqual(outcome.status, 0)
            self.assertNotIn("\x1b", outcome.err)
            self.assertEqual(outcome.err.count("\n"), 1)

    def test_no_directory_at_all(self):
        nowhere = {"JITNEY_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": ""}
        for command in self.commands():
            with self.subTest(command=command):
                outcome = self.run_command("cache", *command, **nowhere)
                self.assertEqual(outcome.status, 1, outcome.out)
                self.assertIn("jitney: error: there is no cache directory", outcome.err)

    def test_a_read_only_layer_is_listed_and_left_alone(self):
        self.fill()
        layers = {"JITNEY_CACHE_DIR": self.path("mine") + ":" + self.cache}
        self.assertEqual(len(self.entries(**layers)), 2)
        self.assertEqual(self.succeed("cache", "clear", "--json", **layers).json["removed"], 0)
        self.assertEqual(len(self.entries()), 2)


if __name__ == "__main__":
    unittest.main()
