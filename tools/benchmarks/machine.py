"""What all benchmarks share: options, programs that they run, a description of the machine, tables, and results."""
import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def describe():
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {"cpu": cpu_name(), "cores": len(os.sched_getaffinity(0)), "memory": f"{memory:.0f} GB",
            "load": round(os.getloadavg()[0], 1), "kernel": f"{platform.system()} {platform.release()}"}


def sentence(machine):
    """Formats describe(), which has to be called before the benchmark loads the machine."""
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['memory']}, load {machine['load']} at the start"


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def torch_version():
    """Returns the version of this Python's PyTorch, or None, which it says."""
    try:
        import torch
        return torch.__version__
    except ImportError:
        print("PyTorch is not installed for this Python: its columns are missing", file=sys.stderr)
        return None


def run(command, timeout=None, environment=None):
    """Returns what the command prints. Throws what subprocess.run() throws, also if it fails."""
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(environment or {})}).stdout


def run_records(sweep):
    """Returns the run.json of every run in a sweep's directory."""
    return [json.loads(path.read_text()) for path in sorted(sweep.glob("*/run.json"))]


def rounds(count):
    for number in range(count):
        print(f"round {number + 1} of {count}", file=sys.stderr, flush=True)
        yield number


def spread(values, form="{:.2f}"):
    """"3.14 (3.01 to 3.20)": median, least and most."""
    if not values:
        return "missing"
    return "{} ({} to {})".format(*(form.format(value) for value in (statistics.median(values), min(values), max(values))))


def seconds(values):
    """The spread of seconds, in milliseconds if they are few."""
    if values and statistics.median(values) < 1:
        return spread([1e3 * value for value in values], "{:.3g}").replace(" (", " ms (")
    return spread(values, "{:.3g}").replace(" (", " s (")


def table(titles, rows):
    """Yields the lines of a table in Markdown."""
    for row in (titles, ["---"] * len(titles), *rows):
        yield f"| {' | '.join(map(str, row))} |"


def parser_of(description):
    """A parser with the options that tell() needs. `description`: the docstring of a program, of which the first line counts."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--results", type=Path, help="PATH.md and PATH.json are written")
    parser.add_argument("--results-folder", type=Path, help="the same in this folder, named by date, machine and --kind")
    parser.add_argument("--kind", default=Path(sys.argv[0]).stem.split("_")[0], help="of the benchmark")
    parser.add_argument("--commit", default="unknown", help="of sweep")
    return parser


def tell(arguments, machine, title, about, rows, versions, device=None, is_last=True, **results):
    """Prints a page if it is the last, and writes it and `results` if the options say where. `machine`: of describe(). `about`: follows
    the versions. `device`: what was measured, unless it is the machine."""
    text = "\n".join([f"# {title}, {now():%Y-%m-%d}", "", f"{sentence(machine)}; {about}", "", *rows, ""])
    if is_last:
        print(text)
    name = (device or f"{machine['cpu']} {machine['cores']} cores").lower().replace(" ", "-")
    name = re.sub("-+", "-", re.sub("[^a-z0-9-]", "", name))
    path = arguments.results or (arguments.results_folder and arguments.results_folder / f"{now():%Y-%m-%d}-{name}-{arguments.kind}")
    if not path:
        return
    result = {"date": now().strftime("%Y-%m-%dT%H:%M:%SZ"), "machine": machine, "versions": {"sweep": arguments.commit, **versions},
              **results}
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix, content in ((".md", text), (".json", json.dumps(result, indent=1) + "\n")):
        file = path.with_name(path.name + suffix)
        file.with_suffix(".tmp").write_text(content)
        file.with_suffix(".tmp").replace(file)  # so that neither is ever there half-written
    if is_last:
        print(f"written: {path}.md and .json", file=sys.stderr)
