"use strict";
// Charts by Vega: specifications and tables from the model, colours of the theme.
const Charts = (() => {
  const views = new Map();  // by the chart's id

  // Readable on both: at least 3 to 1 against the cards of either theme.
  const category = ["#2f7ed8", "#d56a10", "#2b9560", "#c2479d", "#8a63d2", "#14899d", "#d24545", "#9a6b3f", "#7f8a1e", "#6f7f8f"];
  const ramps = {
    light: ["#8293a6", "#6096b7", "#3f8fb2", "#1f6a9c", "#123f7a"],
    dark: ["#6b788a", "#4b8299", "#3fa3b0", "#7fd0a8", "#f2e27a"],
  };

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const isDark = () => document.documentElement.dataset.theme === "dark";
  const ramp = () => ramps[isDark() ? "dark" : "light"];

  function config() {
    const ink = style("--ink"), soft = style("--soft"), font = getComputedStyle(document.body).fontFamily;
    const label = {labelColor: soft, titleColor: ink, labelFont: font, titleFont: font, labelFontSize: 12, titleFontSize: 12,
                   titleFontWeight: "normal"};
    // Values that are told by order: from pale to strong, without what would vanish on the card.
    const many = isDark() ? ["#5b7fd0", "#45a5c4", "#4cbf95", "#a8cf5e", "#f2d05a", "#f0955a"]
                          : ["#3a3f9c", "#2f6fb5", "#218f9a", "#2f9560", "#7f8a1e", "#b8720f"];
    return {
      background: null,
      axis: {...label, domainColor: soft, tickColor: soft, gridColor: style("--grid"), labelPadding: 4},
      legend: {...label, labelLimit: 260},
      text: {fill: ink, font, fontSize: 12.5},
      rule: {stroke: soft},
      symbol: {fill: category[0], stroke: style("--card"), strokeWidth: 0.8},
      style: {halo: {fill: style("--card"), stroke: style("--card"), strokeWidth: 8, strokeJoin: "round"}},
      range: {category, ramp: ramp(), ordinal: {scheme: many, count: 24}},
    };
  }

  // From the ninth on, numbers are; words only where there are no colours left.
  const tellsByOrder = (values) => values.length > (typeof values[0] === "number" ? 8 : category.length);

  function objects(table) {
    return table.rows.map((row) => Object.fromEntries(table.columns.map((name, i) => [name, row[i]])));
  }

  // The names of the tables, `tables` by their names, that are the chart's data.
  const tablesOf = (chart, tables) =>
      chart.spec.data.filter(({name, source}) => !source && tables[name]).map(({name}) => name);
  const named = (list, name) => list.find((item) => item.name === name);
  function tip(event, value) {
    const box = document.getElementById("tip");
    box.replaceChildren();
    box.hidden = value == null || value === "";
    if (box.hidden) return;
    const {"": title, ...entries} = typeof value === "object" ? value : {"": value};
    const list = Object.entries(entries).flatMap(([name, text]) =>
        [Tables.element("dt", {textContent: name}), Tables.element("dd", {textContent: text})]);
    if (title !== undefined) box.append(Tables.element("b", {textContent: title}));
    box.append(Tables.element("dl", {}, ...list));
    const left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 6);
    const below = event.clientY + 16 + box.offsetHeight < innerHeight;
    box.style.left = Math.max(6, left) + "px";
    box.style.top = (below ? event.clientY + 16 : Math.max(4, event.clientY - box.offsetHeight - 10)) + "px";
  }

  // Draws the chart into `container`; `tables` are the values by the names that the specification has.
  async function draw(chart, container, tables, width) {
    const modules = vegaModules;
    const spec = structuredClone(chart.spec);
    for (const [name, values] of Object.entries(tables)) named(spec.data, name).values = values;
    if (tables.series) named(spec.signals, "many").value = tellsByOrder([...new Set(tables.series.map((row) => row.group))]);
    spec.width = width;
    const runtime = modules["vega-parser"].parse(spec, config(), {ast: true});
    const view = new modules["vega-view"].View(runtime, {
      expr: modules["vega-interpreter"].expressionInterpreter, renderer: "canvas", container, hover: true,
      tooltip: (_, event, item, value) => tip(event, value), logLevel: 1,
    });
    views.get(chart.id)?.finalize();
    views.set(chart.id, view);
    await view.runAsync();
    return view;
  }

  // What Vega's own package does when it is loaded.
  if (typeof vegaModules !== "undefined") {
    Object.assign(vegaModules["vega-dataflow"].transforms, vegaModules["vega-transforms"],
                  vegaModules["vega-view-transforms"], vegaModules["vega-encode"]);
  }
  return {draw, named, objects, tablesOf, views, category, ramp, tellsByOrder};
})();
