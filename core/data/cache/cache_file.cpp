#include "core/data/cache/cache_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/readers/content_reader.h"
#include "core/data/readers/parallel.h"
#include "core/json/json_text.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;
using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kAlignment = 64, kPageBytes = 4096, kChunkBytes = std::size_t{4} << 20;
constexpr std::uint64_t kMostDescriptionBytes = std::uint64_t{1} << 30;

struct Header {
  char magic[16] = {'s', 'w', 'e', 'e', 'p', ' ', 'd', 'e', 'c', 'o', 'd', 'e', 'd', ' ', '1', '\n'};
  std::uint64_t description_bytes = 0;
  std::uint64_t array_bytes = 0;  // from the first page behind the description
  char description_sha256[64] = {};
  char unused[32] = {};
};
static_assert(sizeof(Header) == 128);

std::size_t aligned(std::size_t offset, std::size_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}
std::size_t first_array(std::uint64_t description_bytes) {
  return aligned(sizeof(Header) + static_cast<std::size_t>(description_bytes), kPageBytes);
}

std::string sha256_of(std::string_view text) {
  Sha256 digest;
  digest.update({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return digest.finish();
}

std::uint32_t crc_of(std::uint32_t crc, Bytes bytes) {
  return static_cast<std::uint32_t>(::crc32_z(crc, bytes.data(), bytes.size()));
}

// CRC-32 of each chunk of `bytes`.
std::vector<std::uint32_t> chunk_crcs(Bytes bytes) {
  std::vector<std::uint32_t> crcs((bytes.size() + kChunkBytes - 1) / kChunkBytes);
  parallel_for(crcs.size(), 0,
               [&](std::size_t i) {
                 const std::size_t begin = i * kChunkBytes;
                 crcs[i] = crc_of(0, bytes.subspan(begin, std::min(kChunkBytes, bytes.size() - begin)));
               },
               {});
  return crcs;
}

// The same of arrays that lie one after the other, each padded with zeros to kAlignment.
std::vector<std::uint32_t> chunk_crcs(const std::vector<std::string_view>& pieces) {
  std::vector<std::uint32_t> crcs;
  std::size_t in_chunk = 0;
  for (std::string_view piece : pieces) {
    while (!piece.empty()) {
      if (in_chunk == 0) crcs.push_back(0);
      const std::size_t count = std::min(piece.size(), kChunkBytes - in_chunk);
      crcs.back() = crc_of(crcs.back(), {reinterpret_cast<const std::uint8_t*>(piece.data()), count});
      in_chunk = (in_chunk + count) % kChunkBytes;
      piece.remove_prefix(count);
    }
  }
  return crcs;
}

std::string_view sample_bytes(const RawPart& part) {
  const auto view = [](const auto& values) {
    return std::string_view(reinterpret_cast<const char*>(values.data()), values.size());
  };
  if (const auto* owned = std::get_if<std::vector<std::uint8_t>>(&part.samples)) return view(*owned);
  return view(std::get<MaybeOwnedArray<std::uint8_t>>(part.samples));
}

struct Mapping {
  Mapping(int fd, std::size_t size) : bytes(size) {
    // The pages are all needed, and asked for in one call.
    data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (data == MAP_FAILED) throw DataError("cannot be mapped");
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(data, bytes); }
  void* data;
  std::size_t bytes;
};

// Throws DataError or an error of JSON for whatever is not as it was written.
RawData parse(const std::shared_ptr<const Mapping>& mapping, const std::string& key,
              const std::string& name) {
  const char* base = static_cast<const char*>(mapping->data);
  Header header;
  std::memcpy(&header, base, sizeof header);
  const std::uint64_t size = header.description_bytes;
  if (std::memcmp(header.magic, Header{}.magic, sizeof header.magic) != 0 || size > kMostDescriptionBytes ||
      first_array(size) > mapping->bytes || header.array_bytes != mapping->bytes - first_array(size))
    throw DataError("no cache file, or cut");
  const std::string_view text(base + sizeof header, static_cast<std::size_t>(size));
  if (sha256_of(text) != std::string_view(header.description_sha256, sizeof header.description_sha256))
    throw DataError("the description is damaged");
  const Json description = parse_json_text(text, name);
  if (description.at("key") != key) throw DataError("another key");
  const Bytes arrays(reinterpret_cast<const std::uint8_t*>(base) + first_array(size),
                     static_cast<std::size_t>(header.array_bytes));
  if (description.at("crcs") != chunk_crcs(arrays)) throw DataError("the samples are damaged");

  RawData data;
  data.shape = description.at("shape").get<Shape>();
  data.class_names = description.at("class_names").get<std::vector<std::string>>();
  std::size_t offset = 0;
  const auto take = [&](std::size_t bytes) {
    if (offset > arrays.size() || bytes > arrays.size() - offset) throw DataError("the sizes are wrong");
    const Bytes taken = arrays.subspan(offset, bytes);
    offset = aligned(offset + bytes, kAlignment);
    return taken;
  };
  for (const Json& json : description.at("parts")) {
    RawPart part;
    part.count = json.at("count").get<std::size_t>();
    part.samples = MaybeOwnedArray<std::uint8_t>(take(part.count * element_count(data.shape)), mapping);
    part.classes.resize(part.count);
    std::memcpy(part.classes.data(), take(part.count * sizeof(std::int32_t)).data(),
                part.count * sizeof(std::int32_t));
    const std::string part_name = json.at("name");
    if (part_name == "train") {
      data.train = std::move(part);
    } else {
      (part_name == "validation" ? data.validation : data.test) = std::move(part);
    }
  }
  for (const Json& file : description.at("files"))
    data.files.push_back({file.at(0).get<std::string>(), file.at(1).get<std::string>()});
  for (const Json& file : description.at("skipped"))
    data.skipped.push_back({file.at(0).get<std::string>(), file.at(1).get<std::string>()});
  check_raw_data(data, name);
  return data;
}

}  // namespace

std::uint64_t write_cache_file(const std::filesystem::path& path, const std::string& key, const RawData& data,
                               std::uint64_t most_bytes) {
  static constexpr char kZeros[kPageBytes] = {};
  std::vector<std::string_view> arrays;
  std::uint64_t array_bytes = 0;
  const auto add = [&](std::string_view bytes) {
    const std::size_t padding = aligned(bytes.size(), kAlignment) - bytes.size();
    arrays.push_back(bytes);
    arrays.emplace_back(kZeros, padding);
    array_bytes += bytes.size() + padding;
  };
  Json parts = Json::array(), files = Json::array(), skipped = Json::array();
  const std::pair<const char*, const RawPart*> all[] = {
      {"train", &data.train},
      {"validation", data.validation ? &*data.validation : nullptr},
      {"test", data.test ? &*data.test : nullptr}};
  for (const auto& [name, part] : all) {
    if (part == nullptr) continue;
    parts.push_back({{"name", name}, {"count", part->count}});
    add(sample_bytes(*part));
    add({reinterpret_cast<const char*>(part->classes.data()), part->classes.size() * sizeof(std::int32_t)});
  }
  if (array_bytes > most_bytes) return array_bytes;
  for (const DataFile& file : data.files) files.push_back(Json::array({file.path.string(), file.sha256}));
  for (const SkippedFile& file : data.skipped)
    skipped.push_back(Json::array({file.path.string(), file.reason}));
  std::string description;
  try {
    description = Json{{"key", key},
                       {"shape", data.shape},
                       {"class_names", data.class_names},
                       {"parts", std::move(parts)},
                       {"files", std::move(files)},
                       {"skipped", std::move(skipped)},
                       {"crcs", chunk_crcs(arrays)}}
                      .dump();
  } catch (const nlohmann::json::exception&) {
    throw IoError(path.string() + ": a file's name is not UTF-8");
  }
  Header header;
  header.description_bytes = description.size();
  header.array_bytes = array_bytes;
  sha256_of(description).copy(header.description_sha256, sizeof header.description_sha256);
  const std::size_t begin = first_array(description.size());
  std::vector<std::string_view> pieces = {{reinterpret_cast<const char*>(&header), sizeof header},
                                          description,
                                          {kZeros, begin - sizeof header - description.size()}};
  pieces.insert(pieces.end(), arrays.begin(), arrays.end());
  // A power cut may leave it damaged, which its checksums tell: it is then made again.
  if (begin + array_bytes <= most_bytes) write_file_atomically(path, pieces, Survives::kKill);
  return begin + array_bytes;
}

std::optional<RawData> read_cache_file(const std::filesystem::path& path, const std::string& key) {
  try {
    const FileDescriptor file = open_regular_file(path);
    struct stat info {};
    if (::fstat(file.get(), &info) != 0 || static_cast<std::size_t>(info.st_size) < sizeof(Header))
      return std::nullopt;
    const auto mapping = std::make_shared<const Mapping>(file.get(), static_cast<std::size_t>(info.st_size));
    return parse(mapping, key, path.string());
  } catch (const Error&) {
  } catch (const nlohmann::json::exception&) {
  }
  return std::nullopt;
}

}  // namespace sweep
