#!/usr/bin/env python3
# Makes the fuzzers' first inputs: small right files, from which a fuzzer derives wrong ones. Needs only Python.
import gzip
import io
import json
import pathlib
import struct
import zipfile
import zlib

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


def npy(dtype, shape, data, fortran="False", version=1):
    header = f"{{'descr': '{dtype}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + data


def npz(method, **arrays):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), content, compress_type=method)
    return buffer.getvalue()


def png(width, height, color_type, depth, interlace=0):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    channels = {0: 1, 2: 3, 6: 4}[color_type]
    rows = b"".join(b"\0" + bytes((x * 7 + y) % 256 for x in range(width * channels * depth // 8)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, interlace)) +
            chunk(b"eXIf", b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0") +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


# A gray image of 8 x 8 pixels in baseline JPEG: every coefficient is 0, so each code is a single bit.
jpeg = (b"\xff\xd8\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x05\0\0\0\0\0\0\0" +
        b"\xff\xdb\0\x43\0" + b"\x10" * 64 + b"\xff\xc0\0\x0b\x08\0\x08\0\x08\x01\x01\x11\0" +
        b"\xff\xc4\0\x14\0\x01" + b"\0" * 15 + b"\0" + b"\xff\xc4\0\x14\x10\x01" + b"\0" * 15 + b"\0" +
        b"\xff\xda\0\x08\x01\x01\0\0\x3f\0\x3f\xff\xd9")

for name, content in {
    "png-gray": b"\0" + png(4, 3, 0, 8), "png-rgb16": b"\2" + png(4, 3, 2, 16), "png-interlaced": b"\1" + png(1, 1, 6, 8, 1),
    "jpeg": b"\1" + jpeg, "jpeg-resized": b"\2" + jpeg, "jpeg-cut": b"\0" + jpeg[:-4],
    "gif": b"\0GIF89a", "webp": b"\0RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f" + bytes(12),
}.items():
    (HERE / "image" / name).write_bytes(content)

for name, content in {
    "classes": b"\0x,y,label\n1,2,a\n3,4,b\n", "values": b"\0x,target\n1,2.5\n-3e2,+4\n", "missing": b"\1x,c,label\nNA,u,a\n1,,b\n?,v,a\n",
    "ordinal": b"\2c,label\nu,1\nv,2\n", "quotes": b'\0"x ""y""",label\r\n1,"a\r\nb"\r\n', "bom": b"\0\xef\xbb\xbfx\tlabel\n1\ta\n",
    "split": b"\0x;split;label\n1;train;a\n2;test;b\n3;val;a\n", "gz": b"\0" + gzip.compress(b"x,label\n1,a\n", mtime=0),
    "numbers": b"\0x,label\n1e39,a\n", "pandas": b"\0,x,label\n0,1,a\n",
}.items():
    (HERE / "csv" / name).write_bytes(content)

for name, content in {
    "u1": npy("|u1", "(2, 3)", b"abcdef"), "f4": npy("<f4", "(2,)", struct.pack("<2f", 1, 2)),
    "f8": npy(">f8", "(1, 2)", struct.pack(">2d", 1, 2)), "f2": npy("<f2", "(2,)", b"\0\x3c\0\x7c"),
    "i8": npy("<i8", "(2,)", struct.pack("<2q", 1, -2)), "fortran": npy("<i2", "(2, 3, 1)", bytes(12), "True"),
    "version2": npy("|b1", "(2,)", b"\0\1", version=2), "object": npy("|O", "(2,)", b"abc"), "huge": npy("<f4", "(4294967296, 4294967296)", b""),
    "gz": gzip.compress(npy("|u1", "(3,)", b"abc"), mtime=0),
}.items():
    (HERE / "npy" / name).write_bytes(content)

x, y = npy("<f4", "(2, 2)", struct.pack("<4f", 1, 2, 3, 4)), npy("<i8", "(2,)", struct.pack("<2q", 0, 1))
for name, content in {
    "stored": npz(zipfile.ZIP_STORED, x=x, y=y), "deflated": npz(zipfile.ZIP_DEFLATED, features=x, labels=y),
    "parts": npz(zipfile.ZIP_STORED, x_train=x, y_train=y, x_test=x, y_test=y), "values": npz(zipfile.ZIP_DEFLATED, x=x, y=x),
    "images": npz(zipfile.ZIP_STORED, x=npy("|u1", "(1, 4, 4, 3)", bytes(48)), y=npy("|u1", "(1,)", b"\0")), "empty": npz(zipfile.ZIP_STORED),
}.items():
    (HERE / "npz" / name).write_bytes(content)


def tensor_file(data, **tensors):
    header = json.dumps({name: dict(zip(("dtype", "shape", "data_offsets"), tensor)) for name, tensor in tensors.items()}).encode()
    return struct.pack("<Q", len(header)) + header + data


values = ("F32", [2, 2], [0, 16])
(HERE / "safetensors_data").mkdir(exist_ok=True)
for name, content in {
    "classes": tensor_file(struct.pack("<4f2q", 1, 2, 3, 4, 0, 1), features=values, labels=("I64", [2], [16, 32])),
    "numbers": tensor_file(struct.pack("<4f2d", 1, 2, 3, 4, 0, 1), x=values, y=("F64", [2], [16, 32])),
    "parts": tensor_file(bytes(12), y_test=("I8", [1], [11, 12]), x_train=("U8", [1, 4], [0, 4]), y_train=("U16", [1], [4, 6]),
                         x_test=("U8", [1, 4], [6, 10]), other=("BOOL", [1], [10, 11])),
    "halves": tensor_file(b"\0\x3c\x80\x3f", x=("F16", [1], [0, 2]), y=("BF16", [1], [2, 4])),
    "gz": gzip.compress(tensor_file(b"ab", x=("U8", [1], [0, 1]), y=("U8", [1], [1, 2])), mtime=0),
}.items():
    (HERE / "safetensors_data" / name).write_bytes(content)

for name, content in {
    "ten": b"\0" + b"\3" + bytes(3072) + b"\4" + bytes(3072), "hundred": b"\1" + b"\3\x63" + bytes(3072), "short": b"\0" + bytes(100),
    "gz": b"\0" + gzip.compress(bytes(3073), mtime=0),
}.items():
    (HERE / "cifar" / name).write_bytes(content)


# A sweep's directory, with little in each file.
config = {"dataset": {"name": "quarters", "path": "data", "validation": 8, "limit": 0, "placement": "auto"},
          "network": {"name": "net", "layers": [{"name": "flatten", "type": "flatten"},
                                                {"name": "out", "type": "linear", "out_features": 4, "bias": True}]},
          "optimizer": {"name": "adam", "betas": [0.9, 0.999], "eps": 1e-08, "weight_decay": 0.0}, "schedule": {"name": "constant"},
          "loss": {"name": "cross_entropy", "label_smoothing": 0.0}, "epochs": 1, "seed": 3, "repeat": 0, "lr": 0.1, "batch_size": 8,
          "shuffle": True, "num_workers": 0, "device": "auto", "precision": "fp32", "deterministic": True,
          "log": {"images": 0, "graph": False, "histograms": False, "hparams": False, "text": False, "layout": False,
                  "predictions": False, "batches": 0}}
epoch = {"epoch": 1, "loss": 1.25, "accuracy": 0.5, "number_correct": 8, "validation_loss": None, "validation_accuracy": None,
         "epoch_seconds": 0.5, "run_seconds": 1, "images_per_second": 32}
events = "events.out.tfevents.1700000000.host.1.000000"
run = {"name": "lr=0.1", "status": "completed", "params": {"lr": 0.1}, "config": config, "metrics": {"loss": 1.25, "accuracy": 0.5,
       "test_loss": "NaN"}, "epochs": [epoch], "seconds": {"run": 2, "setup": 0.5, "logging": 0}, "started": None, "ended": None,
       "error": None, "device": "cpu", "placement": None, "jobs": 1, "events": {events: 24},
       "provenance": {"program": "sweep", "numerics": 4, "directory": "/", "dataset": {"name": "quarters", "files": [
           {"path": "data/x", "sha256": "0" * 64}]}}}
sweep = {"name": "tiny", "dataset": {"name": "quarters", "path": "data", "validation": 8}, "network": config["network"],
         "optimizer": "adam", "batch_size": 8, "params": {"lr": [0.1, 0.2]}, "runs": ["lr=0.1", "lr=0.2"], "excluded": [],
         "file": "tiny.json", "provenance": {"program": "sweep"}}
results = {"sweep": "tiny", "runs": [{"name": "lr=0.1", "status": "completed", "params": {"lr": 0.1}, "epochs": [epoch],
                                      "run_seconds": 2, "error": None}]}
table = ("run,status,epoch,loss,accuracy,number_correct,validation_loss,validation_accuracy,epoch_seconds,run_seconds,"
         "images_per_second,lr\nlr=0.1,completed,1,1.25,0.5,8,,,0.5,1,32,0.1\n")
failed = run | {"status": "failed", "error": "diverged", "epochs": [], "config": None, "provenance": None, "name": "lr=0.2"}
weights = safetensors('{"__metadata__":{"epoch":"1"},"out.weight":{"dtype":"F32","shape":[4,1],"data_offsets":[0,16]},'
                      '"out.bias":{"dtype":"F32","shape":[4],"data_offsets":[16,32]}}', bytes(32))


def text(value):
    return json.dumps(value, separators=(",", ":")).encode()


def directory(*files):
    names = ["sweep.json", "results.json", "results.csv", "run.json", "lr=0.1/run.json", "lr=0.1/checkpoint.safetensors",
             "lr=0.1/checkpoint.previous.safetensors", "lr=0.1/" + events, "lr=0.1/log.txt", "lr=0.2/run.json"]
    return b"".join(struct.pack("<BH", names.index(name), len(content)) + content for name, content in files)


for name, content in {
    "run": text(run), "failed": text(failed), "indented": json.dumps(run, indent=2).encode() + b"\n",
    "types": text(run | {"provenance": {"directory": 5, "dataset": {"files": 3}, "numerics": {}}}), "deep": b"[" * 5000,
    "from-zero": text(run | {"epochs": [epoch | {"epoch": 0}], "metrics": {}}), "empty": b"", "nul": text(run) + b"\0",
}.items():
    (HERE / "run_record" / name).write_bytes(content)
for name, content in {
    "json": b"\0" + text(results), "csv": b"\1" + table.encode(), "quotes": b'\1run,"a\nb"\n"x""y",1\n', "deep": b"\0" + b"[" * 5000,
    "types": b"\0" + text({"sweep": 1, "runs": [{"name": [], "epochs": 3, "params": 0}]}), "cut": b"\1" + table.encode()[:-5],
    "sweep": b"\2" + text(sweep), "sweep-runs": b'\2{"runs":["lr=0.1",3,"../x"]}', "sweep-deep": b"\2" + b'{"runs":' * 5000,
    "sweep-zip": b"\2" + text(sweep | {"params": {"lr": [0.1, 1], "seed": [1, 2]}, "zip": [["lr", "seed"]], "exclude": [{"lr": 1}]}),
    "sweep-many": b"\2" + text(sweep | {"repeats": 100000}),
    "sweep-types": b"\2" + text(sweep | {"runs": {}, "excluded": 3, "provenance": []}),
}.items():
    (HERE / "sweep_files" / name).write_bytes(content)
for name, content in {
    "finished": directory(("sweep.json", text(sweep)), ("results.json", text(results)), ("results.csv", table.encode()),
                          ("lr=0.1/run.json", text(run)), ("lr=0.1/checkpoint.safetensors", weights),
                          ("lr=0.1/" + events, bytes(24)), ("lr=0.2/run.json", text(failed))),
    "types": directory(("sweep.json", text(sweep | {"provenance": 3})), ("lr=0.1/run.json", text(run | {
        "provenance": {"directory": 5, "numerics": {}, "dataset": {"files": 3}}, "events": {}}))),
    "more-types": directory(("lr=0.1/run.json", text(run | {"config": config | {"dataset": 3}, "events": {}})), (
        "lr=0.2/run.json", text(failed | {"config": config | {"log": [], "network": {"layers": {}}}, "status": "completed"}))),
    "data-types": directory(("sweep.json", text(sweep)), ("lr=0.1/run.json", text(run | {
        "provenance": {"dataset": {"files": [3, {"path": 5, "sha256": []}]}, "init_sha256": 7}, "events": {}}))),
    "only-a-run": directory(("run.json", text(run))), "only-events": directory(("lr=0.1/" + events, b"abc")),
    "no-sweep-json": directory(("lr=0.1/run.json", text(run)), ("lr=0.1/log.txt", b"x")), "nothing": b"",
}.items():
    (HERE / "sweep_directory" / name).write_bytes(content)
