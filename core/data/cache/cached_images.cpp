#include "core/data/cache/cached_images.h"

#include <stdio.h>  // which jpeglib.h needs

#include <jpeglib.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "core/base/error.h"
#include "core/data/cache/cache_file.h"
#include "core/data/readers/content_reader.h"
#include "core/data/readers/image_folder.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// Goes up whenever the readers of images give other pixels for the same file.
constexpr int kDecoderVersion = 1;

class KeyDigest {
 public:
  // Each value ends with a NUL byte, which no name has.
  KeyDigest& add(const std::string& text) {
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.c_str()), text.size() + 1);
    digest_.update(bytes);
    return *this;
  }
  template <typename Integer>
  KeyDigest& add_number(Integer value) {
    return add(std::to_string(value));
  }
  std::string finish() { return digest_.finish(); }

 private:
  Sha256 digest_;
};

std::string key_of(const ImageFolder& folder, const fs::path& root, const ReadOptions& options) {
  KeyDigest key;
  key.add_number(kDecoderVersion).add_number(LIBJPEG_TURBO_VERSION_NUMBER).add(root.string());
  std::error_code error;
  key.add(fs::weakly_canonical(root, error).string());
  key.add_number(options.grayscale).add_number(options.resize ? options.resize->height : 0);
  key.add_number(options.resize ? options.resize->width : 0);
  for (const std::string& name : folder.class_names) key.add(name);
  const auto add_part = [&](const std::vector<ImageEntry>& entries) {
    key.add_number(entries.size());
    for (const ImageEntry& entry : entries) {
      key.add(entry.path.string()).add_number(entry.class_index).add_number(entry.stamp.bytes);
      key.add_number(entry.stamp.modified).add_number(entry.stamp.changed);
    }
  };
  add_part(folder.train);
  add_part(folder.validation.value_or(std::vector<ImageEntry>()));
  add_part(folder.test.value_or(std::vector<ImageEntry>()));
  for (const SkippedFile& file : folder.skipped) key.add(file.path.string()).add(file.reason);
  return key.finish();
}

// Whether a file that is written from now on would get another stamp than any of the folder.
bool is_settled(const ImageFolder& folder) {
  constexpr std::int64_t kSecond = 1'000'000'000, kTick = 50'000'000;
  const std::int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  const auto is_old = [&](const ImageEntry& entry) {
    // A file system that counts in seconds has no fractions of them.
    const std::int64_t step = entry.stamp.changed % kSecond == 0 ? 2 * kSecond + kTick : kTick;
    return entry.stamp.changed < now - step;
  };
  const auto is_part_old = [&](const std::vector<ImageEntry>& entries) {
    return std::ranges::all_of(entries, is_old);
  };
  return is_part_old(folder.train) && (!folder.validation || is_part_old(*folder.validation)) &&
         (!folder.test || is_part_old(*folder.test));
}

void keep(const CacheFolder& cache, const fs::path& file, const std::string& key, RawData& data) {
  const auto note = [&](const std::string& reason) {
    data.notes.push_back("the decoded images are not kept for the next start: " + reason);
  };
  std::error_code error;
  fs::create_directories(cache.path, error);
  if (error) return note(cache.path.string() + ": cannot create: " + error.message());
  try {
    std::uint64_t bytes = 0;
    for (const RawPart* part :
         {&data.train, data.validation ? &*data.validation : nullptr, data.test ? &*data.test : nullptr})
      if (part != nullptr) bytes += part->count * element_count(data.shape);
    if (bytes <= cache.most_bytes) make_room(cache, bytes);
    bytes = write_cache_file(file, key, data, cache.most_bytes);
    if (bytes > cache.most_bytes) {
      note("they have " + std::to_string(bytes) + " bytes, and SWEEP_CACHE_SIZE allows " +
           std::to_string(cache.most_bytes));
    }
  } catch (const IoError& failure) {
    note(failure.what());
  }
}

}  // namespace

RawData read_cached_image_folder(std::span<const fs::path> paths, const ReadOptions& options,
                                 const CacheFolder& cache) {
  if (cache.path.empty() || cache.most_bytes == 0 || paths.size() != 1)
    return read_image_folder(paths, options);
  const fs::path& root = paths.front();
  ImageFolder folder = scan_image_folder(root);
  const std::string key = key_of(folder, root, options);
  const fs::path file = cache.path / (key + ".samples");
  if (std::optional<RawData> kept = read_cache_file(file, key)) {
    mark_used(file);
    return std::move(*kept);
  }
  RawData data = decode_image_folder(std::move(folder), root, options);
  // A file that was written meanwhile may have been decoded before or after that.
  const ImageFolder now = scan_image_folder(root);
  if (is_settled(now) && key_of(now, root, options) == key) keep(cache, file, key, data);
  return data;
}

}  // namespace sweep
