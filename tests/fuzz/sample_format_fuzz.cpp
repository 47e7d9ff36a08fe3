// Fuzz target: any bytes are the description of samples that a run records, or give a DataError; and with it,
// any bytes after the first line break are a file of new samples, or skipped.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "core/data/sample_format.h"
#include "core/data/unlabelled_samples.h"
#include "core/json/json_text.h"
#include "tests/support/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  if (end == std::string::npos) return 0;
  try {
    const auto json = sweep::parse_json_text(text.substr(0, end), "FORMAT");
    const sweep::SampleFormat format = sweep::sample_format_from_json(json, "FORMAT");
    if (sweep::sample_format_from_json(to_json(format), "AGAIN") != format) std::abort();
    if (format.columns.empty()) return 0;
    const sweep::test::MemoryFile file(std::string_view(text).substr(end + 1));
    const std::filesystem::path path = file.path();
    const auto check = [&](const sweep::SampleArray& samples, const std::vector<std::string>& names) {
      const auto& floats = std::get<1>(samples);
      if (floats.size() != names.size() * sweep::element_count(format.shape)) std::abort();
      for (const float value : floats) {
        if (!std::isfinite(value)) std::abort();
      }
    };
    sweep::read_unlabelled(std::span(&path, 1), format, 1, check, [](const sweep::SkippedFile&) {});
  } catch (const sweep::DataError&) {
  }
  return 0;
}
