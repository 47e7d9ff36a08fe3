#!/usr/bin/env python3
"""Opens reports of searches in headless Chromium: their charts, and the page of a search that goes on.

  search_in_browser.py --sweep PROGRAM --file SWEEP.json
"""

import json
import resource
import subprocess
import sys
import time

import made_sweep as made
from page_in_browser import CONTEXT, Page, main, report


class Searched(Page):
    SEARCH = {"method": "asha", "trials": 60, "metric": "Accuracy/validation"}
    CHARTS = ["curves-loss", "curves-accuracy", "progress", "importances", "slice-0", "slice-1", "slice-2", "coordinates", "times"]

    def test_on_every_screen(self):
        report(made.write(self.folder, "s", made.trials(60), search=self.SEARCH))
        for width, scheme in ((390, "light"), (1200, "dark"), (1400, "light")):
            with self.subTest(f"{width} pixels, {scheme}"):
                self.show(self.folder / "s/report.html", width, scheme)
                self.check(self.CHARTS)
        rows = self.browser.evaluate("return Charts.views.get('importances').data('importances').map(row => row.setting)")
        self.assertEqual(rows[0], "lr")
        values = self.browser.evaluate("return Charts.views.get('progress').data('trials').map(row => [row.value, row.best, row.ended])")
        best = None
        for value, so_far, ended in values:
            best = value if ended == "completed" and (best is None or value > best) else best
            self.assertEqual(so_far, best)
        self.assertEqual(self.browser.evaluate("return Charts.views.get('slice-2').data('trials').length"), 30, "with a momentum")
        self.assertIn("search.trials=1 name=s-best", self.text("#command pre"))

    def test_the_legend_of_a_setting_that_some_trials_lack_has_ranges(self):
        self.report(made.trials(60), search=self.SEARCH)
        self.enter("#colour-by select", "momentum", "change")
        legend = "return deep('#legend button').map(button => button.textContent)"
        self.assertTrue(self.browser.wait(f"const texts = (() => {{ {legend} }})(); return texts.length === 7 && texts[0] === 'no momentum'", 5),
                        self.browser.evaluate(legend))
        self.assertRegex(self.browser.evaluate(legend)[1], r"^momentum [\d.]+ to [\d.]+$")

    def test_a_click_on_a_trial_shows_it_everywhere(self):
        self.report(made.trials(60), search=self.SEARCH)
        place = self.place("slice-0", """(() => { const row = view.data('trials').find(row => row.is_best);
          return [view.scale('x')(row.axis0), view.scale('y')(row.value)]; })()""")
        self.point("mouseMoved", place)
        self.point("mousePressed", place, button="left", clickCount=1)
        self.point("mouseReleased", place, button="left", clickCount=1)
        time.sleep(0.3)
        best = self.browser.evaluate("return model_best = JSON.parse(document.getElementById('model').textContent).best")
        self.assertEqual(self.browser.evaluate("return [...Selection.focus()]"), [best])
        self.assertEqual(self.browser.evaluate("return Object.keys(Charts.views.get('progress').signal('focus'))"), [str(best)])

    def test_three_thousand_trials_take_seconds(self):
        def params(number):
            return {f"p{i}": (number * (7 + 2 * i) % 3001 + 1) / 3001 for i in range(6)}
        runs = [made.run(f"r{i}", params(i), made.epochs(3, 0.5 + i % 97 / 300, 1)) for i in range(3000)]
        directory = made.write(self.folder, "s", runs, search={"method": "random", "trials": 3000, "metric": "Accuracy/validation"})
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        report(directory)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
        self.show(directory / "report.html")
        self.check(["curves-loss", "curves-accuracy", "progress", "importances", *(f"slice-{i}" for i in range(6)), "coordinates", "times"])
        print(f"3000 trials: written in {seconds:.2f} s of the processor, {(directory / 'report.html').stat().st_size / 1e6:.1f} MB", flush=True)
        self.assertLess(seconds, 6, "which is 2 of an optimised program")


