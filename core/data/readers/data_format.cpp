
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/suggest.h"
#include "core/base/text.h"
#include "core/data/readers/readers.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr DataFormat kFormats[] = {
    {"idx", "a folder with train-images-idx3-ubyte or train-images-idx3-ubyte.gz", is_idx, read_idx_dataset},
    {"cifar10", "a folder with data_batch_1.bin to data_batch_5.bin", is_cifar10, read_cifar10},
    {"cifar100", "a folder with train.bin of CIFAR-100", is_cifar100, read_cifar100},
    {.name = "npy",
     .description = "a folder with .npy files such as features.npy and labels.npy",
     .recognise = is_npy,
     .read = read_npy_files,
     .has_labels = true},
    {.name = "npz",
     .description = "an archive of NumPy arrays such as features and labels",
     .recognise = is_npz,
     .read = read_npz,
     .has_labels = true},
    {.name = "safetensors",
     .description = "a file of tensors such as features and labels",
     .recognise = is_safetensors,
     .read = read_safetensors_data,
     .has_labels = true},
    {.name = "image_folder",
     .description = "a folder with a folder of JPEG, PNG or WebP images per class",
     .recognise = is_image_folder,
     .read = read_image_folder,
     .decodes_images = true,
     .sorted_by_class = true},
    {.name = "csv",
     .description = "a table with a header, separated by commas or semicolons",
     .recognise = is_csv,
     .read = read_csv,
     .has_labels = true,
     .is_table = true},
    {.name = "tsv",
     .description = "a table with a header, separated by tabs",
     .recognise = is_tsv,
     .read = read_csv,
     .has_labels = true,
     .is_table = true},
};

// Why `path` cannot hold data in any format; "" if it can.
std::string why_without_data(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const bool is_folder = fs::is_directory(status);
  if (!is_folder && !fs::is_regular_file(status)) return "is neither a file nor a folder";
  if (!is_folder) open_regular_file(path);  // says why it cannot be read
  const bool is_empty = fs::is_empty(path, error);
  if (error) return "cannot be read: " + error.message();
  return !is_empty ? "" : is_folder ? "is an empty folder" : "is empty";
}

}  // namespace

std::optional<DataPart> part_called(std::string_view word) {
  const std::string lower = lower_case(std::string(word));
  for (const auto& [known, part] : kPartWords) {
    if (known == lower) return part;
  }
  return std::nullopt;
}

std::span<const DataFormat> data_formats() { return kFormats; }

const DataFormat& require_format(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &DataFormat::name);
  if (found != std::end(kFormats)) return *found;
  std::vector<std::string> names;
  for (const DataFormat& row : kFormats) names.emplace_back(row.name);
  throw ConfigError(fmt::format("unknown data set format \"{}\"; allowed: {}{}", name,
                                listed_names(names, names.size()),
                                did_you_mean(nearest_name(name, names), ". Did")));
}

const DataFormat* recognise_format(const fs::path& path) {
  const auto found =
      std::ranges::find_if(kFormats, [&](const DataFormat& format) { return format.recognise(path); });
  return found == std::end(kFormats) ? nullptr : &*found;
}

std::vector<fs::path> expand_source(const std::string& source) {
  std::error_code error;
  const fs::file_status status = fs::status(source, error);
  if (fs::exists(status)) return {source};
  // A link to itself, or a folder that may not be searched.
  if (!fs::status_known(status)) refuse(source, "cannot open: {}", error.message());
  glob_t matches{};
  const std::unique_ptr<glob_t, void (*)(glob_t*)> freed(&matches, ::globfree);
  const int outcome = ::glob(source.c_str(), 0, nullptr, &matches);
  if (outcome == GLOB_NOSPACE) throw std::bad_alloc();
  std::vector<fs::path> paths;
  if (outcome == 0) paths.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  if (paths.empty()) refuse(source, "cannot open: {}", std::strerror(ENOENT));
  std::sort(paths.begin(), paths.end());
  return paths;
}

const DataFormat& choose_format(std::string_view name, std::span<const fs::path> paths) {
  if (!name.empty()) return require_format(name);
  const DataFormat* recognised = recognise_format(paths.front());
  if (recognised != nullptr) return *recognised;
  if (const std::string reason = why_without_data(paths.front()); !reason.empty())
    refuse(paths.front(), "{}", reason);
  std::string known, inner;
  for (const DataFormat& row : kFormats)
    known += fmt::format("{}{}, {}", known.empty() ? "" : "; ", row.name, row.description);
  // Archives often have a folder around all others.
  for (const std::string& folder : visible_names(paths.front())) {
    std::error_code error;
    const fs::path path = paths.front() / folder;
    const DataFormat* row = fs::is_directory(path, error) ? recognise_format(path) : nullptr;
    if (row != nullptr) inner = fmt::format(", but that of {} in it is: {}", quoted_name(folder), row->name);
  }
  refuse(paths.front(), "its format is not recognised{}. Known are: {}", inner, known);
}

}  // namespace sweep
