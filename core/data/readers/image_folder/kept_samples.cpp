#include "core/data/readers/image_folder/kept_samples.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/data/readers/image_folder/scan.h"
#include "core/data/readers/sha256.h"
#include "core/json/json_text.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDescription = "description";

// Half of the memory: the rest is for the training, and for other programs.
MapUse use_of(std::uint64_t bytes) { return bytes <= usable_memory() / 2 ? MapUse::kWhole : MapUse::kPieces; }

std::uint64_t file_bytes(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

// Pairs of a path below `root`, relative to it, and a text.
template <typename Entries>
Json paths_json(const std::filesystem::path& root, const Entries& entries,
                std::string Entries::value_type::*text) {
  Json json = Json::array();
  for (const auto& entry : entries) json.push_back({relative_name(root, entry.path), entry.*text});
  return json;
}

template <typename Entries>
void read_paths(const std::filesystem::path& root, const Json& json, Entries& entries) {
  for (const Json& pair : json) {
    const auto relative = pair.at(0).get<std::string>();
    entries.push_back({relative.empty() ? root : root / relative, pair.at(1).get<std::string>()});
  }
}

void map_samples(const MappedTensors& file, DataArrays& data) {
  data.mapping = file.file();
  for (NamedArray& array : data.arrays)
    if (array.name.starts_with("x_")) array.values = file.array<std::uint8_t>(array.name);
}

MappedTensors mapped(FileDescriptor file, const std::string& name) {
  const std::uint64_t bytes = file_bytes(file.get());
  return {std::move(file), use_of(bytes), name};
}

// Throws DataError or an error of JSON for whatever is not as it was written.
DataArrays parse(const MappedTensors& file, const std::string& key, const std::filesystem::path& root,
                 const std::string& name) {
  const MaybeOwnedArray<std::uint8_t> bytes = file.array<std::uint8_t>(kDescription);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (file.metadata().at("key") != key) throw DataError("another key");
  if (file.metadata().at("sha256") != sha256_of({bytes.data(), bytes.size()}))
    throw DataError("the description is damaged");
  const Json description = parse_json_text(text, name);
  DataArrays data;
  for (const std::string part : {"train", "validation", "test"}) {
    const TensorEntry* samples = file.find("x_" + part);
    if (samples == nullptr) continue;
    const MaybeOwnedArray<std::int32_t> labels = file.array<std::int32_t>("y_" + part);
    data.arrays.push_back({samples->name, samples->shape, {}});
    data.arrays.push_back({"y_" + part,
                           {static_cast<std::int64_t>(labels.size())},
                           std::vector<std::int64_t>(labels.begin(), labels.end())});
  }
  map_samples(file, data);
  data.class_names = description.at("class_names").get<std::vector<std::string>>();
  read_paths(root, description.at("files"), data.files);
  read_paths(root, description.at("skipped"), data.skipped);
  return data;
}

}  // namespace

void finish_kept_samples(TensorWriter& file, const std::string& key, const std::filesystem::path& root,
                         const DataArrays& data) {
  for (const NamedArray& array : data.arrays) {
    const auto* labels = std::get_if<std::vector<std::int64_t>>(&array.values);
    if (labels == nullptr) continue;
    const std::vector<std::int32_t> stored(labels->begin(), labels->end());
    file.begin(array.name, TensorType::kI32);
    file.append(std::as_bytes(std::span(stored)));
    file.end(array.shape);
  }
  std::string description;
  try {
    description = Json{{"class_names", data.class_names},
                       {"files", paths_json(root, data.files, &DataFile::sha256)},
                       {"skipped", paths_json(root, data.skipped, &SkippedFile::reason)}}
                      .dump();
  } catch (const nlohmann::json::exception&) {
    throw IoError(file.path().string() + ": a file's name is not UTF-8");
  }
  file.begin(kDescription, TensorType::kU8);
  file.append(std::as_bytes(std::span(description)));
  file.end({static_cast<std::int64_t>(description.size())});
  file.finish({{"key", key},
               {"sha256", sha256_of(std::span(reinterpret_cast<const std::uint8_t*>(description.data()),
                                              description.size()))}});
}

void map_samples(FileDescriptor file, const std::string& name, DataArrays& data) {
  map_samples(mapped(std::move(file), name), data);
}

std::optional<DataArrays> read_kept_samples(const std::filesystem::path& path, const std::string& key,
                                            const std::filesystem::path& root) {
  try {
    return parse(mapped(open_regular_file(path), path.string()), key, root, path.string());
  } catch (const Error&) {
  } catch (const nlohmann::json::exception&) {
  } catch (const std::out_of_range&) {  // metadata that is not there
  }
  return std::nullopt;
}

}  // namespace sweep
