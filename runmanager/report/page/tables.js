"use strict";
// Tables, also those of charts, and other elements that are made of texts. Texts are never read as HTML.
const Tables = (() => {
  // `has`: properties and attributes. Children that are texts stay texts.
  function element(name, has = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(has)) key in made ? made[key] = value : made.setAttribute(key, value);
    made.append(...children);
    return made;
  }
  // What scrolls by itself, also with the keyboard.
  const scrolling = (label, className, ...children) =>
      element("div", {className, tabIndex: 0, role: "group", "aria-label": label}, ...children);

  const shown = (value) => value === null || value === undefined ? "–" : typeof value === "boolean" ? (value ? "◆" : "")
      : typeof value === "object" ? JSON.stringify(value)
      : typeof value === "number" ? String(+value.toPrecision(6)) : String(value);

  const cellOf = (value) => element("td", {className: typeof value === "number" ? "number" : ""}, shown(value));

  // A table with a head; `rows` of texts and numbers.
  function simple(columns, rows) {
    const head = columns.map((column) => element("th", {scope: "col"}, column));
    const lines = rows.map((row) => element("tr", {}, ...row.map(cellOf)));
    return element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...lines));
  }

  // What a chart shows. `tables`: all those of the model.
  function ofChart(chart, tables) {
    let rows = tables[Charts.tablesOf(chart, tables).at(-1)];
    if (chart.kind === "effects") rows = rows.filter((row) => row.level);
    if (chart.kind === "curves") {
      const label = new Map(tables.series.map((row) => [row.series, row.label])), {value} = Charts.named(chart.spec.signals, "measure");
      rows = rows.filter((row) => row.measure === value).map((row) => ({...row, label: label.get(row.series)}));
    }
    // As other tables show them.
    const cell = (value, format) => format === "share" && value !== null ? `${(100 * value).toFixed(2)}%` : value;
    return simple(chart.columns.map(([title]) => title),
                  rows.map((row) => chart.columns.map(([, name, format]) => cell(row[name], format))));
  }

  // A closed <details> that is filled when it is opened first.
  function later(title, fill) {
    const box = scrolling(title, "scroll"), details = element("details", {}, element("summary", {}, title), box);
    details.addEventListener("toggle", () => { if (details.open && !box.firstChild) box.append(fill()); });
    return details;
  }

  // The rows of a Markdown table as the program writes them, and the text above.
  function markdown(text) {
    const lines = text.split("\n").filter((line) => line.startsWith("|"));
    const plain = (cell) => cell.trim().replace(/\\(.)/g, "$1").replace(/&(lt|gt|amp|quot|#(\d+));/g,
        (_, name, code) => code ? String.fromCodePoint(+code) : {lt: "<", gt: ">", amp: "&", quot: '"'}[name]);
    const rows = lines.map((line) => line.replace(/^\||\|\s*$/g, "").split(/(?<!\\)\|/).map(plain));
    if (rows.length < 2) return element("pre", {}, text);
    return simple(rows[0], rows.slice(2));
  }

  // A key's order: numbers by value, then texts; what is missing last.
  function compare(a, b) {
    const missing = (a === null) - (b === null);
    if (missing || a === null) return missing;
    const x = Array.isArray(a) ? a[0] : a, y = Array.isArray(b) ? b[0] : b;
    if (x === null || y === null) return (x === null) - (y === null);
    const [p, q] = [x, y].map((value) => value === "" ? NaN : Number(value));
    const texts = Number.isNaN(p) - Number.isNaN(q);
    return texts || (Number.isNaN(p) ? String(x).localeCompare(String(y), "en") : p - q);
  }

  // The table of all runs: sorted by a click on a head, filtered by words, a row chosen by a click. With the
  // keyboard, words choose a row: a thousand rows to step through would help nobody.
  function runs(columns, rows, best, onFilter, onPick) {
    const texts = (cell) => Array.isArray(cell) ? cell[1] : cell ?? "–";
    const lines = rows.map((row, run) => {
      const cells = columns.map(({kind}, i) => {
        const text = texts(row[i]), isText = kind !== "number", cell = element("td", {className: isText ? "" : "number"}, text);
        if (isText && String(row[i] ?? "").length > 40) cell.title = row[i];
        cell.classList.toggle("long", /\S{17}/.test(text));
        return cell;
      });
      return element("tr", {className: run === best ? "best" : "", onclick: () => onPick(run)}, ...cells);
    });
    let sorted;
    const missing = (cell) => cell === null || (Array.isArray(cell) && cell[0] === null);
    const heads = columns.map(({title, kind}, i) => {
      const onclick = () => {
        const down = cell.getAttribute("aria-sort") === "ascending";
        sorted = {title, down};
        for (const other of heads) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        const order = rows.map((_, run) => run).sort((a, b) => {
          const [x, y] = [rows[a][i], rows[b][i]];
          return missing(x) || missing(y) ? missing(x) - missing(y) || a - b : (down ? compare(y, x) : compare(x, y)) || a - b;
        });
        body.append(...order.map((run) => lines[run]));
      };
      const cell = element("th", {className: kind === "number" ? "number" : "", scope: "col"},
                           element("button", {type: "button", onclick}, title));
      return cell;
    });
    const body = element("tbody", {}, ...lines);
    const caption = element("caption", {className: "visually-hidden"}, "Every run with its settings and results");
    const table = element("table", {}, caption, element("thead", {}, element("tr", {}, ...heads)), body);

    const words = rows.map((row) => columns.flatMap(({title}, i) => [texts(row[i]), `${title}=${texts(row[i])}`])
        .join("\n").toLowerCase().replaceAll('"', ""));
    function filter(text) {
      // Blanks separate words, except between quotes.
      const wanted = (text.toLowerCase().match(/(?:"[^"]*"|\S)+/g) ?? []).map((word) => word.replaceAll('"', "")).filter(Boolean);
      // "lr=0.01" is a whole cell; other words may be any part.
      const has = (all, word) => word.includes("=") ? all.split("\n").includes(word) : all.includes(word);
      const found = new Set();
      lines.forEach((line, run) => {
        line.hidden = !wanted.every((word) => has(words[run], word));
        if (!line.hidden) found.add(run);
      });
      onFilter(wanted.length ? found : null);
      return found.size;
    }
    function show(focus, picked) {
      lines.forEach((line, run) => {
        line.classList.toggle("faded", focus !== null && !focus.has(run));
        line.classList.toggle("picked", run === picked);
      });
    }
    // What was sorted by, undefined before; and sorts by it.
    const order = () => sorted;
    function sort(by) {
      const button = heads[columns.findIndex(({title}) => title === by?.title)]?.firstChild;
      button?.click();
      if (by?.down) button?.click();
    }
    return {table, filter, show, order, sort};
  }

  // JSON with its keys, texts and numbers coloured.
  function highlighted(text) {
    const pre = element("pre", {tabIndex: 0}), pattern = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:true|false|null)\b/g;
    let done = 0;
    for (const match of text.matchAll(pattern)) {
      pre.append(text.slice(done, match.index));
      const token = match[1] ?? match[0];
      pre.append(element("span", {className: match[2] ? "k" : match[1] ? "s" : "n"}, token));
      done = match.index + token.length;
    }
    pre.append(text.slice(done));
    return pre;
  }

  return {element, scrolling, simple, ofChart, later, markdown, runs, highlighted};
})();
