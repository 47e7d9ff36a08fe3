#!/usr/bin/env python3
"""Breaks kernels in 28 places, one at a time, and runs the host's tests that have to find it.

  mutants.py SOURCE BUILD [NUMBER…]     all, or some of them; cuda_host_layer_tests and cuda_on_host_tests are built in BUILD
  mutants.py SOURCE                     only whether the places are still in the sources

Compiles only the sources that contain the place, and links the tests again. Takes some 20 s per mutant. Prints a line for each; exits
with 1 if a mutant survives, and with 2 if a place is no longer in the source.
"""
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = "core/kernels/cuda/kernels"
LAYERS, ENGINE = "cuda_host_layer_tests", "cuda_on_host_tests"
PARITY = (ENGINE, "Parity.*:All/LayerReference.*")
CONV_POOL, STACK_STEP = (LAYERS, "*ConvPool*"), (LAYERS, "StackStep.*")
FORWARD, STACK = ["conv_pool_forward", "conv_pool_stack"], ["linear_stack", "conv_pool_stack"]

# What is broken: the file, the text and what replaces it, the tests, and which sources include a header.
MUTANTS = [
    ("augment.cu", "  __syncthreads();\n  const auto values", "  const auto values", (LAYERS, "AugmentSamples.*")),
    ("augment.cu", "from = rows[image] * values", "from = static_cast<std::size_t>(image) * values", (LAYERS, "AugmentSamples.*")),
    ("batch_norm.cu", "normal = (in[i] - mean[c]) * inverse[c];\n    out[i]", "normal = (in[i] + mean[c]) * inverse[c];\n    out[i]", PARITY),
    ("conv.cu", "y * shape.dilation_y, x * shape.dilation_x", "y, x * shape.dilation_x", PARITY),
    ("conv.cu", "y * shape.stride_y - shape.pad_y", "y * shape.stride_y + shape.pad_y", PARITY),
    ("conv_pool_backward.cu", "2 * x + right}", "2 * x - right}", CONV_POOL),
    ("conv_pool_backward.cu", "__syncthreads();  // behind it the previous image", ";  // behind it the previous image", CONV_POOL),
    ("conv_pool_forward.h", "compare(window.w, 3);", "compare(window.w, 2);", CONV_POOL, FORWARD),
    ("conv_pool_forward.h", "if (c.splits == 1) return;\n    __syncthreads();", "if (c.splits == 1) return;", CONV_POOL, FORWARD),
    ("conv_pool_input_gradient.h", "(y + s.pad_y) / 2, odd", "(y - s.pad_y) / 2, odd", CONV_POOL, ["conv_pool_backward"]),
    ("conv_pool_weight_gradient.h", "weights_[kx] += gradient.value", "weights_[kx] -= gradient.value", CONV_POOL, ["conv_pool_backward"]),
    ("conv_pool_stack.cu", ".start = stack_start(chain)", ".start = stack_start(chain) - 4", (LAYERS, "ConvPoolStack.*")),
    ("elementwise.cu", "< rule.threshold ? 0.0f", "> rule.threshold ? 0.0f", (ENGINE, "*Dropout*")),
    ("elementwise.cu", "out[i] = a[i] + b[i]", "out[i] = a[i] - b[i]", PARITY),
    ("linear.cu", "n == in_features ? 1.0f", "n == in_features ? 0.0f", STACK_STEP),
    ("linear_stack_kernel.h", "      grads[i] = g;", "      grads[i] = -g;", PARITY, STACK),
    ("linear_stack.cu", "    if (!loads_weights_early) tiles.load_weights<Load::kLate>(shared);\n", "", (LAYERS, "KernelOverlap.*")),
    ("loss.cu", "* targets - loss.class_target", "* targets + loss.class_target", (ENGINE, "Loss.*:Parity.OfANetworkWithEveryKindOfLayer")),
    ("optimizer.cu", "    sums[thread] = sum;\n    __syncthreads();", "    sums[thread] = sum;", STACK_STEP),
    ("optimizer_rule.h", "state[0] + factors.take * g", "state[0] - factors.take * g", (ENGINE, "All/OptimizerParity.*"), ["optimizer"]),
    ("pixels.cu", "value(i % values,", "value((i + 1) % values,", PARITY),
    ("pool.cu", "argmax[i] = best;", "argmax[i] = rows.begin;", PARITY),
    ("product.h", "next_b.store(thread, b[1 - at]);\n    __syncthreads();", "next_b.store(thread, b[1 - at]);", STACK_STEP, ["linear"]),
    ("product.h", "next_a.store(thread, a[1 - at]);", "next_a.store(thread, a[at]);", STACK_STEP, ["linear"]),
    ("product.h", "n = first_column + thread_column + c * Tile::kThreadsAcross;", "n = first_column + thread_column + c;", STACK_STEP, ["linear"]),
    ("product.h", "problem.columns && k < range.end", "problem.columns", STACK_STEP, ["linear"]),
    ("stack_gradient_tiles.h", "    wait_for_copies();\n    __syncthreads();", "    wait_for_copies();", STACK_STEP, ["optimizer"]),
    ("value_counter.cu", "  __syncthreads();\n  const Chunk", "  const Chunk", (LAYERS, "ValueCounter.*")),
]


