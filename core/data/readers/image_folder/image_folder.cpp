#include <fcntl.h>
#include <stdio.h>  // which jpeglib.h needs
#include <sys/mman.h>

#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/readers/image_folder/image_folder.h"
#include "core/data/readers/images/image_file.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/readers.h"
#include "core/data/readers/safetensors/tensor_file.h"
#include "core/json/json_text.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::ordered_json;

constexpr const char* kNotKept = "the decoded images are not kept for the next start: ";
constexpr const char* kDescription = "description";  // of a file that is kept: the name of its last array

// Goes up whenever the readers of images give other pixels for the same file.
constexpr int kDecoderVersion = 5;

// Adds texts and whole numbers, each with a NUL byte after it, which no name has.
template <typename... Values>
void add(Sha256& digest, const Values&... values) {
  (digest.update(fmt::format("{}{}", values, '\0')), ...);
}

// The name of the file for a folder and the options that change a decoded pixel.
std::string name_of(const fs::path& root, const ReadOptions& options) {
  // However the path is written, and whatever links lead there, it is one folder.
  std::error_code error;
  const fs::path canonical = fs::canonical(root, error);
  const auto resize = options.resize.value_or(std::array<std::int64_t, 2>{});
  Sha256 name;
  add(name, (error ? root : canonical).string(), int{options.grayscale}, resize.front(), resize.back());
  return name.finish();
}

// A digest of all that decides what the file holds.
std::string key_of(const ImageFolder& folder, const fs::path& root, const ReadOptions& options) {
  Sha256 key;
  add(key, kDecoderVersion, LIBJPEG_TURBO_VERSION_NUMBER, image_formats(), name_of(root, options));
  for (const std::string& name : folder.class_names) add(key, name);
  for (const auto& [part, entries] : folder.parts) {
    add(key, kPartNames[part], entries.size());
    for (const ImageEntry& entry : entries) {
      add(key, relative_name(root, entry.path), entry.class_index, entry.stamp.bytes, entry.stamp.modified,
          entry.stamp.changed);
    }
  }
  for (const SkippedFile& file : folder.skipped) add(key, relative_name(root, file.path), file.reason);
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
  return std::ranges::all_of(folder.parts,
                             [&](const auto& part) { return std::ranges::all_of(part.second, is_old); });
}

// The shape of all samples: of options.resize, or of the first image that can be decoded. Throws DataError if
// there is none.
Shape common_shape(const ImageFolder& folder, const ReadOptions& options, const std::string& name) {
  const std::int64_t channels = options.grayscale ? 1 : 3;
  if (options.resize && std::ranges::min(*options.resize) < 1)
    throw ConfigError("resize: height and width must be at least 1");
  if (options.resize) return {channels, options.resize->front(), options.resize->back()};
  std::string first_problem;
  const std::vector<ImageEntry>& entries = folder.parts.at(kTrainPart);
  for (const ImageEntry& entry : entries) {
    try {
      const std::vector<std::uint8_t> bytes = read_bytes(entry.path, kMaxImageBytes);
      const ImageSize size = decode_image(bytes, {options.grayscale, {}}, entry.path.string()).size;
      return {channels, size.height, size.width};
    } catch (const DataError& error) {
      if (first_problem.empty()) first_problem = error.what();
    }
  }
  refuse(name, "none of its {} files can be decoded; the first: {}", entries.size(), first_problem);
}

std::size_t image_count(const ImageFolder& folder) {
  std::size_t count = 0;
  for (const auto& [part, entries] : folder.parts) count += entries.size();
  return count;
}

// Throws unless images of all classes to train on, or of any class for another part, are among the decoded
// ones, which have `labels`.
void check_decoded(DataPart part, std::span<const ImageEntry> entries,
                   const std::vector<std::int32_t>& labels, const DataArrays& data, const fs::path& root) {
  const bool is_train = part == kTrainPart;
  std::vector<bool> is_there(data.class_names.size(), !is_train && !labels.empty());
  for (const std::int32_t index : labels) is_there[static_cast<std::size_t>(index)] = true;
  for (const ImageEntry& entry : entries) {
    const auto index = static_cast<std::size_t>(entry.class_index);
    if (is_there[index]) continue;
    refuse(root, "no image of {} can be decoded; the first: {}: {}",
           is_train ? "class " + quoted_name(data.class_names[index])
                    : fmt::format("the {} part", kPartNames[part]),
           entry.path.string(), std::ranges::find(data.skipped, entry.path, &SkippedFile::path)->reason);
  }
}

