"""What the compiler makes of the CUDA kernels, for sm_90: registers, memory, and the instructions of their loops.

Needs nvcc and no GPU. The instructions come from nvdisasm, which tools/test installs from PyPI where the toolkit has none.
"""
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ARCHITECTURE = "sm_90"
# A loop is hot if it has as many FFMAs, as many shared loads for each of them, and as many of them among its instructions. The
# others load, store or compute functions.
LEAST_PRODUCTS, LEAST_LOADS_PER_PRODUCT, LEAST_PRODUCTS_PER_INSTRUCTION = 4, 0.15, 0.15


def find_nvdisasm(nvcc, environment):
    """The disassembler beside nvcc, or in a Python environment; None if there is neither."""
    candidates = [Path(nvcc).parent / "nvdisasm", *sorted(Path(environment).glob("lib/python*/site-packages/nvidia/*/bin/nvdisasm"))]
    for path in candidates:
        if path.is_file():
            path.chmod(path.stat().st_mode | 0o111)  # a wheel's files need not be executable
            return path
    return shutil.which("nvdisasm")


def short_names(text):
    """Demangled, without what is the same for all kernels, or spelled in two ways."""
    text = subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True).stdout
    return re.sub(r"\(anonymous namespace\)::|_GLOBAL__N__\w+::|sweep::cuda::", "", text)


def loops_of(code):
    """The innermost loops of a kernel in the text of nvdisasm: [{opcode: count}], the one with the most products first."""
    labels, branches, opcodes = {}, [], []
    for line in code.splitlines():
        label = re.match(r"(\.L_x_\d+):", line)
        if label:
            labels[label[1]] = len(opcodes)
        instruction = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)(.*)", line)
        if not instruction:
            continue
        target = re.search(r"`\((\.L_x_\d+)\)", instruction[2])
        if instruction[1].startswith("BRA") and target:
            branches.append((len(opcodes), target[1]))
        opcodes.append(instruction[1])
    ranges = {(labels[target], at) for at, target in branches if target in labels and labels[target] <= at}
    loops = []
    for begin, end in ranges:
        if any((b, e) != (begin, end) and begin <= b and e <= end for b, e in ranges):
            continue
        counts = {}
        for opcode in opcodes[begin:end + 1]:
            counts[opcode] = counts.get(opcode, 0) + 1
        loops.append(counts)
    return sorted(loops, key=lambda loop: (-products(loop), instructions(loop)))


def count(loop, *names):
    return sum(number for opcode, number in loop.items() if opcode.split(".")[0] in names)


def products(loop):
    return count(loop, "FFMA")


def shared_loads(loop):
    return count(loop, "LDS")


def instructions(loop):
    return sum(loop.values())


def hot_loops(kernel):
    """The innermost loops that multiply what they read from shared memory."""
    return [loop for loop in kernel["loops"] if products(loop) >= LEAST_PRODUCTS
            and shared_loads(loop) >= LEAST_LOADS_PER_PRODUCT * products(loop)
            and products(loop) >= LEAST_PRODUCTS_PER_INSTRUCTION * instructions(loop)]


def compile_file(nvcc, source, nvdisasm, file, work):
    """{"file: kernel": {"registers", "memory": bytes of stack and spills, "shared": static bytes, "loops"}}"""
    cubin = work / f"{file.stem}.cubin"
    done = subprocess.run([nvcc, f"-arch={ARCHITECTURE}", "-std=c++20", "-O2", f"-I{source}", "--expt-relaxed-constexpr",
                           "-Xptxas", "-v", "-cubin", "-o", cubin, file], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{file.name} does not compile:\n{done.stderr}")
    kernels, mangled = {}, done.stderr
    pattern = (r"Compiling entry function '(\w+)'.*\n(?:.*Function properties.*\n)?"
               r" *(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n.*Used (\d+) registers(.*)")
    found = re.findall(pattern, mangled)
    if len(found) != mangled.count("Compiling entry function"):
        sys.exit(f"{file.name}: this is not understood:\n{mangled}")
    texts = {}
    if nvdisasm:
        text = subprocess.run([nvdisasm, "-c", cubin], capture_output=True, text=True, check=True).stdout
        parts = re.split(r"^\s*\.section\s+\.text\.(\w+),.*$", text, flags=re.MULTILINE)
        texts = dict(zip(parts[1::2], parts[2::2]))
    for symbol, stack, stores, loads, registers, rest in found:
        name = re.sub(r"^void ", "", short_names(symbol)).split("(")[0].strip()
        shared = re.search(r"(\d+) bytes smem", rest)
        kernels[f"{file.name}: {name}"] = {
            "registers": int(registers), "memory": int(stack) + int(stores) + int(loads),
            "shared": int(shared[1]) if shared else 0,
            "loops": loops_of(texts[symbol]) if nvdisasm else None}
    return kernels


def kernel_files(source):
    return sorted((source / "core/kernels/cuda/kernels").glob("*.cu"))


def compile_kernels(nvcc, source, nvdisasm=None, cache=None, files=None):
    """The figures of the project's kernels, or of those in `files`. `cache`: a file that keeps them until sources or tools
    change."""
    files = files or kernel_files(source)
    digest = hashlib.sha256()
    for tool in filter(None, (nvcc, nvdisasm)):
        digest.update(subprocess.run([tool, "--version"], capture_output=True, check=True).stdout)
    for path in [Path(__file__), *files, *sorted((source / "core").rglob("*.h"))]:
        digest.update(path.read_bytes())
    key = digest.hexdigest()
    if cache and cache.exists():
        kept = json.loads(cache.read_text())
        if kept["key"] == key:
            return kept["kernels"]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda file: compile_file(nvcc, source, nvdisasm, file, Path(folder)), files))
    kernels = {name: figures for of_file in done for name, figures in of_file.items()}
    if cache:
        cache.write_text(json.dumps({"key": key, "kernels": kernels}))
    return kernels
