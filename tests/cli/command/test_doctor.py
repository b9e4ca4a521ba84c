"""jitney doctor: on whole, bare and broken machines."""
import os
import shutil
import unittest

import support


class Doctor(support.CommandTest):
    def doctor(self, **environment):
        outcome = self.run_command("doctor", "--json", **environment)
        return outcome.status, outcome.json

    def faults(self, report):
        return [each["message"] for each in report["problems"] if each["fault"]]

    def test_this_machine(self):
        status, report = self.doctor()
        self.assertEqual(status, 0, report)
        self.assertTrue(report["ok"])
        self.assertTrue(report["verdict"])
        self.assertEqual(report["driver"]["usable"], bool(report["gpus"]))
        for gpu in report["gpus"]:
            self.assertRegex(gpu["arch"], r"^sm_\d+a?$")
            self.assertGreater(gpu["sms"], 0)
            self.assertGreater(gpu["memory_bytes"], 0)
        nvrtc = report["nvrtc"]
        self.assertTrue(nvrtc["compiles"])
        self.assertIn("sm_90a", nvrtc["archs"])
        for arch in nvrtc["archs"]:
            chosen = self.succeed("explain", "attention", "--q", "1,1,8,64", "--arch", arch, "--json")
            self.assertTrue(chosen.json["chosen"], arch)
        self.assertRegex(nvrtc["version"], r"^\d+\.\d+$")
        self.assertEqual(report["cache"]["path"], self.cache)
        self.assertTrue(report["cache"]["usable"])
        self.assertEqual(report["environment"]["JITNEY_CACHE_DIR"], self.cache)
        self.assertFalse(os.path.exists(self.cache), "looking makes nothing")

    def test_for_people(self):
        people = self.succeed("doctor").out
        for word in ("verdict", "driver", "NVRTC", "cache", self.cache):
            self.assertIn(word, people)

    def test_nothing_is_there(self):
        status, report = self.doctor(
            gpu=False, JITNEY_LIBNVRTC=self.path("absent.so"), JITNEY_CACHE_DIR="", HOME="", XDG_CACHE_HOME=""
        )
        # What was asked for by name is missing: that is a fault, and no crash.
        self.assertEqual(status, 1)
        self.assertFalse(report["nvrtc"]["compiles"])
        self.assertIsNone(report["cache"]["path"])
        self.assertTrue(any("absent.so" in fault for fault in self.faults(report)))
        self.assertIn("reference", report["verdict"])

    def test_libraries_that_are_none(self):
        text = self.write("text.so", "no library")
        status, report = self.doctor(JITNEY_LIBCUDA=text, JITNEY_LIBNVRTC=text)
        self.assertEqual(status, 1)
        self.assertGreaterEqual(len(self.faults(report)), 2)
        self.assertEqual(report["gpus"], [])

    def test_a_cache_that_is_not_used(self):
        os.mkdir(self.cache)
        os.chmod(self.cache, 0o777)
        status, report = self.doctor()
        self.assertEqual(status, 1)
        self.assertFalse(report["cache"]["usable"])
        self.assertTrue(any(self.cache in fault for fault in self.faults(report)))
        status, report = self.doctor(JITNEY_CACHE_DIR=self.write("file", "") + "/cache")
        self.assertEqual((status, report["cache"]["usable"]), (1, False))
        status, report = self.doctor(JITNEY_CACHE_DIR="/proc/jitney")
        self.assertEqual((status, report["cache"]["writable"]), (1, False))
        self.assertIn("it can't be created in /proc", report["cache"]["reason"])

    def test_a_cache_directory_that_is_no_path(self):
        for value, words in (
            ("~/x", "has a ~ that nothing has expanded"),
            ("$HOME/x", "has a $ that nothing has expanded"),
            ("cache", "is not an absolute path"),
        ):
            status, report = self.doctor(JITNEY_CACHE_DIR=value)
            self.assertEqual(status, 1)
            self.assertIsNone(report["cache"]["path"])
            (fault,) = self.faults(report)
            self.assertIn(f'JITNEY_CACHE_DIR names "{value}", which {words}', fault)
            self.assertEqual(os.listdir(self.directory), [])

    def test_a_cache_on_a_volume_that_others_can_write(self):
        # What there is to say of this machine itself, whatever the cache: no driver, say.
        status, report = self.doctor()
        self.assertEqual((status, report["cache"]["reason"]), (0, ""))
        machine = report["problems"]
        for each in machine:
            self.assertNotRegex(each["message"], "JITNEY_CACHE|cache (directory|layer)")
        volume = self.path("volume")
        os.mkdir(volume)
        os.chmod(volume, 0o2770)
        for root in (volume, volume + "/jitney"):
            status, report = self.doctor(JITNEY_CACHE_DIR=root)
            self.assertEqual((status, report["cache"]["usable"]), (1, False))
            (fault,) = self.faults(report)
            self.assertIn("can be written by others (mode 2770)", fault)
            self.assertIn("let JITNEY_CACHE_TRUST name " + root, fault)
            trusted = {"JITNEY_CACHE_DIR": root, "JITNEY_CACHE_TRUST": root}
            status, report = self.doctor(**trusted)
            self.assertEqual((status, report["problems"]), (0, machine))
            self.assertTrue(report["cache"]["writable"] and report["cache"]["trusted"])
            self.assertEqual(os.listdir(volume), [])
        # A name that is near is no name: it has no effect, and that is said.
        near = {"JITNEY_CACHE_DIR": volume + "/jitney", "JITNEY_CACHE_TRUST": volume}
        status, report = self.doctor(**near)
        self.assertEqual((status, report["cache"]["usable"]), (1, False))
        (note,) = [each["message"] for each in report["problems"]
                   if not each["fault"] and each not in machine]
        self.assertIn(f"JITNEY_CACHE_TRUST names {volume}, which is no cache directory", note)
        status, report = self.doctor(JITNEY_CACHE_TRUST="/*")
        self.assertEqual(status, 1)
        self.assertIn("it takes no patterns", self.faults(report)[0])

    def test_foreign_text_is_shown_and_not_obeyed(self):
        evil = self.path("a\n\x1b[2Jfault b")
        os.makedirs(evil)
        os.chmod(evil, 0o777)
        outcome = self.run_command("doctor", JITNEY_CACHE_DIR=evil)
        self.assertEqual(outcome.status, 1)
        self.assertNotIn("\x1b", outcome.out)
        (fault,) = [line for line in outcome.out.splitlines() if line.startswith("fault: ")]
        self.assertIn("a\\n\\x1b[2Jfault b is not used: it can be written by others", fault)

    @unittest.skipUnless(os.geteuid() == 0, "needs the superuser")
    def test_the_superuser_in_the_home_of_a_user(self):
        home = self.path("home")
        os.mkdir(home)
        os.chown(home, 65534, 65534)
        theirs = {"JITNEY_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": home}
        status, report = self.doctor(**theirs)
        self.assertEqual((status, report["cache"]["writable"]), (1, False))
        self.assertIn(f"lies below {home}, which belongs to user 65534", report["cache"]["reason"])
        outcome = self.run_command("prewarm", "--spec", "rotary_emb<dtype=bf16>@sm_80", **theirs)
        self.assertNotEqual(outcome.status, 0)
        self.assertEqual(os.listdir(home), [])

    def test_a_compiler_that_others_could_have_put_there(self):
        os.mkdir(self.path("bin"))
        command = shutil.copy(support.COMMAND, self.path("bin/jitney"))
        for name in ("libnvrtc.so.13", "libcuda.so.1"):
            self.write("bin/" + name, "another's code")
        outcome = self.run_command("doctor", "--json", command=command)
        self.assertNotIn("others could have put", outcome.out)
        os.chmod(self.path("bin"), 0o777)
        outcome = self.run_command("doctor", "--json", command=command, JITNEY_LIBNVRTC="")
        self.assertEqual(outcome.status, 1)
        faults = self.faults(outcome.json)
        for name, variable in (("libnvrtc.so.13", "LIBNVRTC"), ("libcuda.so.1", "LIBCUDA")):
            planted = self.path("bin/" + name)
            (fault,) = [each for each in faults if planted in each]
            self.assertIn("is not used, since others could have put their code there", fault)
            self.assertIn("chmod go-w", fault)
            self.assertIn("JITNEY_" + variable, fault)
            self.assertNotEqual(outcome.json["nvrtc"]["path"], planted)
            self.assertNotEqual(outcome.json["driver"]["path"], planted)

    def test_variables(self):
        status, report = self.doctor(JITNEY_BACKEND="cuda", JITNEY_CASHE_DIR="x")
        self.assertEqual(status, 1)
        self.assertTrue(any("JITNEY_BACKEND" in fault for fault in self.faults(report)))
        notes = [each["message"] for each in report["problems"] if not each["fault"]]
        self.assertTrue(any("JITNEY_CASHE_DIR" in note for note in notes))
        status, report = self.doctor(JITNEY_CACHE_MAX_BYTES="lots")
        self.assertEqual(status, 1)
        self.assertTrue(any("JITNEY_CACHE_MAX_BYTES" in fault for fault in self.faults(report)))
        status, report = self.doctor(JITNEY_JIT="off")
        self.assertEqual(status, 0)
        self.assertEqual(self.doctor(JITNEY_JIT="1")[0], 0)
        status, report = self.doctor(JITNEY_JIT="x")
        self.assertEqual(status, 1)
        self.assertEqual(self.faults(report),
                         ['JITNEY_JIT is "x", and has no effect: set it to one of on, off'])
        for threads in ("q", "0", "-1"):
            status, report = self.doctor(JITNEY_NUM_THREADS=threads)
            self.assertEqual(status, 1)
            (fault,) = self.faults(report)
            self.assertIn(f'JITNEY_NUM_THREADS is "{threads}"', fault)
        self.assertEqual(self.doctor(JITNEY_NUM_THREADS="3")[0], 0)

    def test_a_driver_that_is_none(self):
        status, report = self.doctor(JITNEY_LIBCUDA="libc.so.6")
        self.assertEqual(status, 1)
        (fault,) = self.faults(report)
        self.assertIn("is no CUDA driver", fault)
        self.assertIn("JITNEY_LIBCUDA", fault)
        self.assertNotIn("update", fault)


if __name__ == "__main__":
    unittest.main()
