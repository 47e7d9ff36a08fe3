// The files that the build puts into the program: the page's template, scripts and charts.
#pragma once

#include <span>
#include <string_view>

namespace sweep {

struct EmbeddedFile {
  std::string_view name;  // "page.html", "charts/curves.vg.json"
  std::string_view content;
};

/// All of them, in the order of CMakeLists.txt.
std::span<const EmbeddedFile> embedded_files();

/// The content of the file `name`; "" if the build did not have it. Only "vega.js" may be missing.
std::string_view embedded_file(std::string_view name);

/// Whether the build found Vega, without which a report has no charts.
bool has_vega();

}  // namespace sweep
