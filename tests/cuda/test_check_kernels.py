#!/usr/bin/env python3
"""Tests of check_kernels.py: each kind of offence is found, and clean input is clean."""

import unittest

import check_kernels

REPORT = """\
ptxas info    : Compiling entry function 'step' for 'sm_90'
    {frame} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads
ptxas info    : Used 40 registers, used 0 barriers
"""

CLEAN_PTX = """\
.visible .entry step(.param .u64 p) {
\tmul.rn.f32 %f1, %f2, %f3; // not mul.f32
\tfma.rn.f32 %f1, %f2, %f3, %f4;
\tdiv.rn.f32 %f1, %f2, %f3;
\tsqrt.rn.f32 %f1, %f2;
\tatom.global.add.u32 %r1, [%rd1], 1;
\tmin.s32 %r1, %r2, %r3;
"""


class Report(unittest.TestCase):
    def check(self, frame, stores, loads):
        return list(check_kernels.check_report("a.txt", REPORT.format(frame=frame, stores=stores, loads=loads)))

    def test_clean(self):
        self.assertEqual(self.check(0, 0, 0), [])

    def test_stack_and_spills(self):
        for numbers in ((8, 0, 0), (0, 4, 0), (0, 0, 4)):
            self.assertIn("step (sm_90)", self.check(*numbers)[0])

    def test_rigid_bodies(self):
        def check(sim, *numbers):
            report = REPORT.replace("'step'", f"'_Z23{sim}_batch_step'")
            frame, stores, loads = numbers
            return list(check_kernels.check_report("a.txt", report.format(frame=frame, stores=stores, loads=loads)))

        for sim, most in check_kernels.FRAMES.items():
            self.assertEqual(check(sim, most, 1024, 1024), [])
            for numbers in ((most + 8, 0, 0), (0, 1028, 0), (0, 0, 1028)):
                self.assertIn(sim, check(sim, *numbers)[0])

    def test_empty(self):
        self.assertEqual(len(list(check_kernels.check_report("a.txt", ""))), 1)


class Ptx(unittest.TestCase):
    def test_clean(self):
        self.assertEqual(list(check_kernels.check_ptx("a.ptx", CLEAN_PTX)), [])

    def test_each_offence(self):
        offences = [
            "add.f64 %fd1, %fd2, %fd3;",
            "cvt.f64.f32 %fd1, %f1;",
            "mul.f32 %f1, %f2, %f3;",
            "sub.f32 %f1, %f2, %f3;",
            "add.rn.ftz.f32 %f1, %f2, %f3;",
            "mad.rn.f32 %f1, %f2, %f3, %f4;",
            "rsqrt.approx.f32 %f1, %f2;",
            "div.full.f32 %f1, %f2, %f3;",
            "max.f32 %f1, %f2, %f3;",
            "atom.global.add.f32 %f1, [%rd1], %f2;",
            "red.shared.add.f32 [%rd1], %f2;",
            "mul.f64 %fd1, %fd2, %fd3;",
            "fma.rn.f64 %fd1, %fd2, %fd3, %fd4;",
            "red.global.add.f64 [%rd1], %fd2;",
        ]
        for offence in offences:
            found = list(check_kernels.check_ptx("a.ptx", CLEAN_PTX + "\t" + offence))
            self.assertTrue(found and offence in found[0], offence)
            if offence != "cvt.f64.f32 %fd1, %f1;":
                self.assertTrue(list(check_kernels.check_ptx("a.ptx", CLEAN_PTX + "\t" + offence, True)), offence)

    def test_double_where_it_may_be(self):
        text = CLEAN_PTX + "\tcvt.f64.f32 %fd1, %f1;\n\tadd.rn.f64 %fd1, %fd2, %fd3;\n"
        self.assertEqual(list(check_kernels.check_ptx("a.ptx", text, True)), [])
        self.assertEqual(len(list(check_kernels.check_ptx("a.ptx", text))), 2)

    def test_empty(self):
        self.assertEqual(len(list(check_kernels.check_ptx("a.ptx", ""))), 1)


if __name__ == "__main__":
    unittest.main()