// Decodes `folder` to `file`, in pieces of 32 MiB: while one is decoded by all threads, one of them writes
// the last one. The memory needed does not depend on the number of images. Returns all but the arrays.
DataArrays decode_folder(ImageFolder folder, const fs::path& root, const ReadOptions& options,
                         const Shape& shape, TensorWriter& file) {
  constexpr std::size_t kPieceSize = std::size_t{32} << 20;
  const std::size_t sample_bytes = element_count(shape);
  const std::size_t per_piece = std::max<std::size_t>(kPieceSize / sample_bytes, 1);
  Sha256 digest;
  DataArrays data;
  data.class_names = std::move(folder.class_names);
  data.skipped = std::move(folder.skipped);
  for (const auto& [part, listed] : folder.parts) {
    const std::string name = kPartNames[part];
    const std::span<const ImageEntry> entries = listed;
    file.begin("x_" + name, TensorType::kU8);
    std::vector<std::int32_t> classes;
    std::vector<std::uint8_t> piece(std::min(per_piece, entries.size()) * sample_bytes), decoded;
    std::size_t decoded_bytes = 0;
    const auto write = [&] {
      if (decoded_bytes > 0) file.append(std::as_bytes(std::span(decoded).first(decoded_bytes)));
    };
    for (std::size_t first = 0; first < entries.size(); first += per_piece) {
      const auto some = entries.subspan(first, std::min(per_piece, entries.size() - first));
      const std::size_t before = classes.size();
      const std::vector<DecodedFile> files =
          decode_images(some, shape, options.resize.has_value(), options.threads, piece, write);
      for (std::size_t i = 0; i < some.size(); ++i) {
        if (files[i].sha256.empty()) {
          data.skipped.push_back({some[i].path, files[i].problem, files[i].unread});
          continue;
        }
        classes.push_back(some[i].class_index);
        digest.update(fmt::format("{}  {}\n", files[i].sha256, relative_name(root, some[i].path)));
      }
      if (decoded.empty() && first + per_piece < entries.size()) decoded.resize(piece.size());
      std::swap(piece, decoded);
      decoded_bytes = (classes.size() - before) * sample_bytes;
    }
    write();
    file.end({static_cast<std::int64_t>(classes.size()), shape[0], shape[1], shape[2]});
    file.add("y_" + name, std::span<const std::int32_t>(classes));
    check_decoded(part, entries, classes, data, root);
  }
  data.files = {{root, digest.finish()}};
  return data;
}

// Half of the memory: the rest is for the training, and for other programs.
MapUse use_of(std::uint64_t bytes) { return bytes <= usable_memory() / 2 ? MapUse::kWhole : MapUse::kPieces; }

// Maps `file`, called `name`, for the samples and labels of `data`. The samples are then the file's memory,
// which stays until the last of them is gone.
MappedTensors map_arrays(FileDescriptor file, const std::string& name, DataArrays& data) {
  const MapUse use = use_of(file_bytes(file.get(), name));
  MappedTensors tensors(std::move(file), use, name);
  data.mapping = tensors.file();
  for (const std::string part : kPartNames) {
    const TensorEntry* samples = tensors.find("x_" + part);
    if (samples == nullptr) continue;
    const MaybeOwnedArray<std::int32_t> labels = tensors.array<std::int32_t>("y_" + part);
    data.arrays.push_back({samples->name, samples->shape, tensors.array<std::uint8_t>(samples->name)});
    data.arrays.push_back({"y_" + part,
                           {static_cast<std::int64_t>(labels.size())},
                           std::vector<std::int64_t>(labels.begin(), labels.end())});
  }
  return tensors;
}

