#!/usr/bin/env python3
# Makes float_formats.safetensors with Hugging Face's own library. Run by hand:
#
#   python3 -m venv /tmp/formats && /tmp/formats/bin/pip install "safetensors>=0.8" numpy
#   /tmp/formats/bin/python tests/data/make_float_formats.py
#
# For each format X in F16, BF16, F64: the tensor "X" has values in that format, "X.expected" [same shape] what they
# are in F32. They hold zeros of both signs, subnormals, the largest numbers, infinities, NaN and a spread of others.
import pathlib

import numpy as np
import safetensors


kept = []  # serialize() takes addresses


def entry(array, dtype):
    kept.append(np.ascontiguousarray(array))
    # ascontiguousarray makes a scalar an array of one.
    return safetensors.TensorSpec(dtype=dtype, shape=array.shape, data_ptr=kept[-1].ctypes.data,
                                  data_len=kept[-1].nbytes)


bits = np.concatenate([np.arange(0, 65536, 251), [0x0001, 0x03ff, 0x0400, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x8000,
                                                  0x8001, 0xfbff, 0xfc00, 0x7f80, 0xff80, 0x7fc0]]).astype(np.uint16)
half = bits.view(np.float16)
brain = (bits.astype(np.uint32) << 16).view(np.float32)
double = np.array([0.0, -0.0, 1.0, -1.5, np.pi, 1e-300, 5e-324, 1e-45, 1.4e-45, 1e300, -1e300, 3.4028234e38, 3.4028235677973366e38,
                   3.5e38, np.inf, -np.inf, np.nan, 1 + 2 ** -24, 1 + 2 ** -23, 0.1]).reshape(4, 5)
with np.errstate(over="ignore"):
    content = safetensors.serialize({
        "F16": entry(half, "float16"), "F16.expected": entry(half.astype(np.float32), "float32"),
        "BF16": entry(bits, "bfloat16"), "BF16.expected": entry(brain, "float32"),
        "F64": entry(double, "float64"), "F64.expected": entry(double.astype(np.float32), "float32"),
        "empty": entry(np.zeros((3, 0, 2), np.float32), "float32"),
        "scalar": entry(np.array(2.5, np.float32), "float32"),
    }, {"origin": f"tests/data/make_float_formats.py, safetensors {safetensors.__version__}", "key": "välue"})
pathlib.Path(__file__).with_name("float_formats.safetensors").write_bytes(content)
