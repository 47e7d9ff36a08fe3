#!/usr/bin/env python3
"""Makes a wheel of an installed program: of bin/sweep, the libraries that it needs and what is under share.

  make_wheel.py --prefix PREFIX --version 0.2.0 DIR

PREFIX is a directory that `cmake --install BUILD --strip --component program` filled. Prints the path of the wheel, whose tag says which
glibc it needs at least. A program for another processor, --arch, runs under qemu with the libraries in --sysroot.
"""
import argparse
import base64
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What every Linux that the tag names has (PEP 600): glibc's libraries and the compiler's.
OF_THE_SYSTEM = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+))\.so\b")
# What the program was built with and contains.
IN_THE_PROGRAM = ("nlohmann-json3-dev", "libcli11-dev", "libboost-dev", "libjs-vega", "unifont")
# The newest libstdc++ that comes with a distribution of that glibc (auditwheel's policies).
NEWEST_LIBSTDCXX = {34: 29, 35: 30, 36: 30, 37: 31, 38: 32, 39: 33}
METADATA = """\
Metadata-Version: 2.1
Name: sweep-runner
Version: {version}
Summary: Hyperparameter sweeps of small networks, logged for TensorBoard
License: Apache-2.0
Requires-Python: >=3.8
Provides-Extra: tensorboard
Requires-Dist: tensorboard; extra == 'tensorboard'
Provides-Extra: pandas
Requires-Dist: pandas; extra == 'pandas'
{cuda}Description-Content-Type: text/markdown

{readme}"""


def output_of(*command, **environment):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment}).stdout


def needed_libraries(run, sysroot):
    """{name: path} of the shared libraries that the program that `run` starts and its libraries need and a system may lack."""
    loaded = output_of(*run, LD_TRACE_LOADED_OBJECTS="1")
    if "=> not found" in loaded:
        raise SystemExit(f"make_wheel.py: a library of the program is not here:\n{loaded}")
    found = re.findall(r"^\s*(\S+) => /(.+) \(0x", loaded, re.MULTILINE)
    return {name: sysroot / path for name, path in found if not OF_THE_SYSTEM.match(name)}


def licences(libraries, sysroot):
    """{package: path} of the licences of these libraries, and of what is part of the program itself, as Debian's packages have them."""
    documents = sysroot / "usr/share/doc"
    packages = {name for name in IN_THE_PROGRAM if (documents / name).exists()}
    names = {}  # of each library: a system with one folder for /lib and /usr/lib lists some files by the other name
    for path in libraries:
        real = path.resolve()
        names[path] = [path, real, *([sysroot / real.relative_to(sysroot / "usr")] if real.is_relative_to(sysroot / "usr") else [])]
    command = ["dpkg-query", f"--admindir={sysroot / 'var/lib/dpkg'}", "--search", *(name for group in names.values() for name in group)]
    found = subprocess.run(command, capture_output=True, text=True).stdout if shutil.which("dpkg-query") else ""
    owners = {path: package.split(":")[0] for package, path in re.findall(r"^(\S+): (.+)$", found, re.MULTILINE)}
    for path, group in names.items():
        owner = next((owners[str(name)] for name in group if str(name) in owners), None)
        if owner:
            packages.add(owner)
        else:
            print(f"make_wheel.py: no licence is known of {path}", file=sys.stderr)
    return {name: text for name in sorted(packages) if (text := documents / name / "copyright").exists()}


def glibc_needed(files):
    """The minor version of the oldest glibc 2 that runs all of `files`, and whose distributions have their libstdc++."""
    symbols = "".join(output_of("readelf", "--version-info", "--wide", file) for file in files)

    def newest(version):
        return max(int(minor) for minor in re.findall(version + r"(\d+)", symbols))

    glibc, libstdcxx = max(newest(r"GLIBC_2\."), min(NEWEST_LIBSTDCXX)), newest(r"GLIBCXX_3\.4\.")
    while glibc in NEWEST_LIBSTDCXX and NEWEST_LIBSTDCXX[glibc] < libstdcxx:
        glibc += 1
    return glibc


def cuda_extra(run):
    """The lines of METADATA for the wheels with the libraries that the program, which `run` starts, opens if there is a GPU."""
    opened = dict(re.findall(r"lib(cublasLt|cudnn|nccl)\.so\.(\d+)", output_of(*run, "devices")))
    if "cublasLt" not in opened:
        return ""
    # The program looks for them in the environment that it is installed into.
    suffix = f"-cu{opened['cublasLt']}"
    wheels = {"cublasLt": "nvidia-cublas" + (suffix if int(opened["cublasLt"]) < 13 else ""),
              "cudnn": f"nvidia-cudnn{suffix}", "nccl": f"nvidia-nccl{suffix}"}
    needed = [f"Requires-Dist: {wheels[library]} =={major}.*; extra == 'cuda'\n" for library, major in opened.items()]
    return "".join(["Provides-Extra: cuda\n", *needed])


def write_wheel(path, info, files):
    """Writes the wheel's zip: `files` maps names in it to (content, is_program)."""
    record = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, (content, is_program) in sorted(files.items()):
            entry = zipfile.ZipInfo(name)  # of 1980: the same bytes each time
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content, compresslevel=9)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD"), f"{record}{info}/RECORD,,\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", required=True, type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--arch", default=platform.machine())
    parser.add_argument("--sysroot", type=Path, default="/")
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    name = f"sweep_runner-{arguments.version}"
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder)
        shutil.copytree(arguments.prefix, stage, dirs_exist_ok=True)
        program = stage / "bin/sweep"
        emulator = [] if arguments.arch == platform.machine() else [f"qemu-{arguments.arch}-static", "-L", arguments.sysroot]
        run = [*emulator, program]
        libraries = stage / "lib/sweep"
        libraries.mkdir(parents=True, exist_ok=True)
        needed = needed_libraries(run, arguments.sysroot)
        for library, path in needed.items():
            shutil.copy(path, libraries / library)
        texts = stage / "share/doc/sweep-runner/licences"
        texts.mkdir(parents=True)
        for package, path in licences(needed.values(), arguments.sysroot).items():
            shutil.copy(path, texts / package)
        binaries = [program, *sorted(libraries.iterdir())]
        tag = f"py3-none-manylinux_2_{glibc_needed(binaries)}_{arguments.arch}"
        files = {f"{name}.data/scripts/sweep": (program.read_bytes(), True)}
        cuda = cuda_extra(run)
        program.unlink()
        for path in sorted(stage.rglob("*")):
            if path.is_file():
                files[f"{name}.data/data/{path.relative_to(stage)}"] = (path.read_bytes(), ".so" in path.name)
    for path in sorted((HERE / "sweep").glob("*.py*")):
        files[f"sweep/{path.name}"] = (path.read_bytes(), False)
    info = f"{name}.dist-info"
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    files[f"{info}/METADATA"] = (METADATA.format(version=arguments.version, cuda=cuda, readme=readme).encode(), False)
    wheel = f"Wheel-Version: 1.0\nGenerator: sweep\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[f"{info}/WHEEL"] = (wheel.encode(), False)
    files[f"{info}/LICENSE"] = ((HERE.parents[1] / "LICENSE").read_bytes(), False)
    arguments.directory.mkdir(parents=True, exist_ok=True)
    path = arguments.directory / f"{name}-{tag}.whl"
    write_wheel(path, info, files)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
