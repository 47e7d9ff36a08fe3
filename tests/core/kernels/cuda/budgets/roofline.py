#!/usr/bin/env python3
"""Estimates how long an epoch of deeplizard's network takes on an H200: a roofline model of every kernel of a step.

  roofline.py --counts PROGRAM --nvcc NVCC --source FOLDER --build FOLDER [--nvdisasm-venv FOLDER] (--write | --check) README

PROGRAM is cuda_step_counts, which counts blocks, and the requests of warps to memory, on the host's stand-in for a GPU.
Registers, static shared memory and instructions per load come from the compiler. --write puts the table into README between its
two marks; --check fails if the table there is stale, or an epoch is over its budget. Exits with 77 without nvdisasm.

The model. A kernel takes the launch gap and the longest of these:
- of the busiest multiprocessor, for all of its blocks together: instructions / 4 per clock; wavefronts of shared memory;
  sectors of device memory at 64 bytes per clock
- of the blocks that a multiprocessor has at a time, one after another: the sum over the intervals between barriers of the
  longest of: the block's instructions / 4, its wavefronts, the latencies of the loads of its busiest warp, and of the barrier
- all sectors, at the bandwidth of L2, or of memory if a step's do not fit in L2
No kernel keeps a multiprocessor busy in every clock, so there is a second figure for PART_OF_PEAK of all rates.
Instructions of a kernel are its requests to shared memory, times the instructions per shared load in its hot loops (see
compiled_kernels.py); and some for each request to device memory.
"""
import argparse
import json
import math
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import compiled_kernels

BATCHES = (100, 1000, 10000, 20000)
SAMPLES = 60000  # of an epoch
# Milliseconds per epoch, at most.
BUDGETS = {100: 8.5, 1000: 3.75, 10000: 3.0, 20000: 3.0}
PART_OF_PEAK = 0.85  # assumed
# How far a figure in README may be from that of today.
TOLERANCE = 0.05
BEGIN, END = "<!-- made by roofline.py: begin -->", "<!-- made by roofline.py: end -->"

GUIDE = "CUDA C++ Programming Guide, compute capability 9.0"
# Name: (value, as it is read, where it comes from).
H200 = {
    "multiprocessors": (132, "132", "NVIDIA's datasheet: 16,896 FP32 lanes, 128 on each"),
    "clock": (1.98e9, "1.98 GHz", "largest boost clock of the SXM module"),
    "issue": (4, "4 instructions of warps per clock and multiprocessor", GUIDE),
    "threads": (2048, "2048 per multiprocessor", GUIDE),
    "blocks": (32, "32 per multiprocessor", GUIDE),
    "registers": (65536, "65,536 per multiprocessor, given to warps by 256", GUIDE),
    "shared": (228 << 10, "228 KiB per multiprocessor, 1 KiB of it for each block", GUIDE),
    "wavefronts": (1, "1 of 128 bytes per clock and multiprocessor", "32 banks of 4 bytes, " + GUIDE),
    "sm_bytes": (64, "64 bytes per clock from L2 to a multiprocessor", "assumed"),
    "l2_bandwidth": (5.5e12, "5.5 TB/s", "assumed"),
    "l2_bytes": (50 << 20, "50 MiB", "NVIDIA's description of the architecture, of the H100"),
    "memory_bandwidth": (4.8e12, "4.8 TB/s", "NVIDIA's datasheet"),
    "shared_latency": (30, "30 clocks", "assumed"),
    "l2_latency": (270, "270 clocks", "assumed"),
    "memory_latency": (600, "600 clocks", "assumed"),
    "barrier": (30, "30 clocks", "assumed"),
    "loads_in_flight": (4, "4 loads of a warp wait together", "assumed: what nvcc unrolls loops to"),
    "device_instructions": (8, "8 for each request to device memory", "assumed"),
    "other_instructions": (4, "4 for each request to shared memory in a kernel without hot loops", "assumed"),
    "gap": (1.6e-6, "1.6 µs between two kernels of a graph", "assumed"),
    "overlapped_gap": (0.8e-6, "0.8 µs with programmatic dependent launch", "assumed"),
}
GPU = {name: value for name, (value, _, _) in H200.items()}
SECTOR_BYTES = 32


def flops_of(kernel, layers):
    """Floating-point operations of one sample in a kernel of this name; None where it is not known."""
    convolutions = [layer["flops"] for layer in layers if layer["type"] == "conv2d"]
    linear = sum(layer["flops"] for layer in layers if layer["type"] == "linear")
    if "<ForwardKernel>" in kernel:
        return sum(convolutions)
    if "<BackwardKernel<" in kernel:
        # Of four outputs that are pooled to one, one has a gradient; the first layer's input has none.
        return (sum(convolutions) + sum(convolutions[1:])) / 4
    if "<StackKernel>" in kernel:
        return 2 * linear
    if "<ConvPoolStackKernel>" in kernel:
        return sum(convolutions) + 2 * linear
    if "<ProductsKernel<" in kernel or "<StackStepKernel>" in kernel:
        return linear
    return None


