"use strict";
// Fills the page from the model, and ties its parts together.
(() => {
  const model = JSON.parse(document.getElementById("model").textContent);
  const byId = (id) => document.getElementById(id);
  const {element} = Tables;
  const tables = Object.fromEntries(Object.entries(model.tables).map(([name, table]) => [name, Charts.objects(table)]));
  let picked = null;  // the run that was chosen by a click

  function showAnswer() {
    byId("best").textContent = model.answer.best;
    byId("more").append(...model.answer.more.map((text) => element("li", {}, text)));
    byId("notes").append(...model.notes.map((text) => element("li", {}, text)));
    byId("command").hidden = !model.answer.command;
    byId("command").querySelector("pre").textContent = model.answer.command;
    byId("made").textContent = `Made by ${model.program}, ${model.date.replace("T", " ").replace("Z", " UTC")}.` +
        (model.vega ? " Charts by Vega; its licences are in this page's source." : "");
  }

  // ---- charts
  const drawn = new Map();  // chart id -> draws it again
  let most = Infinity;
  const widthOf = (box, chart) => {
    const least = chart.kind === "coordinates" ? 92 * tables.axes.length : 0;
    return Math.max(Math.min(Math.floor(box.clientWidth), most), least, 240);
  };
  // Browsers print the charts as they are then: without a width for A4 and Letter, those of a wide window would be cut.
  addEventListener("beforeprint", () => { most = 660; });
  addEventListener("afterprint", () => { most = Infinity; });

  const signal = (chart, name) => Charts.named(chart.spec.signals, name);

  // Copies, since Vega adds its own marks to the rows.
  const dataOf = (chart) =>
      Object.fromEntries(Charts.tablesOf(chart, tables).map((name) => [name, tables[name].map((row) => ({...row}))]));

  function addChart(chart) {
    const section = byId(chart.kind), box = element("div", {className: "canvas", id: `chart-${chart.id}`});
    const heading = chart.title ? [element("h3", {id: `${chart.id}-title`}, chart.title)] : [];
    const figure = element("figure", {}, ...heading, box, Tables.later("As a table", () => Tables.ofChart(chart, tables)));
    const name = `${section.querySelector("h2").textContent}: ${chart.summary}`;
    section.hidden = false;
    section.querySelector(".charts").append(figure);
    let width = 0;
    const redraw = async () => {
      width = widthOf(figure, chart);
      const view = await Charts.draw(chart, box, dataOf(chart), width);
      box.setAttribute("role", "img");
      box.setAttribute("aria-label", name);
      connect(chart, view);
      applyFocus(chart, view);
    };
    const drawFirst = () => {
      observer.disconnect();
      if (drawn.has(chart.id)) return;
      drawn.set(chart.id, redraw);
      redraw();
    };
    const observer = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) drawFirst();
    }, {rootMargin: "400px"});
    observer.observe(box);
    const resize = () => {
      const view = Charts.views.get(chart.id);
      if (!view || widthOf(figure, chart) === width) return;
      width = widthOf(figure, chart);
      view.width(width).runAsync();
    };
    new ResizeObserver(resize).observe(figure);
    addEventListener("beforeprint", drawFirst);
    for (const change of ["beforeprint", "afterprint"]) addEventListener(change, resize);
  }

  // ---- focus
  let brush = [];  // the parts of axes that were chosen
  const seriesOf = new Map();  // run -> series
  model.series_runs.forEach((runs, series) => runs.forEach((run) => seriesOf.set(run, series)));

  function applyFocus(chart, view) {
    const focus = Selection.focus();
    const ids = focus && (chart.kind === "curves" ? [...focus].map((run) => seriesOf.get(run)) : [...focus]);
    view.signal("focus", ids && Object.fromEntries(ids.filter((id) => id !== undefined).map((id) => [id, true]))).runAsync();
  }

  function pick(run) {
    picked = picked === run ? null : run;
    Selection.choose("picked", picked === null ? null : new Set([picked]));
  }

  function connect(chart, view) {
    if (chart.kind === "curves") {
      view.addSignalListener("picked", (_, series) => {
        const runs = model.series_runs[series];
        if (runs) runs.length === 1 ? pick(runs[0]) : Selection.choose("picked", new Set(runs));
      });
      paintLegend();
    } else if (signal(chart, "picked")) {
      view.addSignalListener("picked", (_, run) => pick(run));
    }
    if (chart.kind !== "coordinates") return;
    view.data("brush", brush.map((part) => ({...part})));
    view.addDataListener("lines", (_, rows) => {
      // Kept for when the chart is drawn again.
      brush = view.data("brush").map(({unit, fields, values, low, high}) => ({unit, fields, values, low, high}));
      Selection.choose("brush", brush.length ? new Set(rows.filter((row) => !row.missed).map((row) => row.run)) : null);
    });
    view.runAsync();
  }

  let clearing = false;
  function showAll() {
    clearing = true;
    picked = null;
    chosenValues.clear();
    byId("filter").value = "";
    byId("filter").dispatchEvent(new Event("input"));
    brush = [];
    Charts.views.get("coordinates")?.data("brush", []).runAsync();
    Selection.clear();
    paintLegend();
    clearing = false;
  }

  function listenToFocus() {
    const bar = byId("focus-bar");
    bar.querySelector("button").addEventListener("click", showAll);
    Selection.listen((focus) => {
      bar.hidden = focus === null;
      if (focus) {
        bar.firstElementChild.textContent = focus.size === 1 ? model.labels[[...focus][0]]
            : `${focus.size} of ${model.labels.length} runs in focus`;
      }
      runsTable.show(focus, picked);
      for (const chart of model.charts) {
        const view = Charts.views.get(chart.id);
        if (view) applyFocus(chart, view);
      }
    });
  }

  // ---- colours of the curves
  const chosenValues = new Set();
  let colourKey = null;

  const mostNumbers = 24, bins = 6;
  const groupTexts = new Map();  // what the legend says of parts of a range

  // For many numbers, the part of the range: parts hold equally many different values.
  function binOf(values, value) {
    const bin = Math.min(bins - 1, Math.floor(values.indexOf(value) * bins / values.length));
    const first = values[Math.ceil(bin * values.length / bins)], last = values[Math.ceil((bin + 1) * values.length / bins) - 1];
    groupTexts.set(bin, `${colourKey} ${+first.toPrecision(3)} to ${+last.toPrecision(3)}`);
    return bin;
  }

  function valuesOfColour() {
    const values = [...new Set(tables.series.map((row) => row.group))];
    return values.every((value) => typeof value === "number") ? values.sort((a, b) => a - b) : values.sort();
  }

  function setColour(key) {
    colourKey = key;
    const texts = tables.series.map((row) => key === "" ? row.label : row.settings[key]);
    const there = texts.filter((text) => text !== "");  // A setting may depend on another.
    const numeric = there.length > 0 && !there.some((text) => Number.isNaN(Number(text)));
    const values = numeric ? [...new Set(there.map(Number))].sort((a, b) => a - b) : [];
    const none = numeric ? -Infinity : "";
    groupTexts.clear();
    groupTexts.set(none, `no ${key}`);
    tables.series.forEach((row, i) => { row.group = texts[i] === "" ? none : !numeric ? texts[i] : values.length > mostNumbers
        ? binOf(values, Number(texts[i])) : Number(texts[i]); });
    chosenValues.clear();
    Selection.choose("colour", null);
    redrawCurves();
  }

  function redrawCurves() {
    for (const chart of model.charts) if (chart.kind === "curves") drawn.get(chart.id)?.();
  }

  function paintLegend() {
    const chart = model.charts.find((one) => one.kind === "curves"), view = chart && Charts.views.get(chart.id);
    if (!view) return;
    const values = valuesOfColour(), scale = view.scale(Charts.tellsByOrder(values) ? "manyColours" : "colour");
    byId("legend").replaceChildren(...values.map((value) => {
      const text = groupTexts.get(value) ?? (colourKey === "" ? String(value) : `${colourKey}=${value}`);
      const button = element("button", {type: "button", "aria-pressed": chosenValues.has(value)}, element("i"), element("span", {}, text));
      button.firstChild.style.background = scale(typeof value === "number" ? value : `=${value}`);
      button.addEventListener("click", () => {
        chosenValues.has(value) ? chosenValues.delete(value) : chosenValues.add(value);
        const runs = tables.series.filter((row) => chosenValues.has(row.group)).flatMap((row) => model.series_runs[row.series]);
        Selection.choose("colour", chosenValues.size ? new Set(runs) : null);
        paintLegend();
      });
      return button;
    }));
  }

  function setUpCurves() {
    const charts = model.charts.filter((chart) => chart.kind === "curves");
    if (!charts.length) return;
    const select = byId("colour-by").querySelector("select"), shown = tables.series[0].group;
    const start = model.keys.find((key) => tables.series.every((row) => row.settings[key] === row.group)) ?? "";
    const keys = [...model.keys, ...(tables.series.length <= 24 || !model.keys.length ? [""] : [])];
    select.append(...keys.map((key) => new Option(key === "" ? "run" : key, key)));
    select.value = start;
    byId("colour-by").hidden = keys.length < 2 || shown === undefined;
    select.addEventListener("change", () => setColour(select.value));
    for (const part of ["training", "validation"]) {
      const box = byId(`show-${part}`);
      const there = tables.points.some((row) => row.part === part);
      box.checked = there && signal(charts[0], part).value;
      box.parentElement.hidden = !there;
      box.addEventListener("change", () => {
        for (const chart of charts) {
          signal(chart, part).value = box.checked;
          Charts.views.get(chart.id)?.signal(part, box.checked).runAsync();
        }
      });
    }
    setColour(start);
  }

  // ---- the other parts
  function showEffects() {
    const pair = byId("interactions"), section = byId("effects");
    const add = (title, table, caption, most = table?.rows.length) => {
      if (!table?.rows.length) return;
      if (table.rows.length > most) caption += ` The first ${most} of ${table.rows.length}.`;
      pair.append(element("div", {}, element("h3", {}, title), element("p", {className: "hint"}, caption),
                          Tables.scrolling(title, "scroll tall", Tables.simple(table.columns, table.rows.slice(0, most)))));
    };
    add("Two settings together", model.tables.interactions,
        "What pairs do beyond their own effects; p: how likely chance alone makes such a difference.", 12);
    add("Fast and good", model.tables.front, "No other combination is both faster and better than these.");
    if (section.hidden && model.no_effects && model.keys.length) {
      section.hidden = false;
      section.querySelector(".hint").textContent = `Not shown: ${model.no_effects}`;
    }
  }

  function showPictures() {
    const {run, list} = model.pictures;
    if (!list.length) return;
    const section = byId("pictures");
    section.hidden = false;
    section.querySelector(".hint").textContent = model.best === null ? `${run}, which is not finished` : run;
    if (model.best === null) section.querySelector("h2").textContent = "Pictures";
    for (const picture of list) {
      // Small pixels are enlarged by whole numbers; larger pictures, with letters in them, are made smaller smoothly.
      const times = Math.max(1, Math.min(3, Math.floor(640 / picture.width)));
      const image = element("img", {src: picture.uri, alt: `${picture.title} of the run ${run}`, width: picture.width * times,
                                    className: times > 1 ? "enlarged" : ""});
      const figure = element("figure", {}, element("h3", {}, picture.title), image);
      if (picture.text) figure.append(Tables.later("As a table", () => Tables.markdown(picture.text)));
      section.querySelector(".pictures").append(figure);
    }
  }

  let runsTable = {show: () => {}, sort: () => {}, order: () => undefined};
  function showRuns() {
    const columns = Charts.objects(model.columns), rows = model.runs.rows;
    if (!rows.length) return;
    byId("runs").hidden = false;
    const all = rows.length === 1 ? "1 run" : `${rows.length} runs`;
    const count = (found) => { byId("count").textContent = found === rows.length ? all : `${found} of ${all}`; };
    runsTable = Tables.runs(columns, rows, model.best, (found) => { if (!clearing) Selection.choose("filter", found); }, pick);
    byId("runs").querySelector(".tall").append(runsTable.table);
    byId("filter").addEventListener("input", () => count(runsTable.filter(byId("filter").value)));
    count(rows.length);
  }

  function showProvenance() {
    const body = element("tbody");
    let last = null;
    for (const [what, value] of model.provenance.rows) {
      if (what === last) body.lastChild.lastChild.append(element("br"), value);
      else body.append(element("tr", {}, element("th", {scope: "row"}, what), element("td", {}, value)));
      last = what;
    }
    byId("provenance").querySelector(".facts").append(element("table", {}, body));
    for (const [name, text] of model.files.rows)
      byId("files").append(Tables.later(`The sweep file ${name}`, () => Tables.highlighted(text)));
    const remarks = [...model.remarks];
    if (!model.vega) remarks.push("There are no charts: the program was built without Vega (Debian's libjs-vega).");
    byId("remarks").append(...remarks.map((text) => element("p", {className: "hint"}, text)));
  }

  function showContents() {
    for (const section of document.querySelectorAll("main > section:not([hidden])")) {
      byId("contents").append(element("a", {href: `#${section.id}`}, section.querySelector("h2").textContent));
    }
  }

  function paintRamp() {
    const box = byId("ramp"), line = element("i");
    line.style.background = `linear-gradient(to right, ${Charts.ramp().join(", ")})`;
    box.replaceChildren("Colour: worse ", line, ` better ${model.metric}`);
  }

  let askedTheme = null, setTheme = null;
  function setUpTheme() {
    const button = byId("theme"), dark = matchMedia("(prefers-color-scheme: dark)");
    const paint = (isDark) => {
      if (document.documentElement.dataset.theme === (isDark ? "dark" : "light")) return;
      document.documentElement.dataset.theme = isDark ? "dark" : "light";
      button.textContent = isDark ? "Light theme" : "Dark theme";
      paintRamp();
      for (const redraw of drawn.values()) redraw();
    };
    const set = () => paint(askedTheme ?? dark.matches);
    setTheme = (isDark) => { askedTheme = isDark; set(); };
    // Paper is white, and browsers leave out the backgrounds.
    addEventListener("beforeprint", () => paint(false));
    addEventListener("afterprint", set);
    button.addEventListener("click", () => setTheme(!(askedTheme ?? dark.matches)));
    dark.addEventListener("change", set);
    set();
  }

  // ---- a sweep that is followed
  // The page is written again and again; this loads it again, and keeps the place, the theme, what the curves
  // show, and the order of the table. Not while a choice is open, or runs are in focus or tables open, which
  // would be lost.
  function followSweep() {
    const kept = history.state ?? {}, select = byId("colour-by").querySelector("select"), asked = {};
    if (kept.theme !== undefined) setTheme(kept.theme);
    for (const [name, control, property] of [["colour", select, "value"], ["training", byId("show-training"), "checked"],
                                             ["validation", byId("show-validation"), "checked"]]) {
      control.addEventListener("change", () => { asked[name] = control[property]; });
      const value = kept.asked?.[name];
      if (value === undefined || (control === select && ![...select.options].some((option) => option.value === value))) continue;
      control[property] = value;
      control.dispatchEvent(new Event("change"));
    }
    runsTable.sort(kept.order);
    for (const [id, height] of Object.entries(kept.heights ?? {})) if (byId(id)) byId(id).style.minHeight = `${height}px`;
    if (kept.top !== undefined) scrollTo({top: kept.top, behavior: "instant"});
    history.replaceState(null, "");
    history.scrollRestoration = "auto";
    if (!model.reload_seconds) return;
    byId("live").textContent = ` – live, ${model.ended} of ${model.labels.length} runs have ended`;
    // There is no event when a menu closes without a change, so it counts as open for half a minute.
    let openUntil = 0;
    for (const begin of ["pointerdown", "keydown"]) select.addEventListener(begin, () => { openUntil = performance.now() + 30000; });
    for (const end of ["change", "blur"]) select.addEventListener(end, () => { openUntil = 0; });
    setInterval(() => {
      if (performance.now() < openUntil || document.hidden || Selection.focus() !== null || document.querySelector("main details[open]")) return;
      const heights = Object.fromEntries([...document.querySelectorAll(".canvas")].map((box) => [box.id, box.offsetHeight]));
      history.replaceState({top: scrollY, heights, theme: askedTheme, asked, order: runsTable.order()}, "");
      history.scrollRestoration = "manual";
      location.reload();
    }, 1000 * model.reload_seconds);
  }

  setUpTheme();
  showAnswer();
  for (const id of ["progress", "slice"]) byId(id).querySelector(".hint").prepend(`Vertical: ${model.metric}. `);
  if (model.compared) byId("comparison-title").textContent = model.compared;
  if (model.vega) {
    model.charts.forEach(addChart);
    setUpCurves();
  }
  showEffects();
  showPictures();
  showRuns();
  showProvenance();
  listenToFocus();
  showContents();
  followSweep();
  document.documentElement.dataset.ready = "true";
})();
