// The options of the readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/data/readers/images/image_file.h"
#include "core/data/readers/table_options.h"

namespace sweep {

/// Each reader uses the options that its header names, and ignores the others.
struct ReadOptions {
  // Images.
  std::optional<ImageSize> resize{};
  bool grayscale = false;
  std::filesystem::path cache{};  // the folder of decoded images; empty: none

  // Tables, and arrays by name.
  std::string label{};                     // what holds classes
  std::vector<std::string> targets{};      // what holds values to be predicted
  std::vector<std::string> categorical{};  // columns of numbers that are names, such as postcodes
  std::vector<std::string> ignore{};       // columns to leave out, such as row numbers
  Categories categories = Categories::kOneHot;
  DecimalMark decimal = DecimalMark::kAuto;
  TextEncoding encoding = TextEncoding::kUtf8;
  MissingValues missing = MissingValues::kError;
  std::vector<FeatureColumn> columns{};  // that a network was trained on; empty: those that are found
  UnknownCategory unknown = UnknownCategory::kError;  // of these columns

  // All formats.
  unsigned threads = 0;  // 0: all cores that the process may use
};

/// Throws DataError if `count` samples of `shape` with values of `value_bytes` bytes need more than
/// usable_memory(). `name` stands for the source in the message.
void check_memory(std::uint64_t count, const std::vector<std::int64_t>& shape, std::size_t value_bytes,
                  const std::string& name);

}  // namespace sweep
