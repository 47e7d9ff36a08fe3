#!/usr/bin/env python3
"""Takes a picture of every tab of the real TensorBoard on a log directory, with headless Chromium, to be looked at.

  screenshots.py LOGDIR OUTPUT [--venv VENV] [--only TAB,...] [--module NAME,...] [--size WIDTHxHEIGHT]
"""

import argparse
import json
import sys
import time
from pathlib import Path

from browser import Browser
from server import TensorBoard, needed_venv


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
    parser.add_argument("--size", default="1600x1200", help="of the window, in pixels")
    arguments = parser.parse_args()
    venv = needed_venv(arguments.venv)
    arguments.output.mkdir(parents=True, exist_ok=True)
    with TensorBoard(venv, arguments.logdir) as board, Browser(*map(int, arguments.size.split("x"))) as browser:
        board._wait_for(lambda: board.get("/data/runs"), "runs", 60)
        time.sleep(3)
        board.plugin("projector/runs")
        pictures(browser, board.url, arguments.output, [name for name in arguments.only.split(",") if name],
                 arguments.module, arguments.run, "normal" in board.plugin("histograms/tags").get("values", {}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
