#!/usr/bin/env python3
"""What the compiler gives each CUDA kernel: no stack, no spills, and no more registers than its budget.

  kernel_budgets.py NVCC SOURCE_FOLDER

Compiles every kernel for sm_90 and reads what ptxas says of it. Needs no GPU.
"""
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

nvcc, source = sys.argv[1], Path(sys.argv[2])
KERNELS = source / "core/kernels/cuda/kernels"

# Registers per thread at most: "file: kernel", the first pattern that is found counts. Budgets with a reason are
# promises; the others are what the kernels take, so that nobody doubles it unseen.
BUDGETS = [
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
PLANTED = """__global__ void planted(const float* from, float* to, const int* which) {
  float local[64] = {};
  for (int i = 0; i < 64; ++i) local[which[i]] += from[i];
  to[threadIdx.x] = local[which[threadIdx.x]];
}
"""


def compile_kernels(file, work):
    """Returns {kernel: (registers, bytes of stack and spills)} of a source file."""
    done = subprocess.run([nvcc, "-arch=sm_90", "-std=c++20", "-O2", f"-I{source}", "--expt-relaxed-constexpr", "-Xptxas",
                           "-v", "-cubin", "-o", work / f"{file.stem}.cubin", file], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{file.name} does not compile:\n{done.stderr}")
    text = subprocess.run(["c++filt"], input=done.stderr.replace("'", " "), capture_output=True, text=True, check=True).stdout
    # The unnamed namespace is spelled in two ways; neither it nor the return type belongs to a kernel's name.
    text = re.sub(r"\(anonymous namespace\)::|_GLOBAL__N__\w+::|sweep::cuda::", "", text)
    found = re.findall(r"Compiling entry function  (?:void )?(.*?)\(.*\n(?:.*Function properties.*\n)?"
                       r" *(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n.*Used (\d+) registers",
                       text)
    if len(found) != text.count("Compiling entry function"):
        sys.exit(f"{file.name}: this is not understood:\n{text}")
    return {f"{file.name}: {name}": (int(registers), sum(map(int, memory))) for name, *memory, registers in found}


def problems_of(kernels):
    problems, unused = [], {pattern for pattern, _ in BUDGETS}
    for kernel, (registers, memory) in sorted(kernels.items()):
        pattern, most = next(entry for entry in BUDGETS if re.search(entry[0], kernel))
        unused.discard(pattern)
        if memory:
            problems.append(f"{kernel}: {memory} bytes of stack and spills, want none")
        if registers > most:
            problems.append(f"{kernel}: {registers} registers, at most {most} are its budget")
    return problems, unused


with tempfile.TemporaryDirectory() as folder:
    planted = Path(folder) / "planted.cu"
    planted.write_text(PLANTED)
    with ThreadPoolExecutor(2) as pool:
        compiled = list(pool.map(lambda file: compile_kernels(file, Path(folder)), [planted, *sorted(KERNELS.glob("*.cu"))]))
if not problems_of(compiled[0])[0]:
    sys.exit(f"a kernel that needs a stack is not found: {compiled[0]}")
all_kernels = {name: figures for file in compiled[1:] for name, figures in file.items()}
found, without_kernel = problems_of(all_kernels)
found += [f"no kernel has the budget {pattern!r}" for pattern in sorted(without_kernel)]
for name, (count, _) in sorted(all_kernels.items()):
    print(f"{count:4} registers  {name}")
print(*found, sep="\n")
sys.exit(1 if found else 0)
