#!/usr/bin/env python3
"""Holds each CUDA kernel to a budget: no stack, no spills, no more registers, and no more shared loads and instructions for each
product of its hot loops.

  kernel_budgets.py --nvcc NVCC --source FOLDER [--build FOLDER] [--nvdisasm-venv FOLDER] [--loops]

Compiles every kernel for sm_90 and reads what ptxas says of it; --loops: only the loops, which nvdisasm is needed for. Exits with
77 without one. Needs no GPU.
"""
import argparse
import re
import sys
import tempfile
from pathlib import Path

import compiled_kernels

# Registers per thread at most: "file: kernel", the first pattern that is found counts. Budgets with a reason are
# promises; the others are what the kernels take, so that nobody doubles it unseen.
REGISTERS = [
    # Four blocks of 192 threads, and two of 384, on a multiprocessor of 65536 registers.
    (r"^conv_pool_forward\.cu: functor_kernel<ForwardKernel>", 80),
    (r"^conv_pool_backward\.cu: functor_kernel<BackwardKernel<[12], [035], 384>", 80),
    # One block, for convolutions with many kernel rows.
    (r"^conv_pool_backward\.cu: functor_kernel<BackwardKernel<[12], [05], 512>", 128),
    # Two blocks of 512 threads.
    (r"^linear_stack\.cu: functor_kernel<StackKernel>", 64),
    # One block of 512 threads, which takes most of the shared memory.
    (r"^conv_pool_stack\.cu: functor_kernel<", 96),
    (r"^conv\.cu: product_kernel<Tile<16, 128, 16, 4, 4>, BackwardWeights>", 128),
    (r"^conv\.cu: product_kernel<.*, BackwardWeights>", 64),
    (r"^conv\.cu: product_kernel<.*, (Forward|BackwardInput)>", 48),
    (r"^linear\.cu: product_kernel<", 48),
    (r"^linear\.cu: functor_kernel<ProductsKernel<", 32),
    # A thread per channel: a handful of blocks.
    (r"^batch_norm\.cu: (join|part|join_part)_(statistics|gradients)_kernel", 48),
    (r"^pool\.cu: avg_backward_kernel", 48),
    (r"^loss\.cu: loss_kernel", 48),
    (r"", 32),
]
# Of the worst hot loop: shared loads per FFMA, and instructions per FFMA, at most.
LOOPS = [
    (r"<ForwardKernel>", 0.25, 1.5),
    # Of a sparse gradient each value is multiplied with a few weights only.
    (r"<BackwardKernel<", 1.4, 3.6),
    (r"<StackKernel>", 0.5, 1.9),
    # Of one image nothing that is read serves several products.
    (r"<ConvPoolStackKernel>", 2, 4.4),
    (r"<StackStepKernel>", 0.5, 3),
    (r"Tile<16, 32, 32, 2, 2>", 0.9, 2.1),
    (r"Tile<", 0.5, 1.6),
]
PLANTED = """__global__ void planted(const float* from, float* to, const int* which) {
  float local[64] = {};
  for (int i = 0; i < 64; ++i) local[which[i]] += from[i];
  to[threadIdx.x] = local[which[threadIdx.x]];
}
// Two shared loads for each product: conflict-free, and too many.
__global__ void planted_loop(const float* from, float* to, int count) {
  __shared__ float shared[2048];
  for (int i = threadIdx.x; i < 2048; i += 256) shared[i] = from[i];
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += shared[i] * shared[(i + threadIdx.x) & 1023];
  to[threadIdx.x] = sum;
}
"""


class Budgets:
    """A table of budgets, and which of its rows have been used."""

    def __init__(self, rows):
        self.rows, self.unused = rows, [row[0] for row in rows]

    def of(self, kernel):
        row = next((row for row in self.rows if re.search(row[0], kernel)), None)
        if row and row[0] in self.unused:
            self.unused.remove(row[0])
        return row and row[1:]

    def unused_problems(self):
        return [f"no kernel has the budget {pattern!r}" for pattern in self.unused]


def memory_problems(kernels, budgets):
    problems = []
    for kernel, figures in sorted(kernels.items()):
        most, = budgets.of(kernel)
        if figures["memory"]:
            problems.append(f"{kernel}: {figures['memory']} bytes of stack and spills, want none")
        if figures["registers"] > most:
            problems.append(f"{kernel}: {figures['registers']} registers, at most {most} are its budget")
    return problems


def per_product(loop):
    return (compiled_kernels.shared_loads(loop) / compiled_kernels.products(loop),
            compiled_kernels.instructions(loop) / compiled_kernels.products(loop))


def loop_problems(kernels, budgets):
    problems = []
    for kernel, figures in sorted(kernels.items()):
        for loop in compiled_kernels.hot_loops(figures):
            budget = budgets.of(kernel)
            if not budget:
                problems.append(f"{kernel} has a hot loop and no budget for it")
                break
            for what, value, most in zip(("shared loads", "instructions"), per_product(loop), budget):
                if value > most:
                    problems.append(f"{kernel}: {value:.2f} {what} per FFMA in a loop of {compiled_kernels.products(loop)}, "
                                    f"at most {most} are its budget")
    return problems


def figures_of(kernels, loops):
    for name, figures in sorted(kernels.items()):
        if not loops:
            yield f"{figures['registers']:4} registers  {name}"
        for loop in compiled_kernels.hot_loops(figures) if loops else ():
            yield "{:5.2f} shared loads, {:5.2f} instructions per FFMA  {}".format(*per_product(loop), name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--nvcc", "--source"):
        parser.add_argument(name, required=True, type=Path)
    parser.add_argument("--build", type=Path)
    parser.add_argument("--nvdisasm-venv", default="", type=Path)
    parser.add_argument("--loops", action="store_true")
    options = parser.parse_args()
    nvdisasm = compiled_kernels.find_nvdisasm(options.nvcc, options.nvdisasm_venv)
    if options.loops and not nvdisasm:
        print("SKIPPED: no nvdisasm, neither in the CUDA toolkit nor installed from PyPI by tools/test")
        sys.exit(77)
    cache = options.build / "compiled_kernels.json" if options.build else None
    all_kernels = compiled_kernels.compile_kernels(options.nvcc, options.source, nvdisasm, cache)
    with tempfile.TemporaryDirectory() as folder:
        planted = Path(folder) / "planted.cu"
        planted.write_text(PLANTED)
        planted = compiled_kernels.compile_kernels(options.nvcc, options.source, nvdisasm, files=[planted])
    problems_of, rows = (loop_problems, LOOPS) if options.loops else (memory_problems, REGISTERS)
    if not problems_of(planted, Budgets(rows + [(r"", 0.5, 2)] if options.loops else rows)):
        sys.exit(f"a kernel that is over every budget is not found: {planted}")
    budgets = Budgets(rows)
    problems = problems_of(all_kernels, budgets) + budgets.unused_problems()
    print(*figures_of(all_kernels, options.loops), *problems, sep="\n")
    sys.exit(1 if problems else 0)


main()
