"""The tables of training_speed.py: measurements and their targets."""
import statistics

import machine
from machine import seconds, table

NO_TIME = "no time was left"
SWEEP_TARGET = 15    # of all runs of cpu-vs-cuda.json on the CPU, times PyTorch's speed
RUNS_TARGET = 1.0    # seconds of them on a GPU, start-up not counted


def judged(text, wanted, is_reached):
    """"12.3 x (20: **no**)": what was found, the target, and whether it is reached."""
    return text if wanted is None else f"{text} ({wanted:g}: {'yes' if is_reached else '**no**'})"


def ratio(programs, names, wanted=None):
    """How many times as fast sweep is as the fastest of these programs."""
    others = [statistics.median(programs[name]) for name in names if programs.get(name)]
    if not others or not programs.get("sweep"):
        return "missing"
    value = min(others) / statistics.median(programs["sweep"])
    return judged(f"{value:.1f} x", wanted, value >= (wanted or 0))


def epoch_table(bench):
    variants = bench.args.variants
    full = [name for name in variants if name not in ("tf32", "loader")]
    rows = []
    for case in bench.args.cases:
        programs, wanted = bench.epochs.get(case.name, {}), case.wanted
        ours, most = seconds(programs.get("sweep", [])), wanted.get("ms")
        if most and programs.get("sweep"):
            ours = judged(ours, most, statistics.median(programs["sweep"]) * 1e3 <= most)
        rows.append([case.name, ours, *(seconds(programs.get(name, [])) for name in variants), ratio(programs, full, wanted.get("best")),
                     *(ratio(programs, [name], wanted.get(name)) for name in variants)])
    return table(["network, batch", "sweep", *(f"PyTorch {variant.title}" for variant in variants.values()), "best / sweep",
                  *(f"{name} / sweep" for name in variants)], rows)


def sweep_table(bench):
    found, is_cuda = bench.sweeps, bench.is_cuda
    rows = [[f"the {found['count']} runs of cpu-vs-cuda.json, whole program", seconds(found["sweep"]), seconds(found.get("loader", [])),
             ratio(found, ["loader"], None if is_cuda else SWEEP_TARGET)]]
    if is_cuda:
        runs = statistics.median(found["runs"])
        rows.append(["the runs without what each does once", judged(seconds(found["runs"]), RUNS_TARGET, runs <= RUNS_TARGET), "", ""])
    return table(["", "sweep", "PyTorch with DataLoader", "ratio"], rows)


def detail_table(details):
    return table(["network, batch", "before the first epoch", "the GPU's own time of an epoch", "samples on"],
                 [[name, seconds(note["setup_seconds"]), seconds(note["device_seconds"]), note.get("placement") or "the host"]
                  for name, note in details.items()])


def gpu_kernel_table(kernels):
    rows = []
    for name, found in kernels.items():
        rows += [[name, kernel["name"], f"{kernel['us']:.1f}"] for kernel in found["kernels"]]
        rows.append([name, "from the first event to the last", f"{found['step_us']:.1f}"])
    return table(["network, batch", "kernel", "µs"], rows)


def cpu_kernel_lines(kernels):
    peak = statistics.median(kernels["multiply_add_peak"])
    rows = []
    for shape in dict.fromkeys(name.split("/")[1] for name in kernels if name.startswith("conv/")):
        rates = [statistics.median(kernels[f"conv/{shape}/{kernel}"]) for kernel in ("forward", "weights", "input")]
        rows.append([shape.replace("_", " "), *(f"{rate / 1e9:.0f} ({100 * rate / peak:.0f} %)" for rate in rates)])
    return [f"One core multiplies and adds at most {peak / 1e9:.0f} GFLOP/s.", "",
            *table(["convolution (one block of 16 images)", "GFLOP/s: forward", "weights' gradient", "input's gradient"], rows)]


def choice_tables(choices):
    for group in dict.fromkeys(group for group, _ in choices):
        yield from (f"{group[0].upper()}{group[1:]}, time of an epoch:", "")
        yield from table(["network, batch", "choice", ""], [[name, program, seconds(values)] for (own_group, name), programs in choices.items()
                                                            if own_group == group for program, values in programs.items()])
        yield ""


def missing_lines(missing):
    """Measurements for which no time was left are many, so only the first is named."""
    late = [text for text in missing if text.endswith(NO_TIME)]
    yield from (f"- {text}" for text in missing if text not in late)
    if late:
        yield f"- {late[0]}" + (f", nor for {len(late) - 1} more" if len(late) > 1 else "")


def gpu_sentence(facts):
    if "name" not in facts:
        return "No GPU: these times say only that the benchmark works."
    device = next((line for line in facts["devices"] if line.startswith("cuda")), facts["name"])
    return (f"{device}, {facts['memory.total']}, driver {facts['driver_version']}, clock {facts['clocks.sm']} at the start, at most "
            f"{facts['clocks.max.sm']}, memory {facts['clocks.mem']}, at most {facts['power.limit']}.")


def lines(bench, used):
    args = bench.args
    yield (f"Medians (least to most) over at most {args.rounds} rounds in {used:.0f} s, all programs in turn in every round, slow ones "
           "on a GPU in the first only; samples are shuffled in every epoch, and nothing is logged. Fashion-MNIST's 60,000 samples for CNN "
           "and MLP; 1,000 random samples of 50x50 for cats and dogs, 1,024 of 3x32x32 for the residual network; PyTorch has them in memory "
           "as floats. Optimizer: Adam. On a GPU nobody's start, first copies, compilation and first batches count.")
    if args.quick:
        yield from ("", "**Few samples (--quick): the times mean nothing.**")
    yield from ("", "Time of an epoch:", "", *epoch_table(bench), "")
    if bench.is_cuda and bench.details:
        yield from (*detail_table(bench.details), "")
    if bench.sweeps.get("sweep"):
        yield from ("Time of a sweep with its logs, from start to exit:", "", *sweep_table(bench), "")
    if bench.kernels and bench.is_cuda:
        yield from ("Kernels of a training step, by events before and after each (medians):", "", *gpu_kernel_table(bench.kernels), "")
    elif bench.kernels:
        yield from (*cpu_kernel_lines(bench.kernels), "")
    yield from choice_tables(bench.choices)
    if bench.missing:
        yield from ("Missing:", "", *missing_lines(bench.missing))


def tell(bench, about, facts, torch, used, is_last):
    args = bench.args
    device = facts.get("name", "no GPU") if bench.is_cuda else None
    machine.tell(args, about, f"Training on {device or 'the CPU'}, and PyTorch's",
                 f"{args.threads or 'all'} threads each; sweep {args.commit}, PyTorch {torch}." +
                 (f"\n{gpu_sentence(facts)}" if bench.is_cuda else ""),
                 lines(bench, used), {"pytorch": torch}, device, is_last, gpu=facts, rounds=args.rounds, quick=args.quick,
                 threads=args.threads, unit="seconds", wanted={case.name: case.wanted for case in args.cases}, epochs=bench.epochs,
                 details=bench.details, kernels=bench.kernels, sweeps=bench.sweeps, missing=bench.missing,
                 choices=[{"what": group, "case": name, "epochs": programs} for (group, name), programs in bench.choices.items()])