def commands(build, program):
    """The commands that make a program, by the last words of what they write."""
    lines = subprocess.run(["ninja", "-C", build, "-t", "commands", f"tests/{program}"], capture_output=True, text=True, check=True).stdout
    return [line for line in lines.splitlines() if line.startswith((":", "/", "ccache"))]


def run(source, build, number):
    name, before, after, (program, tests), *includers = MUTANTS[number]
    text = (source / KERNELS / name).read_text()
    every = commands(build, program)
    link = next(line for line in every if f"-o tests/{program} " in line)
    with tempfile.TemporaryDirectory() as folder:
        mutated = Path(folder, KERNELS, name)
        mutated.parent.mkdir(parents=True)
        mutated.write_text(text.replace(before, after))
        for unit in includers[0] if includers else [mutated.stem]:
            compiled = next(line for line in every if "sweep_cuda_host_kernels" in line and line.endswith(f"/{unit}.cu"))
            words = shlex.split(compiled)
            made, own = words[words.index("-o") + 1], f"{folder}/{unit}.o"
            words[words.index("-o") + 1] = words[words.index("-MF") + 1] = own
            words[words.index("-MF") + 1] += ".d"
            if not includers:
                words[-1] = str(mutated)
            words.insert(words.index("-c"), f"-I{folder}")
            # The folder of the mutant comes first.
            words.insert(next(i for i, word in enumerate(words) if word.startswith("-I")), words.pop(words.index(f"-I{folder}")))
            subprocess.run(words, cwd=build, check=True)
            link = link.replace(made, own)
        link = link.replace(f"-o tests/{program} ", f"-o {folder}/{program} ")
        subprocess.run(link, shell=True, cwd=build, check=True, executable="/bin/bash")
        try:
            done = subprocess.run([f"{folder}/{program}", "--gtest_brief=1", f"--gtest_filter={tests}"], capture_output=True,
                                  text=True, timeout=300, env={**os.environ, "SWEEP_CUDA_KERNELS": "builtin"})
            if "] 0 tests from 0 test suites ran" in done.stdout:
                return f"no test is called {tests}"
            return "found" if done.returncode != 0 else "SURVIVED"
        except subprocess.TimeoutExpired:
            return "TIMEOUT"


def main():
    source = Path(sys.argv[1]).resolve()
    lost = [f"{name}: {before!r}" for name, before, *_ in MUTANTS if (source / KERNELS / name).read_text().count(before) != 1]
    if lost:
        print("not once in the source: " + "; ".join(lost))
        sys.exit(2)
    if len(sys.argv) == 2:
        return
    build = Path(sys.argv[2]).resolve()
    outcomes = set()
    for number in [int(word) - 1 for word in sys.argv[3:]] or range(len(MUTANTS)):
        outcome = run(source, build, number)
        outcomes.add(outcome)
        name, before, _, (program, tests), *_ = MUTANTS[number]
        print(f"{number + 1:2}  {outcome:8}  {name}: {before.strip().splitlines()[0]}  [{program} {tests}]", flush=True)
    sys.exit(0 if outcomes <= {"found"} else 1 if outcomes <= {"found", "SURVIVED", "TIMEOUT"} else 2)


main()
