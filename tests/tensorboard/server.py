"""Runs the real TensorBoard on a log directory and asks its HTTP endpoints. Standard library only."""

import ctypes
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support/python"))
from environments import skip  # noqa: E402


ALL_STATUSES = ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"]


def find_venv(named=None):
    """The virtual environment with TensorBoard: as named, or $SWEEP_TENSORBOARD_VENV. None if there is none."""
    for candidate in (os.environ.get("SWEEP_TENSORBOARD_VENV"), named):
        if candidate and (Path(candidate) / "bin/tensorboard").exists():
            return Path(candidate)
    return None


def needed_venv(named=None):
    """The same; without one the test is skipped."""
    return find_venv(named) or skip("no TensorBoard; name its virtual environment with --venv or SWEEP_TENSORBOARD_VENV")


def float32(value):
    """The float that is kept of a number."""
    return struct.unpack("<f", struct.pack("<f", float(value)))[0]


def _die_with_parent():
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class TensorBoard:
    """A server on a free port of 127.0.0.1, for a `with` statement: it is gone afterwards, whatever happens.

    fast: the Rust data server that plain `tensorboard --logdir` uses; otherwise the Python loader.
    """

    def __init__(self, venv, logdir, fast=True, arguments=()):
        self.venv, self.logdir, self.fast, self.arguments = Path(venv), Path(logdir), fast, list(arguments)
        self.process = None
        self.url = None

    def __enter__(self):
        command = [self.venv / "bin/tensorboard", "--logdir", self.logdir, "--host", "127.0.0.1", "--port", "0",
                   f"--load_fast={'true' if self.fast else 'false'}", "--reload_interval", "1", *self.arguments]
        self.log = tempfile.TemporaryFile()
        # A session of its own, so that the data server, a child of the child, can be stopped with it.
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, start_new_session=True,
                                        preexec_fn=_die_with_parent)
        try:
            self.url = self._wait_for(self._announced_url, "its address", 60)
            self._wait_for(lambda: self.get("/data/environment"), "an answer", 60)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sign)
            except ProcessLookupError:
                break
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                pass
            time.sleep(0.05)
        self.process.wait(5)
        self.log.close()

    def output(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def _announced_url(self):
        found = re.search(r"at (http://127\.0\.0\.1:\d+)/", self.output())
        return found and found.group(1)

    def _wait_for(self, attempt, what, seconds):
        deadline = time.monotonic() + seconds
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"tensorboard ended with {self.process.returncode}:\n{self.output()}")
            try:
                result = attempt()
                if result:
                    return result
            except (urllib.error.URLError, ConnectionError):
                pass
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {what} from tensorboard within {seconds} s:\n{self.output()}")
            time.sleep(0.05)

    def fetch(self, path, form=None, body=None, **query):
        """Status, content type and bytes of a request. `form` and `body` (JSON) make it a POST."""
        url = self.url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        data, headers = None, {}
        if form is not None:
            data = urllib.parse.urlencode(form, doseq=True).encode()
        elif body is not None:
            data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
                return answer.status, answer.headers.get("Content-Type", ""), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers.get("Content-Type", ""), error.read()

    def get(self, path, form=None, body=None, **query):
        """The JSON that a request gives; an exception for any other answer than 200."""
        status, _, content = self.fetch(path, form, body, **query)
        if status != 200:
            raise AssertionError(f"{path} {query}: HTTP {status}: {content[:500]!r}")
        return json.loads(content)

    def plugin(self, path, form=None, body=None, **query):
        return self.get("/data/plugin/" + path, form, body, **query)

    def tabs(self):
        """The names of the tabs that are active."""
        return {name for name, plugin in self.get("/data/plugins_listing").items() if plugin["enabled"]}

    def points(self, run, tag):
        """(step, value) of each point of a scalar."""
        return [(step, value) for _, step, value in self.plugin("scalars/scalars", run=run, tag=tag)]

    def sessions(self, **more):
        """The rows of the page of hyperparameters."""
        body = {"allowedStatuses": ALL_STATUSES, "startIndex": 0, "sliceSize": 10000, **more}
        return self.plugin("hparams/session_groups", body=body)["sessionGroups"]

    def picture(self, run, tag, sample=0):
        """Type and bytes of the only image."""
        (entry,) = self.plugin("images/images", run=run, tag=tag, sample=sample)
        status, kind, data = self.fetch("/data/plugin/images/individualImage?" + entry["query"])
        if status != 200:
            raise AssertionError(f"{run}, {tag}: HTTP {status}")
        return kind, data

    def graph(self, run):
        """The nodes of a run's graph: a list of {"name", "op", "device", "input": [...], "attr": [...]}."""
        status, kind, data = self.fetch("/data/plugin/graphs/graph", run=run, conceptual="false", limit_attr_size=1024,
                                        large_attrs_key="_too_large_attrs")
        if (status, kind.split(";")[0]) != (200, "text/x-protobuf"):
            raise AssertionError(f"{run}: the graph: HTTP {status}, {kind}")
        return [{key: node.get(key, [""])[0] for key in ("name", "op", "device")} |
                {"input": node.get("input", []), "attr": [entry["key"][0] for entry in node.get("attr", [])]}
                for node in parse_message(data.decode())["node"]]

    def wait_for_runs(self, names, seconds=60):
        """Waits until these runs are listed, and until two rounds of loading have changed nothing."""
        names = set(names)
        self._wait_for(lambda: names <= set(self.get("/data/runs")), f"runs {sorted(names)[:5]} ...", seconds)
        before = None
        while True:
            now = json.dumps([self.get("/data/runs")] +
                             [self.plugin(f"{name}/tags") for name in ("scalars", "images", "histograms", "text")])
            if now == before:
                return
            before = now
            time.sleep(1.2)


def png_size(data):
    """Width, height and channels of a PNG whose every chunk and pixel can be read; ValueError otherwise."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("not a PNG")
    position, pixels, header = 8, b"", None
    while position < len(data):
        length, kind = struct.unpack(">I4s", data[position:position + 8])
        content = data[position + 8:position + 8 + length]
        (crc,) = struct.unpack(">I", data[position + 8 + length:position + 12 + length])
        if zlib.crc32(kind + content) != crc:
            raise ValueError(f"chunk {kind} is damaged")
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", content)
        if kind == b"IDAT":
            pixels += content
        position += 12 + length
    width, height, depth, color = header[:4]
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[color]
    if depth != 8 or len(zlib.decompress(pixels)) != height * (1 + width * channels):
        raise ValueError("the pixels do not fill the picture")
    return width, height, channels


def parse_message(text):
    """A protobuf message in text form: {field: [values]}, where a message is again such a dictionary, and others are texts."""
    root = {}
    path = [root]
    for line in map(str.strip, text.splitlines()):
        if line == "}":
            path.pop()
        elif line.endswith(" {"):
            child = {}
            path[-1].setdefault(line[:-2], []).append(child)
            path.append(child)
        elif line:
            key, value = line.split(": ", 1)
            path[-1].setdefault(key, []).append(value.removeprefix('"').removesuffix('"'))
    return root


def check_graph(nodes):
    """What would draw wrongly, as a list of sentences."""
    problems = []
    names = [node["name"] for node in nodes]
    if not names:
        problems.append("the graph has no nodes")
    if len(set(names)) != len(names):
        problems.append("names of nodes are not unique")
    for node in nodes:
        for source in node["input"]:
            if re.sub(r":\d+$", "", source.lstrip("^")) not in names:
                problems.append(f"{node['name']}: its input {source} is no node")
        if not node["device"]:
            problems.append(f"{node['name']} has no device")
    return problems
