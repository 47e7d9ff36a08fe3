"""The tables of cuda_speed.py: measurements and their targets."""
import statistics

import machine
from training_speed import cell

# Targets: at most so many milliseconds per epoch, at least so many times PyTorch's speed.
TARGETS = {
    "CNN, 100": {"ms": 12, "eager": 20, "compile": 4, "loader": 200},
    "CNN, 1000": {"ms": 4, "eager": 8, "compile": 4, "loader": 500},
    "CNN, 10000": {"ms": 4, "eager": 3, "compile": 2, "loader": 500},
    "CNN, 20000": {"ms": 4, "eager": 3, "compile": 2, "loader": 500},
    "cats and dogs, 100": {"eager": 1.5},
    "residual network, 128": {"eager": 1.5},
}
NO_TIME = "no time was left"
RUNS_TARGET = 1.0  # seconds of all runs of cpu-vs-cuda.json, start-up not counted
# All in full float32, as sweep trains, except "tf32".
PEERS = {"eager": "eager, data on the GPU", "tf32": "the same with TF32", "compile": "compiled, reduce-overhead", "loader": "eager, DataLoader"}


def verdict(good):
    return "yes" if good else "**no**"


def ratio(programs, variant, wanted):
    """"12.3 x (20: **no**)": times PyTorch's speed, the target, and whether it is reached."""
    if not programs.get(variant) or not programs.get("sweep"):
        return "missing"
    value = statistics.median(programs[variant]) / statistics.median(programs["sweep"])
    return f"{value:.1f} x" + (f" ({wanted:g}: {verdict(value >= wanted)})" if wanted else "")


def limit(programs, wanted):
    if not programs.get("sweep"):
        return "missing"
    text = cell(programs["sweep"])
    if not wanted:
        return text
    return text + f", {wanted:g} ms: {verdict(statistics.median(programs['sweep']) * 1e3 <= wanted)}"


def epoch_table(bench):
    yield "| network, batch | sweep | " + " | ".join(f"PyTorch {text}" for text in PEERS.values()) + " |" + \
        " | ".join(f" {variant} / sweep" for variant in PEERS) + " |"
    yield "|---" * (2 + 2 * len(PEERS)) + "|"
    for name, programs in bench.epochs.items():
        wanted = TARGETS.get(name, {})
        yield (f"| {name} | {limit(programs, wanted.get('ms'))} | " +
               " | ".join(cell(programs.get(v, [])) for v in PEERS) + " | " +
               " | ".join(ratio(programs, v, wanted.get(v)) for v in PEERS) + " |")


def detail_table(details):
    yield "| network, batch | before the first epoch | the GPU's own time of an epoch | samples on |"
    yield "|---|---|---|---|"
    for name, note in details.items():
        yield (f"| {name} | {cell(note['setup_seconds'])} | {cell(note['device_seconds'])} | "
               f"{note.get('placement') or 'the host'} |")


def kernel_table(kernels):
    yield "| network, batch | kernel | µs |"
    yield "|---|---|---|"
    for name, found in kernels.items():
        yield from (f"| {name} | {kernel['name']} | {kernel['us']:.1f} |" for kernel in found["kernels"])
        yield f"| {name} | from the first event to the last | {found['step_us']:.1f} |"


def sweep_lines(sweeps):
    whole, runs = statistics.median(sweeps["sweep"]), statistics.median(sweeps["runs"])
    yield f"The {sweeps['count']} runs of cpu-vs-cuda.json on this device, with all logs:"
    yield ""
    yield "| | seconds |"
    yield "|---|---|"
    yield f"| whole program | {cell(sweeps['sweep'])} |"
    yield (f"| the runs without what each does once | {cell(sweeps['runs'])}, at most {RUNS_TARGET:g} s wanted: "
           f"{verdict(runs <= RUNS_TARGET)} |")
    if sweeps.get("loader"):
        theirs = statistics.median(sweeps["loader"])
        yield f"| PyTorch with DataLoader, whole program | {cell(sweeps['loader'])}, {theirs / whole:.1f} x |"


