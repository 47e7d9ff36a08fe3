// Data sets whose content is known byte for byte. The table serves the search by name, the checks for damaged
// or mixed-up files, and the checks of a sweep file that need sizes without reading any data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sweep {

struct KnownDataset {
  std::string_view name;
  std::span<const std::string_view> class_names;  // one per class
  std::array<std::int64_t, 3> shape;              // of one sample: [channels, height, width]
  std::size_t train_samples;                      // of the whole training file, validation part included
  /// SHA-256 of the decompressed content of each file of a split, in the order of SplitData::files.
  std::array<std::string_view, 2> train_sha256, test_sha256;
  std::string_view how_to_get;  // one line for messages: an imperative, without a full stop
};

/// Every known data set, in the order in which messages list them.
std::span<const KnownDataset> known_datasets();

/// Returns the data set called `name`, or nullptr.
const KnownDataset* find_known_dataset(std::string_view name);

}  // namespace sweep
