#include "runmanager/report/embedded_file.h"

#include <algorithm>

namespace sweep {

std::string_view embedded_file(std::string_view name) {
  const std::span<const EmbeddedFile> files = embedded_files();
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const EmbeddedFile& file) { return file.name == name; });
  return found == files.end() ? std::string_view() : found->content;
}

bool has_vega() { return !embedded_file("vega.js").empty(); }

}  // namespace sweep
