#include "core/data/data_format.h"

#include <algorithm>
#include <array>

#include "core/data/idx_dataset.h"

namespace sweep {

std::span<const DataFormat> data_formats() {
  static const std::array formats = {idx_format()};
  return formats;
}

const DataFormat* find_data_format(std::string_view name) {
  const std::span<const DataFormat> formats = data_formats();
  const auto found =
      std::find_if(formats.begin(), formats.end(), [&](const DataFormat& f) { return f.name == name; });
  return found == formats.end() ? nullptr : &*found;
}

}  // namespace sweep
