"""How long many short runs take on a cluster, and how often Slurm is asked meanwhile."""
import json
import os
import subprocess
import time

from cluster_sweeps import ENDED
from slurm_cluster import until
from torture_sweep import records_of


def measure_short_runs(test, count, most_of_ideal, slots=8):
    """Compares `count` runs of about a second on `slots` tasks with one of them here."""
    counter = test.directory / "counted"
    counter.mkdir()
    (counter / "squeue").write_text(f"#!/bin/sh\ndate +%s >>{counter}/calls\nPATH=${{PATH#*:}}\nexec squeue \"$@\"\n")
    (counter / "squeue").chmod(0o755)
    slurm = test.sweep_file["slurm"] | {"tasks": slots, "report": False}
    # What a core does is little: a small machine has not as many as there are slots.
    sweep = test.sweep_file | {"slurm": slurm, "evaluate_first": False, "checkpoint": "last", "params": {},
                               "log": {"histograms": False, "predictions": False, "images": False}}
    environment = test.environment | {"PATH": f"{counter}:{test.environment['PATH']}"}

    def take(name, runs):
        (test.directory / f"{name}.json").write_text(json.dumps(sweep | {"name": name, "params": {"seed": list(range(runs))}}))
        begin = time.monotonic()
        done = subprocess.run([test.program, f"{name}.json", "--logdir", name, "--launcher", "slurm", "--wait", *test.options],
                              cwd=test.directory, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            test.problem(f"{name}: exit code {done.returncode}:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
        records = records_of(test.directory / name / name).values()
        if [record["status"] for record in records] != ["completed"] * runs:
            test.problem(f"{name}: {len(records)} runs, not all of them completed")
        took = time.monotonic() - begin
        # The last task may still be writing the table.
        until(lambda: all(task[2] in ENDED for task in test.cluster.tasks()), 60, f"{name}: its tasks end")
        return took, [record["seconds"]["run"] for record in records]

    # Few at once, on a machine that may have other things to do: the shortest is the time of a run.
    alone = min(take("alone", 3)[1])
    (counter / "calls").write_text("")
    took, _ = take("short", count)
    calls = len((counter / "calls").read_text().split())
    ideal = alone * count / slots
    print(f"{count} runs of {alone:.2f} s on {slots} slots of {os.cpu_count()} cores: {took:.1f} s, "
          f"{took / ideal:.2f} times the ideal {ideal:.1f} s; {calls} calls of squeue")
    if calls > took / 60 + 3:  # Submitting takes two.
        test.problem("squeue is called more than once a minute")
    if took > most_of_ideal * ideal:
        test.problem(f"takes more than {most_of_ideal} times the ideal time")
