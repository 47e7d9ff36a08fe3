// Puts a report's model into one self-contained HTML page, with the files that the build puts into the
// program: its template, scripts and charts.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace sweep {

/// The page. `title` is shown as text; `model` is what page.js shows. The policy in the page allows its own
/// scripts, by their digests, and pictures in it; it forbids every request.
std::string html_page(std::string_view title, const nlohmann::ordered_json& model);

/// `text` for HTML, in an element or an attribute with quotes.
std::string html_text(std::string_view text);

/// JSON for a script element: no "<" in it, so that nothing can end the element or begin a comment.
std::string script_json(const nlohmann::ordered_json& json);

/// "data:image/png;base64,…".
std::string png_uri(std::string_view png);

/// "sha256-…" in Base64, as policies name a script.
std::string script_digest(std::string_view script);

struct EmbeddedFile {
  std::string_view name;  // "page.html", "curves.json"
  std::string_view content;
};

/// All of them, in the order of CMakeLists.txt.
std::span<const EmbeddedFile> embedded_files();

/// The content of the file `name`; "" if the build did not have it. Only "vega.js" may be missing.
std::string_view embedded_file(std::string_view name);

/// Whether the build found Vega, without which a report has no charts.
bool has_vega();

}  // namespace sweep