def instructions_per_load(compiled):
    loops = compiled_kernels.hot_loops(compiled)
    if not loops:
        return GPU["other_instructions"]
    return sum(map(compiled_kernels.instructions, loops)) / sum(map(compiled_kernels.shared_loads, loops))


def resident_blocks(grid, compiled):
    """Blocks that a multiprocessor has room for."""
    warps = math.ceil(grid["threads"] / 32)
    registers = warps * math.ceil(compiled["registers"] * 32 / 256) * 256
    shared = grid["dynamic_shared"] + compiled["shared"] + 1024
    return min(GPU["blocks"], GPU["threads"] // (warps * 32), GPU["registers"] // registers, GPU["shared"] // shared)


class Estimate:
    """How long a grid takes, and why."""

    def __init__(self, grid, compiled, overlap, device_latency, bandwidth):
        ratio = instructions_per_load(compiled)

        def issue(shared_requests, device_requests):
            return (shared_requests * ratio + device_requests * GPU["device_instructions"]) / GPU["issue"]

        def total(kind, figure):  # of a block
            return sum(grid[f"{kind}_{way}"][figure] for way in ("reads", "writes")) / grid["watched_blocks"]

        self.grid, self.compiled = grid, compiled
        self.wavefronts = total("shared", "cost") * grid["blocks"]
        self.bytes = total("device", "cost") * SECTOR_BYTES * grid["blocks"]
        ideal = total("shared", "ideal")
        self.conflicts = total("shared", "cost") / ideal if ideal else 1
        blocks = math.ceil(grid["blocks"] / GPU["multiprocessors"])
        self.resident = resident_blocks(grid, compiled)
        bounds = {
            "instructions": blocks * issue(total("shared", "requests"), total("device", "requests")),
            "shared memory": blocks * total("shared", "cost") / GPU["wavefronts"],
            "loads of an SM": blocks * total("device", "cost") * SECTOR_BYTES / GPU["sm_bytes"],
            "latency": math.ceil(blocks / self.resident) * self.block_latency(issue, device_latency)}
        bounds = {name: clocks / GPU["clock"] for name, clocks in bounds.items()}
        bounds["bandwidth"] = self.bytes / bandwidth
        self.bound = max(bounds, key=bounds.get)
        below_peak = max(seconds if name == "latency" else seconds / PART_OF_PEAK for name, seconds in bounds.items())
        may_overlap = overlap and grid["kernel"].startswith("functor_kernel<")
        gap = GPU["overlapped_gap" if may_overlap else "gap"]
        self.seconds, self.seconds_below_peak = bounds[self.bound] + gap, below_peak + gap

    def block_latency(self, issue, device_latency):
        clocks = 0
        for shared, wavefronts, device, sectors, longest_shared, longest_device in self.grid["intervals"]:
            loads = math.ceil(longest_device / GPU["loads_in_flight"]) * device_latency
            loads += math.ceil(longest_shared / GPU["loads_in_flight"]) * GPU["shared_latency"]
            clocks += max(issue(shared, device), wavefronts, loads, sectors * SECTOR_BYTES / GPU["sm_bytes"])
            clocks += GPU["barrier"]
        return clocks


class Step:
    """The kernels of a training step, and what an epoch of such steps takes."""

    def __init__(self, counts, compiled):
        self.images = counts["images"]
        grids = counts["grids"]
        step_bytes = sum((grid["device_reads"]["cost"] + grid["device_writes"]["cost"]) * SECTOR_BYTES
                         * grid["blocks"] / grid["watched_blocks"] for grid in grids)
        fits = step_bytes <= GPU["l2_bytes"]
        latency, bandwidth = GPU["l2_latency" if fits else "memory_latency"], GPU["l2_bandwidth" if fits else "memory_bandwidth"]
        self.kernels = [Estimate(grid, figures_of(grid["kernel"], compiled), counts["overlap"], latency, bandwidth)
                        for grid in grids]
        self.flops = [flops_of(grid["kernel"], counts["layers"]) for grid in grids]
        self.seconds = sum(kernel.seconds for kernel in self.kernels)
        steps = math.ceil(SAMPLES / self.images)
        self.epoch = steps * self.seconds
        self.epoch_below_peak = steps * sum(kernel.seconds_below_peak for kernel in self.kernels)


def figures_of(kernel, compiled):
    found = [figures for name, figures in compiled.items() if name.split(": ", 1)[1] == kernel]
    if not found:
        sys.exit(f"roofline.py: the compiler has no kernel {kernel!r}, which a step launches; it has:\n" + "\n".join(compiled))
    return max(found, key=lambda figures: figures["registers"])


def short_name(kernel):
    name = re.sub(r"^functor_kernel<(.*)>$", r"\1", kernel).strip()
    return re.sub(r"\s+>", ">", name)


def kernel_rows(step):
    rows = []
    for kernel, flops in zip(step.kernels, step.flops):
        grid = kernel.grid
        shared = (grid["dynamic_shared"] + kernel.compiled["shared"]) / 1000
        rows.append([f"{step.images}", f"`{short_name(grid['kernel'])}`", f"{grid['blocks']} × {grid['threads']}",
                     f"{kernel.resident}", f"{kernel.compiled['registers']}", f"{shared:.1f}",
                     f"{flops * step.images / 1e6:.1f}" if flops else "–", f"{kernel.bytes / 1e6:.2f}",
                     f"{kernel.wavefronts / 1e6:.3f}", f"{kernel.conflicts:.2f}", f"{kernel.seconds * 1e6:.1f}", kernel.bound])
    return rows


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def release_of(nvcc):
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"release ([\d.]+)", text)[1]


