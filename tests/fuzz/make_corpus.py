#!/usr/bin/env python3
# Makes the fuzzers' first inputs: small right files, from which a fuzzer derives wrong ones. Needs nothing but Python.
import gzip
import pathlib
import struct

HERE = pathlib.Path(__file__).resolve().parent / "corpus"


def idx(*extents):
    count = 1
    for extent in extents:
        count *= extent
    return struct.pack(f">HBB{len(extents)}I", 0, 8, len(extents), *extents) + bytes(i % 10 for i in range(count))


def safetensors(header, data):
    return struct.pack("<Q", len(header)) + header.encode() + data


for name, content in {
    "images": b"\0" + idx(2, 3, 2), "images-gz": b"\0" + gzip.compress(idx(2, 3, 2), mtime=0),
    "labels": b"\1" + idx(12), "labels-gz": b"\1" + gzip.compress(idx(12), mtime=0),
    "members-gz": b"\1" + gzip.compress(idx(12)[:9], mtime=0) + gzip.compress(idx(12)[9:], mtime=0),
    "huge": b"\0" + struct.pack(">HBB3I", 0, 8, 3, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF) + b"abc",
}.items():
    (HERE / "idx" / name).write_bytes(content)

for name, content in {
    "empty": safetensors("{}", b""),
    "formats": safetensors('{"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},'
                           '"y":{"dtype":"F64","shape":[],"data_offsets":[8,16]},"z":{"dtype":"F16","shape":[3],'
                           '"data_offsets":[16,22]},"w":{"dtype":"BF16","shape":[1,1],"data_offsets":[22,24]}}', bytes(range(24))),
    "wraps": safetensors('{"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}', b""),
    "deep": safetensors('{"x":' + "[" * 60 + "]" * 60 + "}", b""),
}.items():
    (HERE / "safetensors" / name).write_bytes(content)