def choice_tables(choices):
    for group in dict.fromkeys(group for group, _ in choices):
        yield f"{group[0].upper()}{group[1:]}, time of an epoch:"
        yield ""
        yield "| network, batch | choice | |"
        yield "|---|---|---|"
        for (own_group, name), programs in choices.items():
            if own_group == group:
                yield from (f"| {name} | {program} | {cell(values)} |" for program, values in programs.items())
        yield ""


def limit_lines(facts):
    limits = facts.get("limits")
    if not isinstance(limits, dict):
        return [f"The GPU's limits were not measured{': ' + limits if limits else ''}."]
    return [f"Measured limits: {limits['fp32_flops'] / 1e12:.1f} TFLOP/s in fp32 multiply-adds, "
            f"{limits['copy_bytes_per_second'] / 1e9:.0f} GB/s read and written in a copy on the GPU, "
            f"{limits['upload_bytes_per_second'] / 1e9:.1f} GB/s to it and "
            f"{limits['download_bytes_per_second'] / 1e9:.1f} GB/s from it (pinned memory); "
            f"{limits['kernel_gap_seconds'] * 1e6:.2f} µs from an empty kernel of a graph to the next, "
            f"{limits['l2_latency_seconds'] * 1e9:.0f} ns for a read from the L2 cache."]


def gpu_sentence(facts):
    if "name" not in facts:
        return "No GPU: these times say only that the benchmark works."
    limits = facts["limits"] if isinstance(facts.get("limits"), dict) else {}
    cuda = f", CUDA runtime {limits['runtime_cuda'] / 1000:.1f}" if limits else ""
    multiprocessors = f", {limits['multiprocessors']} multiprocessors" if limits else ""
    return (f"{facts['name']}{multiprocessors}, {facts['memory.total']}, driver {facts['driver_version']}{cuda}, "
            f"clock {facts['clocks.sm']} at the start, at most {facts['clocks.max.sm']}, memory {facts['clocks.mem']}, "
            f"at most {facts['power.limit']}.")


def missing_lines(missing):
    """Measurements for which no time was left are many, so only the first is named."""
    late = [text for text in missing if text.endswith(NO_TIME)]
    yield from (f"- {text}" for text in missing if text not in late)
    if late:
        yield f"- {late[0]}" + (f", nor for {len(late) - 1} more" if len(late) > 1 else "")


def report(bench, about, facts, torch, seconds):
    args = bench.args
    lines = [f"# Training on {facts.get('name', args.device)}, and PyTorch's, {machine.now():%Y-%m-%d}", "",
             gpu_sentence(facts) + " " + machine.sentence(about) + f"; sweep {args.commit}, PyTorch {torch}.",
             *limit_lines(facts), "",
             f"Medians (least to most) over at most {args.rounds} rounds in {seconds:.0f} s, all programs in turn in every "
             "round, the compiled ones and those with a loader in the first only; nothing is logged. Fashion-MNIST's "
             "60,000 samples for CNN and MLP; 1,000 random samples of 50x50 for cats and dogs, 1,024 of 3x32x32 for the "
             "residual network. Optimizer: Adam. Nobody's start, first copies, compilation and first batches count.",
             *(["", "**Few samples (--quick): the times mean nothing.**"] if args.quick else []), "",
             "Time of an epoch:", "", *epoch_table(bench), ""]
    if bench.details:
        lines += [*detail_table(bench.details), ""]
    if bench.kernels:
        lines += ["Kernels of a training step, by events before and after each (medians):", "",
                  *kernel_table(bench.kernels), ""]
    if bench.sweeps.get("sweep"):
        lines += [*sweep_lines(bench.sweeps), ""]
    lines += choice_tables(bench.choices)
    if bench.missing:
        lines += ["Missing:", "", *missing_lines(bench.missing), ""]
    return "\n".join(lines)


def as_json(bench, about, facts, torch):
    return {"date": machine.now().strftime("%Y-%m-%dT%H:%M:%SZ"), "machine": about, "gpu": facts,
            "rounds": bench.args.rounds, "quick": bench.args.quick,
            "versions": {"sweep": bench.args.commit, "pytorch": torch}, "unit": "seconds", "wanted": TARGETS,
            "epochs": bench.epochs, "details": bench.details, "kernels": bench.kernels, "sweeps": bench.sweeps,
            "choices": [{"what": group, "case": name, "epochs": programs}
                        for (group, name), programs in bench.choices.items()],
            "missing": bench.missing}
