"""One page of a headless Chromium, spoken to through --remote-debugging-pipe. Standard library only."""

import json
import os
import select
import signal
import subprocess
import tempfile
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--enable-unsafe-swiftshader",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
         "--window-size=1600,1200", "--hide-scrollbars"]

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
    """One page of a headless Chromium, for a `with` statement. Sizes are in pixels."""

    def __init__(self, width=1600, height=1200):
        self.width, self.height = width, height

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
        self.call("Emulation.setDeviceMetricsOverride", width=self.width, height=self.height, deviceScaleFactor=1,
                  mobile=False)
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

    def click_text(self, selector, text):
        """Clicks on the first visible element that has the text; returns whether there is one."""
        return self.evaluate(f"""
          const element = deep({json.dumps(selector)}).find(
              e => visible(e) && e.textContent.trim().toLowerCase().includes({json.dumps(text.lower())}));
          if (element) element.click();
          return Boolean(element);""")
