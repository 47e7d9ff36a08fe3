// The formats in which data sets lie on disk, as a table with one row per format. Everything that lists or
// looks up formats ("format" of a sweep file, its schema, load_dataset()) reads the table.
//
// To add a format: write a reader like idx_dataset.cpp, and add its row in data_format.cpp.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"

namespace sweep {

/// The parts that a data set's files are split into.
enum class Split { kTrain, kTest };

/// One split as it was read.
struct SplitData {
  std::shared_ptr<const ImageSet> set;
  /// Every file of the split: the one with the pixels first, the one with the labels last.
  std::vector<DataFile> files;
};

/// How to recognise and read one format. The functions are thread-safe: both splits are read at once.
struct DataFormat {
  std::string_view name;  // as "format" of a sweep file has it
  /// Returns why `directory` does not hold a training set in this format, or "" if it does.
  std::string (*missing_reason)(const std::filesystem::path& directory);
  /// Returns whether `directory` has a test set, complete or not. Called where the training set is there.
  bool (*has_test)(const std::filesystem::path& directory);
  /// Reads and checks one split. Throws DataError, naming the file.
  SplitData (*read)(const std::filesystem::path& directory, Split split);
};

/// Every format; the first is the default of "format".
std::span<const DataFormat> data_formats();

/// Returns the format called `name`, or nullptr.
const DataFormat* find_data_format(std::string_view name);

}  // namespace sweep
