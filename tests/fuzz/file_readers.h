// Reads the bytes of one file of each format, as fuzzers and the tests of damage need it. A new format is one
// more row of the table in file_readers.cpp, or in other_readers.cpp, of which a program has one.
#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string_view>

namespace sweep::test {

struct FileReader {
  std::string_view name;  // of the fuzzer and its corpus
  bool has_options;       // the first byte chooses options, the file follows
  /// Throws DataError for a damaged file, which it calls "FILE", and std::logic_error for a result that no
  /// reader may give.
  void (*read)(std::string_view bytes);
};

std::span<const FileReader> file_readers();

/// The row called `name`, which has to be there.
inline const FileReader& file_reader(std::string_view name) {
  return *std::ranges::find(file_readers(), name, &FileReader::name);
}

/// What has to hold for every result of a reader.
inline void require(bool holds) {
  if (!holds) throw std::logic_error("a reader gave what no reader may give");
}

}  // namespace sweep::test