class Whole(Page):
    """What a reader does with the page as a whole."""

    def test_the_front_is_complete(self):
        runs = [made.run(f"r{i}", {"lr": i}, made.epochs(3, 0.3 + i / 50, 1 + i)) for i in range(20)]
        self.report(runs)
        self.assertEqual(self.browser.evaluate("return deep('#interactions tbody tr').length"), 20)

    def test_values_may_have_the_names_of_javascripts_properties(self):
        values = ("__proto__", "constructor", "toString", "a")
        runs = [made.run(f"r{v}{i}", {"v": v, "lr": i}, made.epochs(3, 0.5 + i / 10, 1)) for v in values for i in (1, 2)]
        curves = ["curves-loss", "curves-accuracy", "coordinates", "times"]
        for name, more, charts in (("grid", {}, ["effects"]), ("search", {"search": {"method": "random"}}, ["progress", "importances", "slice-0", "slice-1"])):
            report(made.write(self.folder, name, runs, **more))
            self.show(self.folder / name / "report.html")
            self.enter("#colour-by select", "v", "change")
            self.check(curves + charts)
            legend = "[...new Set(deep('#legend i').map(box => box.style.background))]"
            self.assertTrue(self.browser.wait(f"return deep('#legend button')[0].textContent.startsWith('v=') && {legend}.length === 4", 5))
        self.assertEqual(self.browser.evaluate("const view = Charts.views.get('slice-0'); "
                                               "return new Set(view.data('trials').map(row => view.scale('x')(row.axis0))).size"), 4)

    def labels(self, chart, part):
        """What different values of `part`, "x" or "text", the labels along the chart's axes have."""
        return self.browser.evaluate(f"""
          const found = new Set(), look = item => {{
            if (item.mark?.role === 'axis-label') found.add(item.{part});
            item.items?.forEach(look);
          }};
          look(Charts.views.get('{chart}').scenegraph().root);
          return [...found];""")

    def test_the_labels_of_axes_lie_on_their_halos(self):
        self.report(made.pairs())
        self.assertEqual(len(self.labels("coordinates", "x")), 1)

    def test_a_single_number_along_an_axis_has_its_digits(self):
        epoch = made.epochs(1, 0.8, 1, validation=False)
        epoch[0] |= {"loss": 0.6789, "epoch_seconds": 1.2345}
        self.report([made.run(f"r{lr}", {"lr": lr}, epoch) for lr in (0.1, 0.2)])
        self.assertIn("0.6789", self.labels("curves-loss", "text"))
        self.assertIn("1.2345", self.labels("coordinates", "text"))

    def test_showing_all_runs_counts_them(self):
        self.report([made.run(f"r{i}", {"lr": i, "size": f"[{i}, {i}]"}, made.epochs(3, 0.5, 1)) for i in range(3)])
        self.enter("#filter", 'size="[1, 1]"')
        self.assertEqual(self.text("#count"), "1 of 3 runs")
        self.browser.evaluate("document.querySelector('#focus-bar button').click()")
        self.assertEqual(self.text("#count"), "3 runs")
        self.assertEqual(self.browser.evaluate("return Tables.ofChart({kind: 'effects', spec: {data: [{name: 'levels'}]}, columns: [['mean', 'text', ''], "
                                               "['95 % from', 'low', 'share'], ['to', 'high', 'share']]}, {levels: [{level: true, text: "
                                               "'50.00%', low: 0.4, high: null}]}).textContent"), "mean95 % fromto50.00%40.00%–")

    def test_on_paper_charts_are_narrow_and_all_is_light(self):
        self.report(made.trials(8), "dark", search=Searched.SEARCH)
        look = "return [document.documentElement.dataset.theme, Math.max(...deep('.canvas canvas').map(canvas => canvas.clientWidth))]"
        shown = self.browser.evaluate(look)
        self.assertGreater(shown[1], 1000)
        theme, width = self.browser.evaluate("dispatchEvent(new Event('beforeprint')); " + look)
        self.assertEqual(theme, "light")
        self.assertLess(width, 700)
        self.assertEqual(self.browser.evaluate("dispatchEvent(new Event('afterprint')); " + look), shown)

    def test_the_legend_is_printed_with_its_colours(self):
        self.report(made.trials(8), search=Searched.SEARCH)
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        self.addCleanup(self.browser.call, "Emulation.setEmulatedMedia", media="")
        self.assertEqual(self.browser.evaluate("return [...new Set(deep('#legend i, #ramp i').map(box => getComputedStyle(box).printColorAdjust))]"),
                         ["exact"])
        shown = "return deep('.controls label').filter(label => label.offsetParent).map(label => label.textContent.trim())"
        self.assertEqual(self.browser.evaluate(shown), ["training", "validation"], "what dashes mean")

    def test_numbers_are_sorted_before_texts(self):
        sizes = ("10", "1a", "2", "b")
        self.report([made.run(f"r{i}", {"size": size}, made.epochs(3, 0.5, 1)) for i, size in enumerate(sizes)])
        self.browser.evaluate("deep('#runs th button')[0].click()")
        self.assertEqual(self.browser.evaluate("return deep('#runs tbody tr').map(row => row.children[0].textContent)"), ["2", "10", "1a", "b"])


