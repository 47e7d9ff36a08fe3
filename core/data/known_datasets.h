// Data sets that are known by name, most of them byte for byte. The table serves the search by name, the
// checks for damaged or mixed-up files, and the checks of a sweep file that need sizes without reading any
// data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sweep {

struct KnownDataset {
  std::string_view name;
  std::string_view format;                        // a name of data_formats()
  std::span<const std::string_view> class_names;  // one per class
  std::array<std::int64_t, 3> shape;              // of one sample: [channels, height, width]
  std::size_t train_samples;                      // of the whole training file, validation part included
  /// SHA-256 of each file, in the order of RawData::files; empty where they are not known.
  std::span<const std::string_view> sha256;
  std::string_view how_to_get;  // one line for messages: an imperative, without a full stop
};

/// Every known data set, in the order in which messages list them.
std::span<const KnownDataset> known_datasets();

/// Returns the data set called `name`, or nullptr.
const KnownDataset* find_known_dataset(std::string_view name);

}  // namespace sweep
