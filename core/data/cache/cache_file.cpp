#include "core/data/cache/cache_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/base/retry.h"
#include "core/data/readers/content_reader.h"
#include "core/json/json_text.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;
using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kAlignment = 64, kFirstArray = 4096;
constexpr std::uint64_t kMostDescriptionBytes = std::uint64_t{1} << 30;

struct Header {
  char magic[16] = {'s', 'w', 'e', 'e', 'p', ' ', 'd', 'e', 'c', 'o', 'd', 'e', 'd', ' ', '3', '\n'};
  std::uint64_t array_bytes = 0;
  std::uint64_t description_bytes = 0;  // to the end of the file
  char description_sha256[64] = {};
  char unused[32] = {};
};
static_assert(sizeof(Header) == 128);

std::size_t aligned(std::size_t offset, std::size_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

std::string sha256_of(std::string_view text) {
  Sha256 digest;
  digest.update(bytes_of(text));
  return digest.finish();
}

// Half of the memory: the rest is for the training, and for other programs.
MapUse use_of(std::uint64_t bytes) { return bytes <= usable_memory() / 2 ? MapUse::kWhole : MapUse::kPieces; }

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

struct NamedPart {
  const char* name;
  RawPart* part;
};

std::vector<NamedPart> parts_of(RawData& data) {
  std::vector<NamedPart> parts = {{"train", &data.train}};
  if (data.validation) parts.push_back({"validation", &*data.validation});
  if (data.test) parts.push_back({"test", &*data.test});
  return parts;
}

MaybeOwnedArray<std::uint8_t> samples_of(const std::shared_ptr<const MappedFile>& file, std::uint64_t begin,
                                         const RawPart& part, const RawData& data) {
  const std::size_t bytes = part.count * element_count(data.shape);
  const Bytes arrays = file->bytes().subspan(kFirstArray);
  if (begin > arrays.size() || bytes > arrays.size() - begin) throw DataError("the sizes are wrong");
  return {arrays.subspan(static_cast<std::size_t>(begin), bytes), file};
}

// Throws DataError or an error of JSON for whatever is not as it was written.
RawData parse(const std::shared_ptr<const MappedFile>& file, const std::string& key,
              const std::filesystem::path& root, const std::string& name) {
  const Bytes all = file->bytes();
  Header header;
  if (all.size() < kFirstArray) throw DataError("cut");
  std::memcpy(&header, all.data(), sizeof header);
  const std::uint64_t rest = all.size() - kFirstArray;
  if (std::memcmp(header.magic, Header{}.magic, sizeof header.magic) != 0 ||
      header.description_bytes > kMostDescriptionBytes || header.array_bytes > rest ||
      header.description_bytes != rest - header.array_bytes)
    throw DataError("no cache file, or cut");
  const Bytes arrays = all.subspan(kFirstArray, static_cast<std::size_t>(header.array_bytes));
  const std::string_view text(reinterpret_cast<const char*>(arrays.data() + arrays.size()),
                              static_cast<std::size_t>(header.description_bytes));
  if (sha256_of(text) != std::string_view(header.description_sha256, sizeof header.description_sha256))
    throw DataError("the description is damaged");
  const Json description = parse_json_text(text, name);
  if (description.at("key") != key) throw DataError("another key");

  RawData data;
  data.mapping = file;
  data.shape = description.at("shape").get<Shape>();
  data.class_names = description.at("class_names").get<std::vector<std::string>>();
  for (const Json& json : description.at("parts")) {
    RawPart part;
    part.count = json.at("count").get<std::size_t>();
    part.samples = samples_of(file, json.at("samples").get<std::uint64_t>(), part, data);
    const auto begin = json.at("classes").get<std::size_t>();
    if (begin > arrays.size() || part.count > (arrays.size() - begin) / sizeof(std::int32_t))
      throw DataError("the sizes are wrong");
    part.classes.resize(part.count);
    std::memcpy(part.classes.data(), arrays.data() + begin, part.count * sizeof(std::int32_t));
    const std::string part_name = json.at("name");
    if (part_name == "train") {
      data.train = std::move(part);
    } else {
      (part_name == "validation" ? data.validation : data.test) = std::move(part);
    }
  }
  for (const Json& json : description.at("files"))
    data.files.push_back({path_of(root, json), json.at(2).get<std::string>()});
  for (const Json& json : description.at("skipped"))
    data.skipped.push_back({path_of(root, json), json.at(2).get<std::string>()});
  check_raw_data(data, name);
  return data;
}

}  // namespace

