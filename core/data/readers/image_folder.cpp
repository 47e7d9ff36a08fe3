#include "core/data/readers/image_folder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/parallel.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

std::size_t channels_of(const ReadOptions& options) { return options.grayscale ? 1 : 3; }

std::string size_text(ImageSize size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height) + " pixels";
}

std::string digest_of(std::span<const std::uint8_t> bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.finish();
}

// Strips the path from the message: skipped files are listed with their path.
std::string without_name(const std::string& message, const fs::path& path) {
  const std::string start = path.string() + ": ";
  return message.starts_with(start) ? message.substr(start.size()) : message;
}

// The size of all images: that of the first that can be decoded, unless the options say it.
ImageSize common_size(const ImageFolder& folder, const ReadOptions& options, const std::string& name) {
  if (options.resize) return *options.resize;
  std::string first_problem;
  for (const ImageEntry& entry : folder.train) {
    try {
      const std::vector<std::uint8_t> bytes = read_bytes(entry.path, kMostImageBytes);
      return decode_image(bytes, {options.grayscale, {}}, entry.path.string()).size;
    } catch (const DataError& error) {
      if (first_problem.empty()) first_problem = error.what();
    }
  }
  throw DataError(name + ": none of its " + std::to_string(folder.train.size()) +
                  " files can be decoded; the first: " + first_problem);
}

void check_classes(const RawPart& part, const ImageFolder& folder, const std::string& name) {
  std::vector<std::size_t> counts(folder.class_names.size());
  for (const std::int32_t index : part.classes) ++counts[static_cast<std::size_t>(index)];
  const auto empty = std::find(counts.begin(), counts.end(), 0u);
  if (empty == counts.end()) return;
  const std::string& class_name = folder.class_names[static_cast<std::size_t>(empty - counts.begin())];
  const SkippedFile& first = folder.skipped.front();
  throw DataError(name + ": no image of class " + quoted_name(class_name) +
                  " can be decoded; the first file that was skipped: " + first.path.string() + ": " +
                  first.reason);
}

// Decodes one part. Appends to `folder.skipped` and to `digest`.
RawPart decode_part(ImageFolder& folder, const std::vector<ImageEntry>& entries, const ReadOptions& options,
                    ImageSize size, const fs::path& root, Sha256& digest,
                    const std::function<void(std::size_t, std::size_t)>& progress) {
  const std::size_t sample_bytes = channels_of(options) * size.height * size.width;
  std::vector<std::uint8_t> samples(entries.size() * sample_bytes);
  const std::vector<DecodedFile> files = decode_images(entries, options, size, samples, progress);
  RawPart part;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (files[i].other_size) {
      throw DataError(entries[i].path.string() + ": " + files[i].problem +
                      "; give \"resize\": [height, width]");
    }
    if (!files[i].problem.empty()) {
      folder.skipped.push_back({entries[i].path, files[i].problem});
      continue;
    }
    // Closes the gaps that skipped files have left.
    if (part.count < i) {
      std::memcpy(samples.data() + part.count * sample_bytes, samples.data() + i * sample_bytes,
                  sample_bytes);
    }
    part.classes.push_back(entries[i].class_index);
    ++part.count;
    const std::string line =
        files[i].sha256 + "  " + entries[i].path.lexically_relative(root).string() + "\n";
    digest.update(std::span(reinterpret_cast<const std::uint8_t*>(line.data()), line.size()));
  }
  samples.resize(part.count * sample_bytes);
  part.samples = std::move(samples);
  return part;
}

}  // namespace

std::vector<DecodedFile> decode_images(std::span<const ImageEntry> entries, const ReadOptions& options,
                                       ImageSize size, std::span<std::uint8_t> out,
                                       const std::function<void(std::size_t, std::size_t)>& progress) {
  const std::size_t sample_bytes = channels_of(options) * size.height * size.width;
  std::vector<DecodedFile> files(entries.size());
  const auto decode = [&](std::size_t i) {
    const fs::path& path = entries[i].path;
    try {
      const std::vector<std::uint8_t> bytes = read_bytes(path, kMostImageBytes);
      const Image image = decode_image(bytes, {options.grayscale, options.resize}, path.string());
      if (image.size != size) {
        files[i].problem = "has " + size_text(image.size) + ", others have " + size_text(size);
        files[i].other_size = true;
        return;
      }
      std::copy(image.pixels.begin(), image.pixels.end(),
                out.begin() + static_cast<std::ptrdiff_t>(i * sample_bytes));
      files[i].sha256 = digest_of(bytes);
    } catch (const DataError& error) {
      files[i].problem = without_name(error.what(), path);
    }
  };
  parallel_for(entries.size(), options.threads, decode, progress);
  return files;
}

RawData read_image_folder(std::span<const fs::path> paths, const ReadOptions& options) {
  if (paths.size() != 1)
    throw DataError("image_folder: expected one folder, found " + std::to_string(paths.size()));
  return decode_image_folder(scan_image_folder(paths.front()), paths.front(), options);
}

RawData decode_image_folder(ImageFolder folder, const fs::path& root, const ReadOptions& options) {
  const std::string name = root.string();
  if (options.resize && (options.resize->height == 0 || options.resize->width == 0)) {
    throw ConfigError("resize: height and width must be at least 1");
  }
  const ImageSize size = common_size(folder, options, name);
  const std::vector<ImageEntry>* parts[] = {&folder.train, folder.validation ? &*folder.validation : nullptr,
                                            folder.test ? &*folder.test : nullptr};
  std::size_t total = 0;
  for (const auto* entries : parts) total += entries != nullptr ? entries->size() : 0;
  RawData data;
  data.shape = {static_cast<std::int64_t>(channels_of(options)), size.height, size.width};
  check_memory(options, total, data.shape, 1, name);

  std::size_t done_before = 0;
  const auto progress = [&](std::size_t done, std::size_t) {
    if (options.progress) options.progress(done_before + done, total);
  };
  Sha256 digest;
  const auto decode = [&](const std::vector<ImageEntry>& entries) {
    RawPart part = decode_part(folder, entries, options, size, root, digest, progress);
    done_before += entries.size();
    return part;
  };
  data.train = decode(folder.train);
  check_classes(data.train, folder, name);
  if (folder.validation) data.validation = decode(*folder.validation);
  if (folder.test) data.test = decode(*folder.test);
  data.class_names = std::move(folder.class_names);
  data.skipped = std::move(folder.skipped);
  data.files = {{root, digest.finish()}};
  check_raw_data(data, name);
  return data;
}

}  // namespace sweep
