"""Every fault of the lists can be planted: its text stands in its file, once."""
import os
import sys
import unittest

import host_faults
import mutations

FAULTS = mutations.FAULTS + host_faults.FAULTS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Mutations(unittest.TestCase):
    def test_texts(self):
        for fault in FAULTS:
            with self.subTest(file=fault.file, what=fault.what):
                with open(fault.path(ROOT), encoding="utf-8") as file:
                    self.assertEqual(file.read().count(fault.text), 1)
                self.assertNotEqual(fault.text, fault.fault)

    def test_names(self):
        names = [(fault.file, fault.what) for fault in FAULTS]
        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    sys.exit(unittest.main())