CacheFileWriter::CacheFileWriter(const std::filesystem::path& path, std::uint64_t most_bytes) : file_(path) {
  const auto bytes = static_cast<off_t>(kFirstArray + most_bytes);
  const int outcome = retry_interrupted([&] { return ::fallocate(file_.fd(), 0, 0, bytes); });
  // Not all file systems can; and a limit of this process is met only if there is so much to write.
  if (outcome != 0 && errno == ENOSPC)
    throw IoError(path.string() + ": cannot write: " + std::strerror(ENOSPC));
  if (::lseek(file_.fd(), kFirstArray, SEEK_SET) < 0)
    throw IoError(path.string() + ": cannot write: " + std::strerror(errno));
}

void CacheFileWriter::write(std::span<const std::uint8_t> bytes) {
  write_all(file_.fd(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file_.path());
  written_ += bytes.size();
}

void CacheFileWriter::align(std::size_t alignment) {
  static constexpr std::uint8_t kZeros[kAlignment] = {};
  write(std::span(kZeros).first(aligned(static_cast<std::size_t>(written_), alignment) -
                                static_cast<std::size_t>(written_)));
}

void CacheFileWriter::begin_part(std::size_t /*most_bytes*/) {
  align(kAlignment);
  begins_.push_back(written_);
}

void CacheFileWriter::append(std::span<const std::uint8_t> bytes) { write(bytes); }

SampleValues CacheFileWriter::end_part() { return {}; }

void CacheFileWriter::finish(const std::string& key, const std::filesystem::path& root, RawData& data) {
  const std::vector<NamedPart> parts = parts_of(data);
  Json descriptions = Json::array(), files = Json::array(), skipped = Json::array();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    align(kAlignment);
    descriptions.push_back({{"name", parts[i].name},
                            {"count", parts[i].part->count},
                            {"samples", begins_.at(i)},
                            {"classes", written_}});
    write(bytes_of(parts[i].part->classes));
  }
  for (const DataFile& file : data.files) files.push_back(path_json(root, file.path, file.sha256));
  for (const SkippedFile& file : data.skipped) skipped.push_back(path_json(root, file.path, file.reason));
  std::string description;
  try {
    description = Json{{"key", key},
                       {"shape", data.shape},
                       {"class_names", data.class_names},
                       {"parts", std::move(descriptions)},
                       {"files", std::move(files)},
                       {"skipped", std::move(skipped)}}
                      .dump();
  } catch (const nlohmann::json::exception&) {
    throw IoError(file_.path().string() + ": a file's name is not UTF-8");
  }
  Header header;
  header.array_bytes = written_;
  header.description_bytes = description.size();
  sha256_of(description).copy(header.description_sha256, sizeof header.description_sha256);
  write_all(file_.fd(), description, file_.path());
  const auto end = static_cast<off_t>(kFirstArray + written_ + description.size());
  if (retry_interrupted([&] { return ::ftruncate(file_.fd(), end); }) != 0 ||
      ::lseek(file_.fd(), 0, SEEK_SET) < 0)
    throw IoError(file_.path().string() + ": cannot write: " + std::strerror(errno));
  write_all(file_.fd(), {reinterpret_cast<const char*>(&header), sizeof header}, file_.path());
  data.mapping = std::make_shared<const MappedFile>(file_.release(), use_of(static_cast<std::uint64_t>(end)));
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i].part->samples = samples_of(data.mapping, begins_[i], *parts[i].part, data);
}

std::optional<RawData> read_cache_file(const std::filesystem::path& path, const std::string& key,
                                       const std::filesystem::path& root) {
  try {
    FileDescriptor file = open_regular_file(path);
    std::error_code error;
    const std::uint64_t bytes = std::filesystem::file_size(path, error);
    return parse(std::make_shared<const MappedFile>(std::move(file), error ? MapUse::kPieces : use_of(bytes)),
                 key, root, path.string());
  } catch (const Error&) {
  } catch (const nlohmann::json::exception&) {
  }
  return std::nullopt;
}

}  // namespace sweep
