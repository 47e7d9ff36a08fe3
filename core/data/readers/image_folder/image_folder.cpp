#include "core/data/readers/image_folder/image_folder.h"

#include <fcntl.h>
#include <stdio.h>  // which jpeglib.h needs
#include <sys/mman.h>

#include <jpeglib.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/retry.h"
#include "core/data/readers/image_folder/decode_images.h"
#include "core/data/readers/image_folder/kept_samples.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/sha256.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNotKept = "the decoded images are not kept for the next start: ";

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

// The name of the file for a folder and the options that change a decoded pixel.
std::string name_of(const fs::path& root, const ReadOptions& options) {
  KeyDigest name;
  // However the path is written, and whatever links lead there, it is one folder.
  std::error_code error;
  const fs::path canonical = fs::canonical(root, error);
  name.add((error ? root : canonical).string());
  name.add_number(options.grayscale).add_number(options.resize ? options.resize->height : 0);
  return name.add_number(options.resize ? options.resize->width : 0).finish();
}

// A digest of all that decides what the file holds.
std::string key_of(const ImageFolder& folder, const fs::path& root, const ReadOptions& options) {
  KeyDigest key;
  key.add_number(kDecoderVersion).add_number(LIBJPEG_TURBO_VERSION_NUMBER).add(name_of(root, options));
  for (const std::string& name : folder.class_names) key.add(name);
  for (const ImagePart& part : folder.parts) {
    key.add(part.name).add_number(part.entries.size());
    for (const ImageEntry& entry : part.entries) {
      key.add(relative_name(root, entry.path)).add_number(entry.class_index).add_number(entry.stamp.bytes);
      key.add_number(entry.stamp.modified).add_number(entry.stamp.changed);
    }
  }
  for (const SkippedFile& file : folder.skipped) key.add(relative_name(root, file.path)).add(file.reason);
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
  return std::ranges::all_of(
      folder.parts, [&](const ImagePart& part) { return std::ranges::all_of(part.entries, is_old); });
}

DataArrays decode_to_memory(ImageFolder folder, const fs::path& root, const ReadOptions& options) {
  const Shape shape = common_shape(folder, options, root.string());
  check_memory(image_count(folder), shape, 1, root.string());
  FileDescriptor memory(::memfd_create("decoded images", MFD_CLOEXEC));
  if (memory.get() < 0) throw IoError(root.string() + ": cannot get memory: " + std::strerror(errno));
  TensorWriter samples(memory.get(), root);
  DataArrays data = decode_image_folder(std::move(folder), root, options, shape, samples);
  samples.finish({});
  map_samples(std::move(memory), root.string(), data);
  return data;
}

// Takes the room on the disk for samples at once if the file system can.
void reserve(const NewFile& file, std::uint64_t bytes) {
  const auto end = static_cast<off_t>(TensorWriter::kHeaderRoom + bytes);
  const int outcome = retry_interrupted([&] { return ::fallocate(file.fd(), 0, 0, end); });
  // Not all file systems can; and a limit of this process is met only if there is so much to write.
  if (outcome != 0 && errno == ENOSPC)
    throw IoError(file.path().string() + ": cannot write: " + std::strerror(ENOSPC));
}

// Decodes to `path`, which keeps the file if the folder has not changed meanwhile. Throws IoError if
// that cannot be written.
DataArrays decode_to_file(const ImageFolder& folder, const fs::path& root, const ReadOptions& options,
                          const std::string& key, const fs::path& path) {
  const Shape shape = common_shape(folder, options, root.string());
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) throw IoError(path.parent_path().string() + ": cannot create: " + error.message());
  NewFile file(path);
  // An image has at most 2^26 pixels, and a folder fewer than 2^32 files.
  reserve(file, element_count(shape) * image_count(folder));
  TensorWriter samples(file.fd(), path);
  DataArrays data = decode_image_folder(folder, root, options, shape, samples);
  finish_kept_samples(samples, key, root, data);
  map_samples(file.release(), path.string(), data);
  // A file that was written meanwhile may have been decoded before or after that.
  const ImageFolder now = scan_image_folder(root);
  if (!is_settled(now) || key_of(now, root, options) != key) return data;
  try {
    file.publish();
  } catch (const IoError& failure) {
    data.notes.push_back(kNotKept + std::string(failure.what()));
  }
  return data;
}

}  // namespace

DataArrays read_image_folder(std::span<const fs::path> paths, const ReadOptions& options) {
  const fs::path& root = only_path(paths, "image_folder");
  ImageFolder folder = scan_image_folder(root);
  if (options.cache.empty()) return decode_to_memory(std::move(folder), root, options);
  const std::string key = key_of(folder, root, options);
  const fs::path file = options.cache / (name_of(root, options) + ".samples");
  if (std::optional<DataArrays> kept = read_kept_samples(file, key, root)) return std::move(*kept);
  std::string problem;
  try {
    return decode_to_file(folder, root, options, key, file);
  } catch (const IoError& failure) {
    problem = failure.what();
  }
  try {
    DataArrays data = decode_to_memory(std::move(folder), root, options);
    data.notes.push_back(kNotKept + problem);
    return data;
  } catch (const DataError& failure) {  // too large for memory, most likely
    throw DataError(std::string(failure.what()) + "; " + kNotKept + problem);
  }
}

}  // namespace sweep
