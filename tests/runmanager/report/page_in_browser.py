#!/usr/bin/env python3
"""Opens reports in headless Chromium: on phones and wide screens, light and dark; points, drags, clicks, sorts.

  page_in_browser.py --sweep PROGRAM --file SWEEP.json
"""

import argparse
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from types import SimpleNamespace

import made_sweep as made

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tensorboard"))
from browser import Browser  # noqa: E402
from server import skip  # noqa: E402

CONTEXT = SimpleNamespace(sweep=None, file=None)
HOSTILE = "</script><img src=x onerror=\"window.hacked=1\"><!--"
WATCH = """
  window.problems = [];
  addEventListener('error', e => problems.push('error: ' + e.message));
  addEventListener('unhandledrejection', e => problems.push('rejected: ' + e.reason));
  document.addEventListener('securitypolicyviolation', e => problems.push('policy: ' + e.blockedURI));
  for (const kind of ['error', 'warn']) console[kind] = (...words) => problems.push(kind + ': ' + words.join(' '));
"""
BLANK = """
  const blank = canvas => {
    const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    for (let i = 3; i < data.length; i += 4) if (data[i]) return false;
    return true;
  };
"""


def report(directory, *more):
    done = subprocess.run([CONTEXT.sweep, "report", directory, *more], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = cls.enterClassContext(Browser(1200, 1000))
        cls.browser.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def show(self, path, width=1200, scheme="light"):
        self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=False)
        self.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.browser.go(f"file://{path}")
        self.assertTrue(self.browser.wait("return document.documentElement?.dataset.ready === 'true'"), path)
        # Charts are drawn when they come near the window.
        for top in range(0, self.browser.evaluate("return document.documentElement.scrollHeight"), 600):
            self.browser.evaluate(f"scrollTo({{top: {top}, behavior: 'instant'}})")
            time.sleep(0.1)
        drawn = "const boxes = deep('.canvas'); return boxes.every(box => box.querySelector('canvas'));"
        self.assertTrue(self.browser.wait(drawn), "a chart is missing")

    def check(self, charts):
        """No error, no request, no chart that is missing or blank, nothing wider than the window."""
        look = self.browser.evaluate
        time.sleep(0.2)
        self.assertEqual(look("return problems"), [])
        self.assertEqual(look("return performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).map(e => e.name)"), [])
        self.assertEqual(sorted(look("return deep('.canvas').map(box => box.id.slice(6))")), sorted(charts))
        self.assertEqual(look(BLANK + "return deep('.canvas').filter(box => blank(box.querySelector('canvas'))).map(box => box.id)"), [])
        self.assertLessEqual(look("return document.documentElement.scrollWidth - innerWidth"), 0)
        self.assertEqual(look("return deep('.canvas').filter(box => !box.getAttribute('aria-label') || box.getAttribute('role') !== 'img').length"), 0)
        levels = look("return deep('h1,h2,h3').filter(h => h.offsetParent).map(h => +h.tagName[1])")
        self.assertTrue(levels[0] == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:])), levels)

    def report(self, runs, scheme="light", **more):
        """Makes a sweep of these runs, and shows its report."""
        report(made.write(self.folder, "s", runs, **more))
        self.show(self.folder / "s/report.html", scheme=scheme)

    def enter(self, selector, value, event="input"):
        self.browser.evaluate(f"const box = document.querySelector({json.dumps(selector)}); box.value = {json.dumps(value)}; "
                              f"box.dispatchEvent(new Event('{event}'));")

    def text(self, selector):
        return self.browser.evaluate(f"return document.querySelector({json.dumps(selector)}).textContent")

    def point(self, kind, place, **more):
        self.browser.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], **more)
        time.sleep(0.1)

    def place(self, chart, expression):
        """A place in the window, of the chart's [x, y], which the expression gives from its `view`."""
        self.browser.evaluate(f"document.getElementById('chart-{chart}').scrollIntoView({{block: 'center', behavior: 'instant'}})")
        time.sleep(0.2)
        return self.browser.evaluate(f"""
          const view = Charts.views.get('{chart}'), box = document.querySelector('#chart-{chart} canvas').getBoundingClientRect();
          const [left, top] = view.origin(), padding = view.padding(), [x, y] = {expression};
          return [box.x + padding.left + left + x, box.y + padding.top + top + y];""")


