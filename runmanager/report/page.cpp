#include "runmanager/report/page.h"

#include <fmt/format.h>
#include <nettle/base64.h>
#include <nettle/sha2.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/base/text.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

std::string base64(std::string_view bytes) {
  std::string text(BASE64_ENCODE_RAW_LENGTH(bytes.size()), '\0');
  base64_encode_raw(text.data(), bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
  return text;
}

// The scripts of the page in their order. Vega is missing where the build had none.
std::vector<std::string_view> scripts() {
  std::vector<std::string_view> list;
  for (const char* name : {"vega.js", "charts.js", "selection.js", "tables.js", "page.js"}) {
    if (const std::string_view script = embedded_file(name); !script.empty()) list.push_back(script);
  }
  return list;
}

std::string policy() {
  std::string allowed;
  for (const std::string_view script : scripts()) allowed += fmt::format(" '{}'", script_digest(script));
  return fmt::format(
      "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src{}; base-uri 'none'; "
      "form-action 'none'",
      allowed);
}

// `page` with each {{NAME}} replaced by its value. What values hold is not looked at again.
std::string filled(std::string_view page, const std::map<std::string, std::string, std::less<>>& values) {
  std::string result;
  while (true) {
    const std::size_t begin = page.find("{{");
    const std::size_t end = begin == std::string_view::npos ? begin : page.find("}}", begin);
    if (end == std::string_view::npos) return result + std::string(page);
    result += page.substr(0, begin);
    result += values.at(std::string(page.substr(begin + 2, end - begin - 2)));
    page.remove_prefix(end + 2);
  }
}

}  // namespace

std::string html_text(std::string_view text) {
  return substituted(text, {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}});
}

std::string script_json(const Json& json) { return substituted(compact_json_text(json), {{'<', "\\u003c"}}); }

std::string png_uri(std::string_view png) { return "data:image/png;base64," + base64(png); }

std::string script_digest(std::string_view script) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, script.size(), reinterpret_cast<const std::uint8_t*>(script.data()));
  std::string digest(SHA256_DIGEST_SIZE, '\0');
  sha256_digest(&context, digest.size(), reinterpret_cast<std::uint8_t*>(digest.data()));
  return "sha256-" + base64(digest);
}

std::string html_page(std::string_view title, const Json& model) {
  std::string code;
  for (const std::string_view script : scripts()) code += fmt::format("<script>{}</script>\n", script);
  return filled(embedded_file("page.html"), {{"POLICY", policy()},
                                             {"TITLE", html_text(title)},
                                             {"STYLE", std::string(embedded_file("style.css"))},
                                             {"MODEL", script_json(model)},
                                             {"SCRIPTS", code}});
}

std::string_view embedded_file(std::string_view name) {
  const std::span<const EmbeddedFile> files = embedded_files();
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const EmbeddedFile& file) { return file.name == name; });
  return found == files.end() ? std::string_view() : found->content;
}

bool has_vega() { return !embedded_file("vega.js").empty(); }

}  // namespace sweep
