#!/usr/bin/env python3
"""What roofline.py and compiled_kernels.py make of small inputs whose answers are known."""
import unittest

import compiled_kernels
import roofline

ASSEMBLY = """
        /*0000*/                   S2R R0, SR_TID.X ;
.L_x_1:
        /*0010*/                   LDS.128 R4, [R0] ;
.L_x_0:
        /*0020*/                   LDS R8, [R1] ;
        /*0030*/                   FFMA R4, R4, R8, R4 ;
        /*0040*/                   FFMA.FTZ R5, R5, R8, R5 ;
        /*0050*/              @!P0 FFMA R6, R6, R8, R6 ;
        /*0060*/                   FFMA R7, R7, R8, R7 ;
        /*0070*/              @P1 BRA `(.L_x_0) ;
        /*0080*/              @P2 BRA `(.L_x_1) ;
        /*0090*/                   BRA `(.L_x_2) ;
        /*00a0*/                   FFMA R7, R7, R8, R7 ;
.L_x_2:
        /*00b0*/                   EXIT ;
"""


def grid(**changes):
    nothing = {"requests": 0, "lanes": 0, "cost": 0, "ideal": 0}
    return {"kernel": "step_kernel", "blocks": 132, "threads": 128, "dynamic_shared": 0, "watched_blocks": 1,
            "shared_reads": nothing, "shared_writes": nothing, "device_reads": nothing, "device_writes": nothing,
            "intervals": []} | changes


def compiled(**changes):
    return {"registers": 32, "memory": 0, "shared": 0, "loops": []} | changes


def estimate(grid_, overlap=False):
    return roofline.Estimate(grid_, compiled(), overlap, device_latency=0, bandwidth=1e12)


def shared_reads(cost):
    return {"requests": 1000, "lanes": 32000, "cost": cost, "ideal": 1000}


class Loops(unittest.TestCase):
    def test_only_the_innermost_loop_counts(self):
        loop, = compiled_kernels.loops_of(ASSEMBLY)
        self.assertEqual(compiled_kernels.products(loop), 4)
        self.assertEqual(compiled_kernels.shared_loads(loop), 1)
        self.assertEqual(compiled_kernels.instructions(loop), 6)
        self.assertEqual(compiled_kernels.hot_loops({"loops": [loop]}), [loop])

    def test_a_loop_without_shared_loads_is_not_hot(self):
        self.assertEqual(compiled_kernels.hot_loops({"loops": [{"FFMA": 8, "LDG": 8}]}), [])


class Model(unittest.TestCase):
    def test_registers_threads_and_shared_memory_limit_resident_blocks(self):
        self.assertEqual(roofline.resident_blocks(grid(threads=512), compiled(registers=64)), 2)
        self.assertEqual(roofline.resident_blocks(grid(threads=512), compiled(registers=65)), 1)
        self.assertEqual(roofline.resident_blocks(grid(threads=1024), compiled()), 2)
        self.assertEqual(roofline.resident_blocks(grid(threads=32), compiled()), 32)
        self.assertEqual(roofline.resident_blocks(grid(dynamic_shared=113 << 10), compiled()), 2)
        self.assertEqual(roofline.resident_blocks(grid(dynamic_shared=113 << 10), compiled(shared=4)), 1)

    def test_conflicts_make_a_kernel_slower(self):
        slow = estimate(grid(shared_reads=shared_reads(32000)))
        self.assertEqual(slow.bound, "shared memory")
        self.assertEqual(slow.conflicts, 32)
        self.assertAlmostEqual(slow.seconds, 32000 / 1.98e9 + 1.6e-6)

    def test_below_the_peak_work_takes_longer_and_waiting_does_not(self):
        working, waiting = estimate(grid(shared_reads=shared_reads(32000))), estimate(grid(intervals=[[0, 0, 0, 0, 8, 0]] * 10))
        self.assertAlmostEqual(working.seconds_below_peak - 1.6e-6, (working.seconds - 1.6e-6) / roofline.PART_OF_PEAK)
        self.assertEqual(waiting.seconds_below_peak, waiting.seconds)

    def test_the_busiest_multiprocessor_decides(self):
        one = estimate(grid(shared_reads=shared_reads(32000))).seconds - 1.6e-6
        two = estimate(grid(shared_reads=shared_reads(32000), blocks=133)).seconds - 1.6e-6
        self.assertAlmostEqual(two, 2 * one)

    def test_barriers_and_loads_take_time_without_work(self):
        waiting = estimate(grid(intervals=[[0, 0, 0, 0, 8, 0]] * 10))
        self.assertEqual(waiting.bound, "latency")
        self.assertAlmostEqual(waiting.seconds, 10 * (2 * 30 + 30) / 1.98e9 + 1.6e-6)

    def test_only_functors_overlap(self):
        self.assertLess(estimate(grid(kernel="functor_kernel<A>"), overlap=True).seconds, estimate(grid(), overlap=True).seconds)


class Differences(unittest.TestCase):
    TABLE = "| batch | µs | bound by |\n| --- | --- | --- |\n| 100 | 10.0 | latency |"

    def test_the_same_table_has_none(self):
        self.assertEqual(roofline.differences(self.TABLE, self.TABLE), [])
        self.assertEqual(roofline.differences(self.TABLE, self.TABLE.replace("10.0", "10.3")), [])

    def test_changed_figures_and_rows_are_found(self):
        self.assertEqual(len(roofline.differences(self.TABLE, self.TABLE.replace("10.0", "11.0"))), 1)
        self.assertEqual(len(roofline.differences(self.TABLE, self.TABLE + "\n| 200 | 1.0 | latency |")), 1)
        self.assertEqual(len(roofline.differences("", self.TABLE)), 1)


unittest.main()