class Shown(Page):
    CHARTS = ["curves-loss", "curves-accuracy", "coordinates", "effects", "comparison", "times"]

    def test_on_every_screen(self):
        report(made.write(self.folder, "s", made.pairs()))
        for width in (390, 1200, 1920):
            for scheme in ("light", "dark"):
                with self.subTest(f"{width} pixels, {scheme}"):
                    self.show(self.folder / "s/report.html", width, scheme)
                    self.check(self.CHARTS)
                    self.assertEqual(self.browser.evaluate("return document.documentElement.dataset.theme"), scheme)
        self.assertIn("cuda:0 trains 6 times as fast as cpu", self.text("#more"))
        self.assertEqual(self.browser.evaluate("return deep('#notes li').map(e => e.textContent)"),
                         ["1 run failed: no longer finite", "4 runs skipped: there is none here"])
        self.browser.evaluate("document.getElementById('theme').click()")
        self.assertEqual(self.browser.evaluate("return document.documentElement.dataset.theme"), "light")

    def test_colours_can_be_told_from_their_background(self):
        report(made.write(self.folder, "s", made.pairs()))
        for scheme in ("light", "dark"):
            self.show(self.folder / "s/report.html", scheme=scheme)
            contrasts = self.browser.evaluate("""
              const part = x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
              const light = text => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) =>
                  sum + weight * part(parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16) / 255), 0);
              const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
              const of = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
              const texts = ['--ink', '--soft', '--accent', '--warn', '--string', '--number', '--key'].map(of);
              return {texts: texts.flatMap(text => [contrast(text, of('--card')), contrast(text, of('--page'))]),
                      marks: [...Charts.category, ...Charts.ramp()].map(mark => contrast(mark, of('--card')))};""")
            # Web Content Accessibility Guidelines 2.1, 1.4.3 and 1.4.11
            self.assertGreaterEqual(min(contrasts["texts"]), 4.5, scheme)
            self.assertGreaterEqual(min(contrasts["marks"]), 3, scheme)
        for values, by_order in ((list("abcdefghij"), False), (list("abcdefghijk"), True), (list(range(8)), False), (list(range(9)), True)):
            self.assertEqual(self.browser.evaluate(f"return Charts.tellsByOrder({json.dumps(values)})"), by_order, values)

    def test_whatever_the_sweep(self):
        sweeps = {
            "regression": ([made.run(f"r{lr}", {"lr": lr}, made.epochs(5, 0.8 - lr, 1, numbers=True)) for lr in (0.1, 0.2)],
                           ["curves-loss", "curves-rmse", "coordinates", "effects", "times"]),
            "repeats": ([made.run(f"r{lr}-{i}", {"lr": lr, "repeat": i}, made.epochs(5, 0.8 - lr, 1, spread=i / 50))
                         for lr in (0.1, 0.2) for i in range(3)],
                        ["curves-loss", "curves-accuracy", "coordinates", "effects", "times"]),
            "without validation": ([made.run(f"r{lr}", {"lr": lr}, made.epochs(1, 0.8, 1, validation=False)) for lr in (0.1, 0.2)],
                                   ["curves-loss", "curves-accuracy", "coordinates", "effects", "times"]),
            "one run": ([made.run("r", {"lr": 0.1}, made.epochs(5, 0.8, 1))], ["curves-loss", "curves-accuracy", "times"]),
            "gaps": ([made.run(f"r{lr}{b}", {"lr": lr, "b": b}, made.epochs(5, 0.8 - lr - 0.01 * b, 1)) for lr, b in ((0.1, 1), (0.2, 1), (0.1, 2))],
                     ["curves-loss", "curves-accuracy", "coordinates", "times"]),
            "nothing": ([made.run("r", {"lr": 0.1}, [], status="skipped", error="no device")], []),
        }
        for name, (runs, charts) in sweeps.items():
            with self.subTest(name):
                report(made.write(self.folder, name, runs))
                self.show(self.folder / name / "report.html")
                self.check(charts)
                self.assertEqual(self.text("#count"), f"{len(runs)} runs" if len(runs) > 1 else "1 run")

    def test_two_sweeps_side_by_side(self):
        for name, seconds in (("a", 1), ("b", 2)):
            made.write(self.folder, name, [made.run(f"r{lr}", {"lr": lr}, made.epochs(5, 0.8 - lr, seconds)) for lr in (0.1, 0.2)])
        subprocess.run([CONTEXT.sweep, "report", "a", "b", "-o", "both.html"], cwd=self.folder, check=True, capture_output=True)
        self.show(self.folder / "both.html")
        self.check(["curves-loss", "curves-accuracy", "coordinates", "comparison", "times"])
        self.assertIn("a trains 2 times as fast as b", self.text("#more"))

    def test_texts_are_never_html(self):
        runs = [made.run(f"r{i}", {HOSTILE: f"{i}{HOSTILE}", "constructor": i}, made.epochs(3, 0.5 + i / 10, 1))
                for i in range(3)]
        runs.append(made.run("failed", {HOSTILE: HOSTILE, "constructor": 7}, [], status="failed", error=HOSTILE))
        report(made.write(self.folder, HOSTILE.replace("/", "⁄"), runs))
        (path,) = self.folder.glob("*/report.html")
        shutil.copy(path, self.folder / "page.html")
        self.show(self.folder / "page.html")
        self.browser.evaluate("for (const details of deep('details')) details.open = true;")
        time.sleep(0.5)
        self.check(["curves-loss", "curves-accuracy", "coordinates", "times", *(["effects"] if self.browser.evaluate(
            "return document.getElementById('chart-effects') !== null") else [])])
        self.assertIsNone(self.browser.evaluate("return window.hacked ?? null"))
        self.assertEqual(self.browser.evaluate("return deep('img').filter(image => !image.src.startsWith('data:')).length"), 0)
        self.assertIn(f"1{HOSTILE}", self.text("#runs"))
        self.assertIn(HOSTILE, self.text("#notes"))

    def test_long_words_break_and_what_is_printed_is_whole(self):
        word = "x" * 180
        runs = [made.run(f"r{i}", {"dataset." + "k" * 90: f"{i}{word}", "lr": i / 10}, made.epochs(5, 0.5 + i / 10, 1)) for i in range(1, 4)]
        runs.append(made.run("failed", {"lr": 7}, [], status="failed", error=2 * word))
        report(made.write(self.folder, "n" * 90, runs))
        (path,) = self.folder.glob("*/report.html")
        self.show(path, 390)
        self.check(["curves-loss", "curves-accuracy", "coordinates", "times"])
        self.browser.call("Emulation.setDeviceMetricsOverride", width=718, height=1000, deviceScaleFactor=1, mobile=False)  # A4
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        self.addCleanup(self.browser.call, "Emulation.setEmulatedMedia", media="")
        right = "document.querySelector('#runs table').getBoundingClientRect().right"
        self.assertTrue(self.browser.wait(f"return {right} <= innerWidth", 5), self.browser.evaluate(f"return {right}"))

    def test_thousand_runs_stay_quick(self):
        runs = [made.run(f"r{i}", {"lr": 0.1 / (1 + i), "b": i % 5}, made.epochs(20, 0.5 + i % 97 / 300, 1)) for i in range(1000)]
        directory = made.write(self.folder, "s", runs)
        begin = time.monotonic()
        report(directory)
        written = time.monotonic() - begin
        self.show(directory / "report.html")
        self.check(["curves-loss", "curves-accuracy", "coordinates", "times"])
        ready = self.browser.evaluate("return performance.getEntriesByType('navigation')[0].domComplete") / 1000
        print(f"1000 runs: written in {written:.1f} s, shown in {ready:.1f} s, "
              f"{(directory / 'report.html').stat().st_size / 1e6:.1f} MB", flush=True)
        self.assertLess(ready, 15)

    def test_the_policy_forbids_requests_and_other_scripts(self):
        asked = []

        class Server(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_error(404)

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.report(made.pairs())
        self.browser.evaluate(f"""
          const there = 'http://127.0.0.1:{server.server_port}/';
          new Image().src = there + 'image';
          fetch(there + 'fetch').catch(() => {{}});
          for (const [name, key] of [['script', 'src'], ['iframe', 'src']]) {{
            const element = document.createElement(name);
            element[key] = there + name;
            document.body.append(element);
          }}
          const inline = document.createElement('script');
          inline.textContent = 'window.ran = 1';
          document.body.append(inline);""")
        time.sleep(1)
        self.assertEqual(asked, [])
        self.assertIsNone(self.browser.evaluate("return window.ran ?? null"))
        self.assertIn("policy: inline", self.browser.evaluate("return problems"))


class Used(Page):
    def setUp(self):
        super().setUp()
        self.report(made.pairs())

    def focus(self):
        time.sleep(0.2)
        return self.browser.evaluate("return Selection.focus() && [...Selection.focus()].sort((a, b) => a - b)")

    def test_pointing_at_a_curve_tells_its_run(self):
        self.point("mouseMoved", self.place("curves-loss", """(() => {
          const row = view.data('points').find(row => row.series === 1 && row.part === 'validation' && row.epoch === 3);
          return [view.scale('x')(row.epoch), view.scale('y')(row.value)]; })()"""))
        self.assertTrue(self.browser.wait("return !document.getElementById('tip').hidden", 3))
        tip = self.text("#tip")
        for word in ("lr=", "device=", "epoch3", "validation"):
            self.assertIn(word, tip)

    def test_dragging_along_an_axis_keeps_its_runs_everywhere(self):
        axis = "view.data('axes').find(row => row.title === 'lr').axis"
        top, low = (self.place("coordinates", f"[view.scale('x')({axis}), {y} * view.height()]") for y in (0, 0.2))
        self.point("mouseMoved", top)
        self.point("mousePressed", top, button="left", clickCount=1)
        self.point("mouseMoved", [top[0], (top[1] + low[1]) / 2], button="left", buttons=1)
        self.point("mouseMoved", low, button="left", buttons=1)
        self.point("mouseReleased", low, button="left", clickCount=1)
        self.assertEqual(self.focus(), [0, 1], "the runs with the largest lr")
        self.browser.evaluate("document.getElementById('theme').click()")
        self.assertTrue(self.browser.wait("return Charts.views.get('coordinates').data('brush').some(part => part.high > part.low)"),
                        "the choice is lost with the colours")
        self.assertEqual(self.browser.evaluate("return Object.keys(Charts.views.get('curves-loss').signal('focus'))"), ["0", "1"])
        self.assertEqual(self.browser.evaluate("return deep('#runs tbody tr.faded').length"), 9)
        self.assertEqual(self.text("#focus-bar span"), "2 of 11 runs in focus")
        self.browser.evaluate("document.querySelector('#focus-bar button').click()")
        self.assertIsNone(self.focus())
        self.assertIsNone(self.browser.evaluate("return Charts.views.get('curves-loss').signal('focus')"))

    def test_the_legend_chooses_runs(self):
        self.enter("#colour-by select", "device", "change")
        self.assertTrue(self.browser.wait("return deep('#legend button').some(b => b.textContent === 'device=cuda:0')", 5))
        self.browser.evaluate("deep('#legend button').find(b => b.textContent === 'device=cuda:0').click()")
        self.assertEqual(self.focus(), [0, 2, 4])
        self.assertEqual(self.browser.evaluate("return deep('#legend button[aria-pressed=true]').length"), 1)

    def test_the_table_is_sorted_and_filtered(self):
        column = "return deep('#runs tbody tr:not([hidden])').map(row => row.children[0].textContent)"
        head = "deep('#runs th button')[0].click();"
        self.assertEqual(self.browser.evaluate(head + column)[:3], ["0.001", "0.001", "0.01"])
        self.assertEqual(self.browser.evaluate(head + column)[:2], ["9", "1"])
        self.assertEqual(self.browser.evaluate("return deep('#runs th[aria-sort]').map(th => th.getAttribute('aria-sort'))"), ["descending"])
        self.enter("#filter", "lr=0.1 cpu")
        self.assertEqual(self.browser.evaluate(column), ["0.1"])
        self.assertEqual(self.text("#count"), "1 of 11 runs")
        self.assertEqual(self.focus(), [1])

    def test_a_click_on_a_row_shows_its_run(self):
        self.browser.evaluate("deep('#runs tbody tr')[3].click()")
        self.assertEqual(self.focus(), [3])
        self.assertEqual(self.text("#focus-bar span"), "lr=0.01, device=cpu")
        self.browser.evaluate("deep('#runs tbody tr')[3].click()")
        self.assertIsNone(self.focus())

    def test_every_chart_has_its_table(self):
        self.browser.evaluate("for (const details of deep('figure details')) details.open = true;")
        self.assertTrue(self.browser.wait("return deep('figure').every(figure => figure.querySelectorAll('table tbody tr').length > 1)"))


class Trained(Page):
    """Of a sweep that was trained on Fashion-MNIST."""

    def train(self, *more, **options):
        return subprocess.Popen([CONTEXT.sweep, CONTEXT.file, "device=cpu", "num_workers=0", "batch_size=100", "name=s", "dataset.limit=600",
                                 "dataset.validation=200", "--logdir", self.folder, *more], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, **options)

    def test_shows_pictures_and_where_they_come_from(self):
        if self.train("epochs=2", "shuffle=true").wait() != 0:
            self.skipTest("there is no Fashion-MNIST")
        report(self.folder / "s")
        self.show(self.folder / "s/report.html")
        self.check(["curves-loss", "curves-accuracy", "coordinates", "effects", "times"])
        self.assertEqual(self.browser.evaluate("return deep('#pictures h3').map(e => e.textContent)"),
                         ["First batch", "Confusion matrix", "Misclassified samples"])
        self.assertTrue(self.browser.evaluate("return deep('#pictures img').every(image => image.naturalWidth > 100 && image.alt)"))
        self.browser.evaluate("for (const details of deep('#pictures details, #files details')) details.open = true;")
        self.assertTrue(self.browser.wait("return deep('#pictures table').length === 2 && deep('#files pre').length === 1"))
        self.assertIn("Ankle boot", self.text("#pictures table"))
        self.assertEqual(len(re.findall(r"[0-9a-f]{64}", self.text("#provenance .facts"))), 4, "digests of the data's files")
        with self.subTest("the same page again, except for the date"):
            pages = []
            for name in ("a.html", "b.html"):
                report(self.folder / "s", "-o", self.folder / name)
                pages.append(re.sub(r'"date":"[^"]*"', "", (self.folder / name).read_text()))
                time.sleep(1.1)
            self.assertEqual(*pages)
        with self.subTest("specifications for use elsewhere"):
            written = report(self.folder / "s", "--specs", self.folder / "specs")
            self.assertEqual(len(written), 6)
            spec = json.loads((self.folder / "specs/curves-loss.vg.json").read_text())
            self.assertGreater(len(next(data for data in spec["data"] if data["name"] == "points")["values"]), 4)

    def test_shows_what_a_killed_sweep_has(self):
        process = self.train("epochs=2000", "lr=0.01", "shuffle=true", start_new_session=True)
        self.addCleanup(process.wait)
        begin = time.monotonic()
        while not any(self.folder.glob("s/*/checkpoint.safetensors")) and time.monotonic() < begin + 60:
            if process.poll() is not None:
                self.skipTest("there is no Fashion-MNIST")
            time.sleep(0.1)
        with self.subTest("running"):
            report(self.folder / "s")
            self.show(self.folder / "s/report.html")
            self.check(["curves-loss", "curves-accuracy"])
            self.assertIn("1 run running", self.text("#notes"))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        time.sleep(1)  # its workers see the end
        report(self.folder / "s")
        self.show(self.folder / "s/report.html")
        self.check(["curves-loss", "curves-accuracy"])
        self.assertIn("1 run interrupted", self.text("#notes"))
        self.assertEqual(self.text("#best"), "No run is completed yet.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--file", required=True)
    arguments, rest = parser.parse_known_args()
    CONTEXT.sweep, CONTEXT.file = Path(arguments.sweep).resolve(), arguments.file
    if shutil.which("chromium") is None:
        skip("there is no chromium to look at the page with; apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        probe = subprocess.run([CONTEXT.sweep, "report", made.write(folder, "s", made.pairs())], capture_output=True, text=True)
        if "without Vega" in probe.stderr:
            skip("the program was built without Vega; apt-get install libjs-vega")
    return 0 if unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
