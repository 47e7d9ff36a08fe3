#!/usr/bin/env python3
"""Holds each CUDA kernel to a budget: no stack, no spills, and no more registers.

  kernel_budgets.py --nvcc NVCC --source FOLDER

Compiles every kernel for sm_90 and reads what ptxas says of it. Needs no GPU.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ARCHITECTURE = "sm_90"
# Registers per thread at most: "file: kernel", the first pattern that is found counts. Budgets with a reason are
# promises; the others are what the kernels take, so that nobody doubles it unseen.
REGISTERS = [
    # Four blocks of 192 threads, and two of 384, on a multiprocessor of 65536 registers.
    (r"^conv_pool_forward\.cu: functor_kernel<ForwardKernel>", 80),
    (r"^conv_pool_backward\.cu: functor_kernel<BackwardKernel<[12], [35], 384>", 80),
    # One block, for convolutions with many kernel rows.
    (r"^conv_pool_backward\.cu: functor_kernel<BackwardKernel<[12], [35], 512>", 128),
    # One block of 512 threads, which takes most of the shared memory.
    (r"^(linear_stack|conv_pool_stack)\.cu: functor_kernel<", 104),
    (r"^conv\.cu: product_kernel<Tile<16, 128, 16, 4, 4>, BackwardWeights>", 128),
    (r"^conv\.cu: product_kernel<.*, BackwardWeights>", 80),
    (r"^linear\.cu: product_kernel<Tile<16, 128, 16, 4, 4>, Forward>", 80),
    # Eight blocks of 128 threads, four of 256.
    (r"^(conv|linear)\.cu: (product|functor)_kernel<", 64),
    # Six blocks of 256 threads, each with a parameter and its state in registers.
    (r"^optimizer\.cu: functor_kernel<(Stack|Clipped)?StepKernel>", 40),
    # A thread or a block per channel: a handful of blocks.
    (r"^batch_norm\.cu: (join|share|join_share)_(statistics|gradients)_kernel", 48),
    (r"^pool\.cu: avg_backward_kernel", 48),
    (r"^loss\.cu: loss_kernel", 56),
    (r"", 32),
]
# Over its budget of memory.
PLANTED = """__global__ void planted(const float* from, float* to, const int* which) {
  float local[64] = {};
  for (int i = 0; i < 64; ++i) local[which[i]] += from[i];
  to[threadIdx.x] = local[which[threadIdx.x]];
}
"""


def short_names(text):
    """Demangled, without what is the same for all kernels, or spelled in two ways."""
    text = subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True).stdout
    text = re.sub(r"\(anonymous namespace\)::|_GLOBAL__N__\w+::|sweep::cuda::", "", text)
    return re.sub(r"^void ", "", text).split("(")[0].strip()


def compile_file(nvcc, source, file, folder):
    """{"file: kernel": {"registers", "memory": bytes of stack and spills}}"""
    done = subprocess.run([nvcc, f"-arch={ARCHITECTURE}", "-std=c++20", "-O2", f"-I{source}", "--expt-relaxed-constexpr",
                           "-Xptxas", "-v", "-cubin", "-o", folder / f"{file.stem}.cubin", file],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{file.name} does not compile:\n{done.stderr}")
    pattern = (r"Compiling entry function '(\w+)'.*\n(?:.*Function properties.*\n)?"
               r" *(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n.*Used (\d+) registers")
    found = re.findall(pattern, done.stderr)
    if len(found) != done.stderr.count("Compiling entry function"):
        sys.exit(f"{file.name}: this is not understood:\n{done.stderr}")
    return {f"{file.name}: {short_names(symbol)}": {"registers": int(registers), "memory": int(stack) + int(stores) + int(loads)}
            for symbol, stack, stores, loads, registers in found}


def compile_kernels(nvcc, source, files):
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda file: compile_file(nvcc, source, file, Path(folder)), files))
    return {name: figures for of_file in done for name, figures in of_file.items()}


def problems_of(kernels, used):
    for kernel, figures in sorted(kernels.items()):
        pattern, most = next(row for row in REGISTERS if re.search(row[0], kernel))
        used.add(pattern)
        if figures["memory"]:
            yield f"{kernel}: {figures['memory']} bytes of stack and spills, want none"
        if figures["registers"] > most:
            yield f"{kernel}: {figures['registers']} registers, at most {most} are its budget"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--nvcc", "--source"):
        parser.add_argument(name, required=True, type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        planted = Path(folder) / "planted.cu"
        planted.write_text(PLANTED)
        found = list(problems_of(compile_kernels(options.nvcc, options.source, [planted]), set()))
    if len(found) != 1:
        sys.exit(f"of a kernel with a stack this is found: {found}")
    kernels = compile_kernels(options.nvcc, options.source, sorted((options.source / "core/kernels/cuda/kernels").glob("*.cu")))
    used = set()
    problems = list(problems_of(kernels, used))
    problems += [f"no kernel has the budget {pattern!r}" for pattern, _ in REGISTERS if pattern not in used]
    print(*(f"{figures['registers']:4} registers  {name}" for name, figures in sorted(kernels.items())), *problems, sep="\n")
    sys.exit(1 if problems else 0)


main()