def table(steps, nvcc):
    epochs = markdown(["batch", "kernels per step", "µs per step", "ms per epoch", f"at {PART_OF_PEAK:.0%} of all rates"],
                      [[f"{step.images}", f"{len(step.kernels)}", f"{step.seconds * 1e6:.1f}", f"{step.epoch * 1e3:.2f}",
                        f"{step.epoch_below_peak * 1e3:.2f}"] for step in steps])
    kernels = markdown(["batch", "kernel", "blocks × threads", "per SM", "registers", "shared KB", "MFLOP", "MB", "M wavefronts",
                        "conflicts", "µs", "bound by"], [row for step in steps for row in kernel_rows(step)])
    assumptions = "\n".join(f"- {name.replace('_', ' ').replace('l2', 'L2')}: {text} ({source})" for name, (_, text, source) in H200.items())
    return (f"{BEGIN}\n{epochs}\n\n{kernels}\n\nOf the GPU it takes for granted:\n\n{assumptions}\n\n{compiled_by(nvcc)}, by `ninja -C build roofline`.\n{END}")


def compiled_by(nvcc):
    return f"Made of what nvcc {release_of(nvcc)} compiles"


def figures_in(text):
    """The cells of all tables, row by row."""
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def differences(old, new):
    """What of the old text's tables is no longer so."""
    if not old:
        return ["there is no table"]
    before, now = figures_in(old), figures_in(new)
    if len(before) != len(now):
        return [f"the tables have {len(before)} lines, want {len(now)}"]
    found = []
    for old_row, new_row in zip(before, now):
        for old_cell, new_cell in zip(old_row, new_row):
            try:
                same = abs(float(old_cell) - float(new_cell)) <= TOLERANCE * abs(float(new_cell)) + 0.01
            except ValueError:
                same = old_cell == new_cell or old_row[-1] == old_cell  # which of two close bounds it is may change
            if not same:
                found.append(f"{old_cell!r} is now {new_cell!r}: {' | '.join(new_row)}")
    return found


def counts_of(program, images):
    done = subprocess.run([program, str(images)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{program} {images}: {done.stderr}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--counts", "--nvcc", "--source", "--build", "--nvdisasm-venv"):
        parser.add_argument(name, required=name != "--nvdisasm-venv", default="", type=Path)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--check", type=Path)
    options = parser.parse_args()
    nvdisasm = compiled_kernels.find_nvdisasm(options.nvcc, options.nvdisasm_venv)
    if not nvdisasm:
        print("SKIPPED: no nvdisasm, neither in the CUDA toolkit nor installed from PyPI by tools/test")
        sys.exit(77)
    compiled = compiled_kernels.compile_kernels(options.nvcc, options.source, nvdisasm, options.build / "compiled_kernels.json")
    with ThreadPoolExecutor(2) as pool:
        steps = [Step(counts, compiled) for counts in pool.map(lambda images: counts_of(options.counts, images), BATCHES)]
    new = table(steps, options.nvcc)
    print(new)
    readme = options.write or options.check
    problems = [f"batch {step.images}: an epoch is estimated at {step.epoch * 1e3:.2f} ms, its budget is {BUDGETS[step.images]} ms"
                for step in steps if step.epoch * 1e3 > BUDGETS[step.images]]
    if readme:
        text = readme.read_text()
        begin, end = text.find(BEGIN), text.find(END)
        old = text[begin:end + len(END)] if 0 <= begin < end else ""
        if options.write:
            if not old:
                sys.exit(f"{readme} has no marks {BEGIN} and {END}")
            readme.write_text(text.replace(old, new))
        else:
            stale = [f"{readme}: {text}" for text in differences(old, new)]
            if stale and old and compiled_by(options.nvcc) not in old:
                print("Another nvcc has compiled the table's kernels, so it may differ:", *stale, sep="\n")
            elif stale:
                problems += [*stale, "ninja -C BUILD roofline writes the table of today"]
    print(*problems, sep="\n")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
