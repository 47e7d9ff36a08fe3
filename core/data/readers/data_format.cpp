#include "core/data/readers/data_format.h"

#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "core/data/readers/cifar.h"
#include "core/data/readers/csv.h"
#include "core/data/readers/image_folder.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/named_arrays.h"
#include "core/data/readers/npz.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr DataFormat kFormats[] = {
    {"cifar10", "a folder with data_batch_1.bin to data_batch_5.bin", is_cifar10, read_cifar10},
    {"cifar100", "a folder with train.bin of CIFAR-100", is_cifar100, read_cifar100},
    {"npy", "a folder with .npy files such as features.npy and labels.npy", is_npy, read_npy_files},
    {"npz", "an archive of NumPy arrays such as features and labels", is_npz, read_npz},
    {"image_folder", "a folder with a folder of images per class", is_image_folder, read_image_folder},
    {"csv", "a table with a header, separated by commas or semicolons", is_csv, read_csv},
    {"tsv", "a table with a header, separated by tabs", is_tsv, read_csv},
};

struct GlobResult {
  glob_t matches{};
  GlobResult() = default;
  GlobResult(const GlobResult&) = delete;
  GlobResult& operator=(const GlobResult&) = delete;
  ~GlobResult() { ::globfree(&matches); }
};

}  // namespace

std::span<const DataFormat> data_formats() { return kFormats; }

const DataFormat* recognise_format(std::span<const DataFormat> formats, const fs::path& path) {
  const auto found =
      std::ranges::find_if(formats, [&](const DataFormat& format) { return format.recognise(path); });
  return found == formats.end() ? nullptr : &*found;
}

std::vector<fs::path> expand_source(const std::string& source) {
  std::error_code error;
  const fs::file_status status = fs::status(source, error);
  if (fs::exists(status)) return {source};
  // A link to itself, or a folder that may not be searched.
  if (!fs::status_known(status)) throw DataError(source + ": cannot open: " + error.message());
  GlobResult result;
  const int outcome = ::glob(source.c_str(), 0, nullptr, &result.matches);
  if (outcome == GLOB_NOSPACE) throw std::bad_alloc();
  std::vector<fs::path> paths;
  for (std::size_t i = 0; outcome == 0 && i < result.matches.gl_pathc; ++i) {
    paths.emplace_back(result.matches.gl_pathv[i]);
  }
  if (paths.empty()) throw DataError(source + ": cannot open: " + std::strerror(ENOENT));
  std::sort(paths.begin(), paths.end());
  return paths;
}

RawData read_raw_data(std::span<const DataFormat> formats, const std::string& source, std::string_view format,
                      const ReadOptions& options) {
  const DataFormat* chosen = nullptr;
  if (!format.empty()) {
    const auto found = std::ranges::find(formats, format, &DataFormat::name);
    if (found == formats.end()) {
      std::vector<std::string> names;
      std::string allowed;
      for (const DataFormat& row : formats) {
        names.emplace_back(row.name);
        allowed += (allowed.empty() ? "" : ", ") + in_quotes(row.name);
      }
      const std::string nearest = nearest_name(format, names);
      throw ConfigError("unknown data set format " + in_quotes(format) + "; allowed: " + allowed +
                        (nearest.empty() ? "" : ". Did you mean " + in_quotes(nearest) + "?"));
    }
    chosen = &*found;
  }
  const std::vector<fs::path> paths = expand_source(source);
  if (chosen == nullptr) chosen = recognise_format(formats, paths.front());
  if (chosen == nullptr) {
    std::string known;
    for (const DataFormat& row : formats) {
      known += (known.empty() ? "" : "; ") + std::string(row.name) + ", " + std::string(row.description);
    }
    throw DataError(paths.front().string() + ": its format is not recognised. Known are: " + known);
  }
  return chosen->read(paths, options);
}

}  // namespace sweep
