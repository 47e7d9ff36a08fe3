"use strict";
// Which runs are in focus: those that every part of the page which was asked to choose has chosen.
const Selection = (() => {
  const chosen = new Map();  // part of the page -> Set of runs
  const listeners = [];

  function focus() {
    let all = null;
    for (const runs of chosen.values()) all = all === null ? new Set(runs) : new Set([...all].filter((run) => runs.has(run)));
    return all;
  }
  const tell = () => { const runs = focus(); for (const listener of listeners) listener(runs); };

  return {
    focus,
    // `runs`: a Set; null: the part has no wish.
    choose(part, runs) {
      if (runs === null ? !chosen.delete(part) : false) return;
      if (runs !== null) chosen.set(part, runs);
      tell();
    },
    clear() {
      chosen.clear();
      tell();
    },
    listen(listener) { listeners.push(listener); },
  };
})();
