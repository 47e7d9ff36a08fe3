#include "core/data/cache/cache_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/retry.h"
#include "core/data/readers/sha256.h"
#include "core/json/json_text.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDescription = "description";

std::string sha256_of(std::string_view text) {
  Sha256 digest;
  digest.update({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return digest.finish();
}

// Half of the memory: the rest is for the training, and for other programs.
MapUse use_of(std::uint64_t bytes) { return bytes <= usable_memory() / 2 ? MapUse::kWhole : MapUse::kPieces; }

std::uint64_t file_bytes(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

// Whether `path` is `root` or below it; sets `relative` to what is left of it.
bool is_below(const std::filesystem::path& root, const std::filesystem::path& path, std::string& relative) {
  if (!path.native().starts_with(root.native())) return false;
  relative = relative_name(root, path);
  return true;
}

// [whether the rest is relative to the root, path, text].
Json path_json(const std::filesystem::path& root, const std::filesystem::path& path,
               const std::string& text) {
  std::string relative;
  const bool below = is_below(root, path, relative);
  return Json::array({below, below ? relative : path.string(), text});
}

std::filesystem::path path_of(const std::filesystem::path& root, const Json& json) {
  std::filesystem::path path = json.at(1).get<std::string>();
  if (!json.at(0).get<bool>()) return path;
  return path.empty() ? root : root / path;
}

template <typename Entries>
Json paths_json(const std::filesystem::path& root, const Entries& entries,
                std::string Entries::value_type::*text) {
  Json json = Json::array();
  for (const auto& entry : entries) json.push_back(path_json(root, entry.path, entry.*text));
  return json;
}

// Lets the samples in `data` be the memory of `file`.
void map_samples(const MappedTensors& file, DataArrays& data) {
  data.mapping = file.file();
  for (NamedArray& array : data.arrays)
    if (array.name.starts_with("x_")) array.values = file.array<std::uint8_t>(array.name);
}

// Throws DataError or an error of JSON for whatever is not as it was written.
DataArrays parse(const MappedTensors& file, const std::string& key, const std::filesystem::path& root,
                 const std::string& name) {
  const MaybeOwnedArray<std::uint8_t> bytes = file.array<std::uint8_t>(kDescription);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (file.metadata().at("key") != key) throw DataError("another key");
  if (file.metadata().at("sha256") != sha256_of(text)) throw DataError("the description is damaged");
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
  for (const Json& json : description.at("files"))
    data.files.push_back({path_of(root, json), json.at(2).get<std::string>()});
  for (const Json& json : description.at("skipped"))
    data.skipped.push_back({path_of(root, json), json.at(2).get<std::string>()});
  return data;
}

}  // namespace

CacheFileWriter::CacheFileWriter(const std::filesystem::path& path, std::uint64_t max_bytes)
    : file_(path), tensors_(file_.fd(), path) {
  const auto bytes = static_cast<off_t>(TensorWriter::kHeaderRoom + max_bytes);
  const int outcome = retry_interrupted([&] { return ::fallocate(file_.fd(), 0, 0, bytes); });
  // Not all file systems can; and a limit of this process is met only if there is so much to write.
  if (outcome != 0 && errno == ENOSPC)
    throw IoError(path.string() + ": cannot write: " + std::strerror(ENOSPC));
}

void CacheFileWriter::begin(const std::string& name, std::size_t /*max_bytes*/) {
  tensors_.begin(name, TensorType::kU8);
}

void CacheFileWriter::append(std::span<const std::uint8_t> bytes) { tensors_.append(std::as_bytes(bytes)); }

ArrayValues CacheFileWriter::end(const Shape& shape) {
  tensors_.end(shape);
  return {};
}

void CacheFileWriter::finish(const std::string& key, const std::filesystem::path& root, DataArrays& data) {
  for (const NamedArray& array : data.arrays) {
    const auto* labels = std::get_if<std::vector<std::int64_t>>(&array.values);
    if (labels == nullptr) continue;
    const std::vector<std::int32_t> stored(labels->begin(), labels->end());
    tensors_.begin(array.name, TensorType::kI32);
    tensors_.append(std::as_bytes(std::span(stored)));
    tensors_.end(array.shape);
  }
  std::string description;
  try {
    description = Json{{"class_names", data.class_names},
                       {"files", paths_json(root, data.files, &DataFile::sha256)},
                       {"skipped", paths_json(root, data.skipped, &SkippedFile::reason)}}
                      .dump();
  } catch (const nlohmann::json::exception&) {
    throw IoError(file_.path().string() + ": a file's name is not UTF-8");
  }
  tensors_.begin(kDescription, TensorType::kU8);
  tensors_.append(std::as_bytes(std::span(description)));
  tensors_.end({static_cast<std::int64_t>(description.size())});
  tensors_.finish({{"key", key}, {"sha256", sha256_of(description)}});
  FileDescriptor file = file_.release();
  const std::uint64_t bytes = file_bytes(file.get());
  map_samples(MappedTensors(std::move(file), use_of(bytes), file_.path().string()), data);
}

std::optional<DataArrays> read_cache_file(const std::filesystem::path& path, const std::string& key,
                                          const std::filesystem::path& root) {
  try {
    FileDescriptor file = open_regular_file(path);
    const std::uint64_t bytes = file_bytes(file.get());
    return parse(MappedTensors(std::move(file), use_of(bytes), path.string()), key, root, path.string());
  } catch (const Error&) {
  } catch (const nlohmann::json::exception&) {
  } catch (const std::out_of_range&) {  // metadata that is not there
  }
  return std::nullopt;
}

}  // namespace sweep
