"use strict";
// What Vega's own package `vega` does for its modules: loads them, in an order in which each finds those that it needs, and
// gathers their transforms. Modules for maps, forces, trees and word clouds are left out.
const vegaModules = {};
function vegaModule(name, body) {
  const exports = {};
  body(exports, {exports}, (needed) => {
    const found = vegaModules[needed === "vega-selections" ? "vega-selection" : needed];
    if (!found) throw new Error(`${name} needs ${needed}, which is not loaded`);
    return found;
  });
  vegaModules[name] = exports;
}
