// The formats of data that can be read, one row each.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/readers/dataset_spec.h"
#include "core/data/readers/named_arrays.h"

namespace sweep {

struct DataFormat {
  std::string_view name;         // as in a sweep file: "image_folder"
  std::string_view description;  // for a person whose data is not recognised: what it has to look like
  /// Whether `path`, a file or a folder, is in this format, by a look at its content. Does not
  /// throw DataError.
  bool (*recognise)(const std::filesystem::path& path);
  /// Reads what recognise() knows, and says exactly what is wrong with anything else. Throws DataError.
  DataArrays (*read)(std::span<const std::filesystem::path> paths, const ReadOptions& options);
  bool decodes_images = false;  // uses the options for images
  bool has_labels = false;      // a label or targets can be named
  bool is_table = false;        // uses all options for tables
  /// Samples come class by class, so that the last ones are of one class.
  bool sorted_by_class = false;
};

/// All formats, in the order in which they are tried: the narrower first.
std::span<const DataFormat> data_formats();

/// The format called `name`. Throws ConfigError, which lists all names, if there is none.
const DataFormat& require_format(std::string_view name);

/// The first format that recognises `path`, or nullptr.
const DataFormat* recognise_format(const std::filesystem::path& path);

/// The files and folders that `source` stands for: itself if it exists, otherwise what it matches as a
/// glob(7) pattern, sorted by name. Throws DataError if that is nothing.
std::vector<std::filesystem::path> expand_source(const std::string& source);

/// The format called `name`, or if that is empty, the one that recognises the first of `paths`. Throws
/// DataError, which lists the formats if none fits; ConfigError for an unknown name.
const DataFormat& choose_format(std::string_view name, std::span<const std::filesystem::path> paths);

}  // namespace sweep
