"""What all benchmarks share: options, a description of the machine, and writing results."""
import argparse
import datetime
import json
import os
import platform
from pathlib import Path


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


def parsed(text):
    """Returns the output of a program as JSON, or as text if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


def run_records(sweep):
    """Returns the run.json of every run in a sweep's directory."""
    return [json.loads(path.read_text()) for path in sorted(sweep.glob("*/run.json"))]


def parser_of(description):
    """A parser with the options that tell() needs. `description`: the docstring of a program, of which the first line counts."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--results", type=Path)
    parser.add_argument("--commit", default="unknown")
    return parser


def tell(arguments, machine, title, about, rows, versions, **results):
    """Prints a page, and writes it and `results` if --results says where. `machine`: of describe(); `about`: follows the versions."""
    text = "\n".join([f"# {title}, {now():%Y-%m-%d}", "", f"{sentence(machine)}; {about}", "", *rows, ""])
    print(text)
    if arguments.results:
        write_results(arguments.results, text, {
            "date": now().strftime("%Y-%m-%dT%H:%M:%SZ"), "machine": machine, "versions": {"sweep": arguments.commit, **versions},
            **results})


def write_results(path, text, result):
    """Writes PATH.md and PATH.json. Neither is ever there half-written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix, content in ((".md", text), (".json", json.dumps(result, indent=1) + "\n")):
        file = path.with_name(path.name + suffix)
        file.with_suffix(".tmp").write_text(content)
        file.with_suffix(".tmp").replace(file)