class Followed(Page):
    def test_a_search_is_watched_without_a_server(self):
        file = self.folder / "s.json"
        file.write_text(json.dumps({
            "name": "s", "command": ["sh", "-c", "sleep 0.7; echo loss={x}"], "metrics": {"loss": "loss=([0-9.e+-]+)"},
            "search": {"method": "random", "trials": 20, "metric": "loss"}, "params": {"x": {"uniform": [0, 1]}}}))
        sweep = subprocess.Popen([CONTEXT.sweep, file, "--logdir", self.folder, "--quiet"], stdout=subprocess.DEVNULL)
        self.addCleanup(sweep.kill)
        while len(list(self.folder.glob("s/*/run.json"))) < 3:
            time.sleep(0.1)
        follower = subprocess.Popen([CONTEXT.sweep, "report", self.folder / "s", "--follow"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(follower.stdout.close)
        self.addCleanup(follower.kill)
        self.assertEqual(follower.stdout.readline().strip(), str(self.folder / "s/report.html"))
        while not (self.folder / "s/report.html").exists():
            time.sleep(0.1)
        self.show(self.folder / "s/report.html")
        ended = "return JSON.parse(document.getElementById('model')?.textContent ?? '{}').ended ?? 0"
        first = self.browser.evaluate(ended)
        self.assertRegex(self.text("#live"), r"live, \d+ of 20 runs have ended|live, \d+ of \d+")
        self.browser.evaluate("document.getElementById('theme').click(); document.getElementById('show-training').click(); "
                              "for (const _ of [1, 2]) deep('#runs th button')[0].click();")
        self.browser.evaluate("scrollTo({top: 500, behavior: 'instant'}); window.old = 1;")
        self.assertTrue(self.browser.wait(f"return window.old !== 1 && document.documentElement?.dataset.ready === 'true' && "
                                          f"(() => {{ {ended} }})() > {first}", 20), "it does not load itself again")
        self.assertAlmostEqual(self.browser.evaluate("return scrollY"), 500, delta=5)
        self.assertEqual(self.browser.evaluate("return document.documentElement.dataset.theme"), "dark")
        self.assertEqual(self.browser.evaluate("return deep('#runs th[aria-sort]').map(head => head.getAttribute('aria-sort'))"), ["descending"])
        self.assertFalse(self.browser.evaluate("return document.getElementById('show-training').checked"))
        self.assertEqual((sweep.wait(60), follower.wait(20)), (0, 0), "the follower ends with the sweep")
        self.assertTrue(self.browser.wait(f"return document.getElementById('live')?.textContent === '' && (() => {{ {ended} }})() === 20", 20))
        self.assertEqual(list((self.folder / "s").glob("*.tmp*")), [])

    def test_an_open_menu_delays_the_next_load_by_half_a_minute(self):
        report(made.write(self.folder, "s", made.trials(8), search=Searched.SEARCH))
        page = self.folder / "s/report.html"
        page.write_text(page.read_text().replace('id="model">{', 'id="model">{"reload_seconds":2,', 1))
        self.show(page)
        for begin in ("pointerdown", "keydown"):
            self.browser.evaluate(f"window.old = 1; document.querySelector('#colour-by select').dispatchEvent(new Event('{begin}'));")
            time.sleep(2.5)
            self.assertEqual(self.browser.evaluate("return window.old"), 1, begin)
            self.browser.evaluate("const now = performance.now.bind(performance); performance.now = () => now() + 30000;")
            self.assertTrue(self.browser.wait("return window.old !== 1 && document.documentElement?.dataset.ready === 'true'", 20), begin)

    def test_of_a_sweep_that_has_ended_it_is_the_report(self):
        made.write(self.folder, "s", made.trials(8), search=Searched.SEARCH)
        report(self.folder / "s", "--follow")
        self.assertNotIn("reload_seconds\"", (self.folder / "s/report.html").read_text().split('id="model">')[1].split("</script>")[0])


if __name__ == "__main__":
    sys.exit(main())
