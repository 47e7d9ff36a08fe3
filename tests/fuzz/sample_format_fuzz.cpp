// Fuzz target: any bytes are the description of samples that a run records, or give a DataError; and with it,
// any bytes behind the first line break are a table of new rows, or give a DataError.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "core/data/unlabelled/table_features.h"
#include "core/json/json_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  if (end == std::string::npos) return 0;
  try {
    const auto json = sweep::parse_json_text(text.substr(0, end), "FORMAT");
    const sweep::SampleFormat format = sweep::sample_format_from_json(json, "FORMAT");
    if (sweep::sample_format_from_json(to_json(format), "AGAIN") != format) std::abort();
    if (format.columns.empty()) return 0;
    std::istringstream in(text.substr(end + 1));
    sweep::InputFile file(in, "FILE");
    const sweep::TableFeatures features = sweep::read_table_features(file, format);
    if (features.values.size() != features.lines.size() * sweep::element_count(format.shape)) std::abort();
    for (const float value : features.values) {
      if (!std::isfinite(value)) std::abort();
    }
  } catch (const sweep::DataError&) {
  }
  return 0;
}
