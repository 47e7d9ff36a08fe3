// Data sets whose content is known byte for byte, so that damaged or mixed-up files are found.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace sweep {

struct KnownDataset {
  std::string_view name;
  std::array<std::string_view, 10> class_names;
  // SHA-256 of the decompressed files.
  std::string_view train_images, train_labels, test_images, test_labels;
  std::string_view how_to_get;  // one line
};

std::span<const KnownDataset> known_datasets();

/// Returns the data set called `name`, or nullptr.
const KnownDataset* find_known_dataset(std::string_view name);

}  // namespace sweep
