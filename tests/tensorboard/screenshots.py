#!/usr/bin/env python3
"""Takes a picture of every tab of the real TensorBoard on a log directory, with headless Chromium, to be looked at.

  screenshots.py LOGDIR OUTPUT [--venv VENV] [--only TAB,...] [--module NAME,...]

Standard library only: Chromium is spoken to through --remote-debugging-pipe.
"""

import argparse
import base64
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from server import SKIPPED, TensorBoard, find_venv

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--enable-unsafe-swiftshader",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
         "--window-size=1400,900", "--hide-scrollbars"]

# Finds elements in all shadow roots, which TensorBoard nests.
DEEP = """
function deep(selector, root = document) {
  const found = [...root.querySelectorAll(selector)];
  for (const element of root.querySelectorAll('*')) {
    if (element.shadowRoot) found.push(...deep(selector, element.shadowRoot));
  }
  return found;
}
function visible(element) {
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight;
}
"""


class Browser:
    """One page of a headless Chromium, for a `with` statement."""

    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory()
        their_in, self.out = os.pipe()
        self.inp, their_out = os.pipe()

        def connect():  # The browser reads commands from 3 and answers on 4.
            high_in, high_out = os.dup(their_in), os.dup(their_out)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        self.process = subprocess.Popen(["chromium", *FLAGS, f"--user-data-dir={self.profile.name}", "about:blank"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=connect, close_fds=False, start_new_session=True)
        os.close(their_in)
        os.close(their_out)
        self.rest, self.number, self.session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=1400, height=900, deviceScaleFactor=1, mobile=False)
        return self

    def __exit__(self, *_):
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sign)
                self.process.wait(5)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
        os.close(self.out)
        os.close(self.inp)
        for _ in range(20):  # Its children may still be writing.
            try:
                self.profile.cleanup()
                break
            except OSError:
                time.sleep(0.2)

    def call(self, method, timeout=60, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            while b"\0" not in self.rest:
                if not select.select([self.inp], [], [], max(0, deadline - time.monotonic()))[0]:
                    raise TimeoutError(method)
                self.rest += os.read(self.inp, 1 << 20)
            line, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def evaluate(self, script):
        result = self.call("Runtime.evaluate", expression=f"(() => {{ {DEEP} {script} }})()", returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def go(self, url):
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def wait(self, script, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.evaluate(script):
                return True
            time.sleep(0.2)
        return False

    def click(self, place, count=1):
        for k in range(1, count + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=k)

    def click_text(self, selector, text):
        place = self.evaluate(f"""
          const element = deep({json.dumps(selector)}).find(
              e => visible(e) && e.textContent.trim().toLowerCase().includes({json.dumps(text.lower())}));
          if (!element) return null;
          const box = element.getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2];""")
        if place:
            self.click(place)
        return bool(place)

    def save(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))


def expand_module(browser, name):
    """Opens a module of the graph by a double click on its name."""
    place = browser.evaluate(f"""
      const node = deep('g.node[data-name={json.dumps(name)}], [data-name={json.dumps(name)}]').find(visible);
      if (!node) return null;
      const box = node.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2];""")
    if not place:
        return False
    browser.click(place, 2)
    return True


def pictures(browser, url, output, only, module, run, series):
    def shoot(name):
        browser.save(output / f"{name}.png")
        print(output / f"{name}.png", flush=True)

    def tab(name, settle=4.0, query=""):
        if only and name not in only:
            return False
        # Tags that are series in the demo directory come first; other directories have none of these.
        only_tags = "&tagFilter=normal" if name in ("distributions", "histograms") and series else ""
        browser.go(f"{url}/?darkMode=false{query}#{name}{only_tags}")
        time.sleep(settle)
        return True

    for name in ("timeseries", "scalars", "images", "audio", "text", "distributions", "histograms", "pr_curves",
                 "custom_scalars"):
        if tab(name):
            # Sections are folded until they are opened.
            browser.evaluate("for (const e of deep('tf-category-paginated-view .heading, .category-heading, button.heading')) "
                             "if (visible(e) && e.getAttribute('aria-expanded') === 'false') e.click();")
            time.sleep(2)
            shoot(name)
    if tab("graphs", query=f"&run={run}" if run else ""):
        browser.wait("return deep('g.node').length > 0")
        time.sleep(2)
        shoot("graphs")
        opened = [name for name in module.split(",") if name and (expand_module(browser, name), time.sleep(3))[0]]
        if opened:
            shoot("graphs_expanded")
    if tab("hparams"):
        shoot("hparams_table")
        for text, name in (("parallel coordinates", "hparams_parallel"), ("scatter plot matrix", "hparams_scatter")):
            if browser.click_text("paper-tab, .mat-tab-label, [role=tab]", text):
                time.sleep(3)
                shoot(name)
            else:
                print(f"the view {text} was not found")
    if tab("mesh", 8):
        shoot("mesh")
    if tab("projector", 10):
        shoot("projector")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logdir")
    parser.add_argument("output", type=Path)
    parser.add_argument("--venv")
    parser.add_argument("--only", default="")
    parser.add_argument("--module", default="conv1", help="modules of the graph to open, one after the other: a,a/b")
    parser.add_argument("--run", default="")
    arguments = parser.parse_args()
    venv = find_venv(arguments.venv)
    if venv is None:
        print("no TensorBoard; name its virtual environment with --venv or SWEEP_TENSORBOARD_VENV")
        return SKIPPED
    arguments.output.mkdir(parents=True, exist_ok=True)
    with TensorBoard(venv, arguments.logdir) as board, Browser() as browser:
        board._wait_for(lambda: board.get("/data/runs"), "runs", 60)
        time.sleep(3)
        board.plugin("projector/runs")
        pictures(browser, board.url, arguments.output, [name for name in arguments.only.split(",") if name],
                 arguments.module, arguments.run, "normal" in board.plugin("histograms/tags").get("values", {}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
