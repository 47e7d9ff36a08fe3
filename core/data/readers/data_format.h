// The formats of data that can be read, one row each.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/readers/raw_data.h"
#include "core/data/readers/read_options.h"

namespace sweep {

struct DataFormat {
  std::string_view name;         // as in a sweep file: "image_folder"
  std::string_view description;  // for a person whose data is not recognised: what it has to look like
  /// Whether `path`, a file or a folder, is in this format, by a look at its content. Does not
  /// throw DataError.
  bool (*recognise)(const std::filesystem::path& path);
  /// Reads what recognise() knows, and says exactly what is wrong with anything else. Throws DataError.
  RawData (*read)(std::span<const std::filesystem::path> paths, const ReadOptions& options);
};

/// All formats of this folder, in the order in which they are tried: the narrower first.
std::span<const DataFormat> data_formats();

/// The first of `formats` that recognises `path`, or nullptr.
const DataFormat* recognise_format(std::span<const DataFormat> formats, const std::filesystem::path& path);

/// The files and folders that `source` stands for: itself if it exists, otherwise what it matches as a
/// glob(7) pattern, sorted by name. Throws DataError if that is nothing.
std::vector<std::filesystem::path> expand_source(const std::string& source);

/// Reads `source`, a path or a pattern, as `format`, or as what its first file is recognised as if `format`
/// is empty. Throws DataError, which lists the formats if none fits; ConfigError for an unknown format.
RawData read_raw_data(std::span<const DataFormat> formats, const std::string& source, std::string_view format,
                      const ReadOptions& options);

}  // namespace sweep
