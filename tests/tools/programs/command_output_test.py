#!/usr/bin/env python3
"""Programs in C++ as the runs of sweeps, and what programs leave that is hard to read: much of it, or half of it.

  command_output_test.py PROGRAM COMPILER [UNITTEST ARGUMENTS]

PROGRAM is the sweep program.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from program_runs import ProgramRuns, event_record, main, scalar_record
from processes import has_gone, until

# Does what its first argument says; with a second one, that is in its command line.
SOURCE = r"""
#include <signal.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

int main(int, char** argv) {
  const std::string what = argv[1];
  if (what == "throw") throw std::runtime_error("thrown in C++");
  if (what == "abort") std::abort();
  if (what == "segv") ::raise(SIGSEGV);
  if (what == "threads") std::thread([] { ::raise(SIGBUS); }).join();
  if (what == "daemon") {
    ::signal(SIGTERM, SIG_IGN);
    for (const bool stays : {true, false}) {
      if (::fork() != 0) continue;
      ::setsid();
      if (::fork() == 0 || stays) std::this_thread::sleep_for(std::chrono::seconds(100));
      return 0;
    }
  }
  if (what == "flood") {
    std::string block(1 << 20, 'x');
    for (std::size_t i = 99; i < block.size(); i += 100) block[i] = '\n';
    std::fwrite("first\0\xff\n", 1, 8, stdout);
    for (int i = 0; i < 1024; ++i) std::fwrite(block.data(), 1, block.size(), i % 2 == 0 ? stdout : stderr);
    std::printf("the last line");
  }
  if (what == "one-line") {
    const std::string block(1 << 20, 'y');
    for (int i = 0; i < 64; ++i) std::fwrite(block.data(), 1, block.size(), stdout);
    std::printf("\nloss=0.25");
  }
}
"""


class CommandOutputTest(ProgramRuns):
    compiler = None

    @classmethod
    def setUpClass(cls):
        programs = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        (programs / "own.cpp").write_text(SOURCE)
        cls.own = programs / "own"
        subprocess.run([cls.compiler, "-std=c++17", "-pthread", programs / "own.cpp", "-o", cls.own], check=True)

    def run_with_usage(self, *command, **keys):
        """The record of a run that completes, and what the sweep and its workers used: seconds of CPU, and the largest one's bytes.
        Programs are not among them: their keepers wait for them, and are not waited for."""
        file = self.file(command=[str(word) for word in command], **keys)
        process = self.start(file)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        (record,) = self.runs().values()
        return record, usage

    def test_a_cpp_program_fails_in_its_own_ways(self):
        for how, text in {"throw": "thrown in C++", "abort": "SIGABRT", "segv": "SIGSEGV", "threads": "SIGBUS"}.items():
            self.sweep(self.file(how, command=[str(self.own), how]), code=1)
            (record,) = self.runs(how).values()
            self.assertIn(text, record["error"])

    def test_grandchildren_that_left_the_group_and_ignore_sigterm_end_with_the_run(self):
        mark = str(uuid.uuid4())
        self.run_of(str(self.own), "daemon", mark)
        self.assertTrue(has_gone(mark, 1))

    def test_of_a_gigabyte_of_output_the_ends_are_kept_and_little_memory_is_used(self):
        record, usage = self.run_with_usage(self.own, "flood", metrics={"loss": "loss=([0-9.]+)"})
        log = self.log(record["name"])
        self.assertIn(b"first\x00\xff\n", log)
        self.assertIn(b"the last line\n", log)
        self.assertIn(b"bytes are left out here", log)
        self.assertLess(len(log), 14 << 20)
        self.assertLess(usage.ru_maxrss, 200 << 10)

    def test_a_line_of_64_megabytes_takes_little_memory_and_the_next_one_counts(self):
        record, usage = self.run_with_usage(self.own, "one-line", metrics={"loss": "^loss=([0-9.]+)"})
        self.assertEqual(record["epochs"][-1]["loss"], 0.25)
        self.assertLess(usage.ru_maxrss, 200 << 10)

    def test_expressions_are_perls_and_find_values_in_long_lines(self):
        line = "loss=0.5 " + "x" * 60000 + " acc=0.25"
        (self.folder / "line").write_text(line + "\n")
        record = self.run_of("cat", "line", metrics={"loss": "(?<!val_)loss=([0-9.]+)", "acc": "^loss(.|x)*acc=([0-9.]+)",
                                                     "size": "(?P<step>5) (?:x+) acc=([0-9.]+)"})
        self.assertEqual([epoch.get("loss") for epoch in record["epochs"]], [0.5, None])
        self.assertEqual(record["epochs"][1]["size"], 0.25)
        done = self.sweep(self.file("bad", command=["true"], metrics={"loss": "loss=(", "acc": "acc=[0-9]+"}), code=2)
        self.assertIn("missing closing parenthesis at its character 6", done.stderr)
        self.assertIn("a regular expression with a group, which is the value", done.stderr)

    def test_a_run_that_goes_on_keeps_the_times_of_its_epochs(self):
        words = ["lr=1", "--name", "s", "--", "python3", "train.py", "{lr}", "12", "0.4"]
        last = self.folder / "runs/s/lr=1/checkpoint/epoch"
        process = self.start(*words)
        until(last.exists, 60, "an epoch")
        time.sleep(0.6)
        process.send_signal(signal.SIGINT)
        process.wait(30)
        before = self.runs()["lr=1"]["epochs"]
        process, reached = self.start(*words), int(last.read_text())
        until(lambda: int(last.read_text()) > reached + 2, 60, "three more epochs")
        (worker,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(worker), signal.SIGKILL)
        self.assertEqual(process.wait(30), 1)
        self.assertGreater(self.runs()["lr=1"]["seconds"]["run"], before[-1]["run_seconds"] + 1)
        self.sweep(*words)
        after = self.runs()["lr=1"]["epochs"]
        self.assertTrue(1 <= len(before) < len(after))
        for key in ("run_seconds", "epoch_seconds"):
            self.assertEqual([e.get(key) for e in after[:len(before)]], [e[key] for e in before])
        self.assertLess(after[-1]["epoch_seconds"], after[-1]["run_seconds"])
        # An epoch's time is not known if the worker was killed before it told.
        self.assertTrue(all(e["epoch_seconds"] is None or e["epoch_seconds"] > 0.2 for e in after), "an epoch takes 0.4 s")

    def test_a_million_lines_of_metrics_take_few_seconds(self):
        (self.folder / "lines").write_text("".join(f"step {i} loss={1 / (i + 1):.6f}\n" for i in range(1000000)))
        begin = os.times()
        record, _ = self.run_with_usage("cat", "lines", metrics={"loss": "step (?<step>[0-9]+) loss=([0-9.]+)"})
        end = os.times()
        self.assertEqual(record["epochs"][-1]["loss"], 1e-06)
        seconds = end.children_user - begin.children_user + end.children_system - begin.children_system
        # On an idle machine 2 s. A busy one, and a build that was not optimized, take more.
        self.assertLess(seconds, 6)

    def test_a_message_has_what_a_progress_bar_shows_last(self):
        record = self.run_of("sh", "-c", r"printf 'begins\r\n'; printf '%s|\r' $(seq 1000); exit 1", code=1)
        self.assertRegex(record["error"], r"log.txt ends with:\n.*attempt 1: sh .*\nbegins\n1000\|$")

    def test_events_that_are_cut_anywhere_count_as_far_as_they_are_whole(self):
        head = event_record(b"\x1a\x0dbrain.Event:2")
        whole = head + b"".join(scalar_record("loss", step, step) for step in (1, 2, 3))
        size = len(scalar_record("loss", 1, 1))
        (self.folder / "events").write_bytes(whole)
        cuts = list(range(0, len(head), 5)) + list(range(len(head), len(whole) + 1))
        self.sweep(self.file(command=["sh", "-c", "head -c {cut} events > $SWEEP_RUN_DIR/events.out.tfevents.1.host.1.0"],
                             params={"cut": cuts}), "--jobs", "2", "--quiet")
        for cut in cuts:
            self.assertEqual(len(self.runs()[f"cut={cut}"]["epochs"]), max(0, cut - len(head)) // size, cut)
        self.assertRegex(self.sweep("fsck", "runs/s").stdout, r"(?s)ends within a record.*, no damage, \d+ notes")

    def test_tensorboard_has_every_point_of_the_programs_own_events_once_whether_it_goes_on_or_starts_over(self):
        for first in (1, 2, 3):
            records = [scalar_record("Loss/train", step, step) for step in range(6)]
            for attempt, steps in ((1, records[1:3]), (2, records[first:6])):
                (self.folder / f"events{attempt}").write_bytes(event_record(b"\x1a\x0dbrain.Event:2") + b"".join(steps))
            # As each process of a program does: a file that is named after the time, which is before our next one.
            self.sweep(self.file(f"first{first}", command=["sh", "-c", """
                cp events$SWEEP_ATTEMPT $SWEEP_RUN_DIR/events.out.tfevents.$(date +%s).host.$$.0; sleep 2
                test $SWEEP_ATTEMPT = 2 || exit 75"""]))
            self.assertEqual([step for step, _ in self.points("Loss/train", f"first{first}")], [1, 2, 3, 4, 5], first)

    def test_events_that_grow_byte_by_byte_are_followed(self):
        events = event_record(b"\x1a\x0dbrain.Event:2") + b"".join(scalar_record("loss", step, step) for step in range(1, 8))
        (self.folder / "events").write_bytes(events)
        program = self.python("""
data = open("events", "rb").read()
with open(folder + "/events.out.tfevents.1.host.1.0", "wb", buffering=0) as file:
    for i in range(0, len(data), 7):
        file.write(data[i:i + 7])
        time.sleep(0.02)""")
        begin = time.monotonic()
        record = self.run_of(*program, stop={"metric": "loss", "patience": 2})
        self.assertIn("has not improved", record["stopped"]["reason"])
        self.assertLess(time.monotonic() - begin, 20)


if __name__ == "__main__":
    CommandOutputTest.compiler = sys.argv.pop(2)
    main()