// Writes the end of a file that is kept for `key`: what else there is to know of it, in JSON. Paths in `data`
// that are below `root` are those of whoever reads the file.
void finish_kept(TensorWriter& file, const std::string& key, const fs::path& root, const DataArrays& data) {
  Json json = {{"class_names", data.class_names}, {"files", Json::array()}, {"skipped", Json::array()}};
  json["files"].push_back({"", data.files.front().sha256});
  for (const SkippedFile& skipped : data.skipped)
    json["skipped"].push_back({relative_name(root, skipped.path), skipped.reason});
  std::string description;
  try {
    description = json.dump();
  } catch (const nlohmann::json::exception&) {
    refuse<IoError>(file.path(), "a file's name is not UTF-8");
  }
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(description.data()), description.size());
  file.add(kDescription, bytes);
  file.finish({{"key", key}, {"sha256", sha256_of(bytes)}});
}

// Maps what was kept, with `root` before the paths. Checks the key, the description and all sizes; does not
// read the samples. Returns nothing if there is no such file, if it was written for another key or by another
// version, or if it is damaged.
std::optional<DataArrays> read_kept(const fs::path& path, const std::string& key, const fs::path& root) {
  try {
    DataArrays data;
    const MappedTensors file = map_arrays(open_regular_file(path), path.string(), data);
    const MaybeOwnedArray<std::uint8_t> bytes = file.array<std::uint8_t>(kDescription);
    if (file.metadata().at("key") != key) return std::nullopt;
    if (file.metadata().at("sha256") != sha256_of({bytes.data(), bytes.size()})) return std::nullopt;
    const Json description =
        parse_json_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
    data.class_names = description.at("class_names").get<std::vector<std::string>>();
    data.files = {{root, description.at("files").at(0).at(1).get<std::string>()}};
    for (const Json& skipped : description.at("skipped"))
      data.skipped.push_back({root / skipped.at(0).get<std::string>(), skipped.at(1).get<std::string>()});
    return data;
  } catch (const Error&) {
  } catch (const nlohmann::json::exception&) {
  } catch (const std::out_of_range&) {  // metadata that is not there
  }
  return std::nullopt;
}

DataArrays decode_to_memory(ImageFolder folder, const fs::path& root, const ReadOptions& options) {
  const Shape shape = common_shape(folder, options, root.string());
  check_memory(image_count(folder), shape, 1, root.string());
  FileDescriptor memory(::memfd_create("decoded images", MFD_CLOEXEC));
  if (memory.get() < 0) refuse<IoError>(root, "cannot get memory: {}", std::strerror(errno));
  TensorWriter file(memory.get(), root);
  DataArrays data = decode_folder(std::move(folder), root, options, shape, file);
  file.finish({});
  map_arrays(std::move(memory), root.string(), data);
  return data;
}

// Takes the room on the disk for samples at once if the file system can.
void reserve(const NewFile& file, std::uint64_t bytes) {
  const auto end = static_cast<off_t>(TensorWriter::kHeaderRoom + bytes);
  const int outcome = retry_interrupted([&] { return ::fallocate(file.fd(), 0, 0, end); });
  // Not all file systems can; and a limit of this process is met only if there is so much to write.
  if (outcome != 0 && errno == ENOSPC)
    refuse<IoError>(file.path(), "cannot write: {}", std::strerror(ENOSPC));
}

// Decodes to `path`, which keeps the file if the folder has not changed meanwhile. Throws IoError if
// that cannot be written.
DataArrays decode_to_file(const ImageFolder& folder, const fs::path& root, const ReadOptions& options,
                          const std::string& key, const fs::path& path) {
  const Shape shape = common_shape(folder, options, root.string());
  make_directories(path.parent_path());
  NewFile file(path);
  // An image has at most 2^26 pixels, and a folder fewer than 2^32 files.
  reserve(file, element_count(shape) * image_count(folder));
  TensorWriter writer(file.fd(), path);
  DataArrays data = decode_folder(folder, root, options, shape, writer);
  finish_kept(writer, key, root, data);
  map_arrays(file.release(), path.string(), data);
  // The next start may be able to read what this one was not.
  if (std::ranges::any_of(data.skipped, &SkippedFile::unread)) return data;
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
  if (std::optional<DataArrays> kept = read_kept(file, key, root)) return std::move(*kept);
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
