#include "core/data/readers/image_folder/decode_images.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/parallel.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

ImageSize image_size(const Shape& shape) {
  return {static_cast<std::uint32_t>(shape[1]), static_cast<std::uint32_t>(shape[2])};
}

std::string size_text(ImageSize size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height) + " pixels";
}

void check_classes(const NamedArray& labels, const ImageFolder& folder, const std::string& name) {
  std::vector<std::size_t> counts(folder.class_names.size());
  for (const std::int64_t index : std::get<std::vector<std::int64_t>>(labels.values))
    ++counts[static_cast<std::size_t>(index)];
  const auto empty = std::find(counts.begin(), counts.end(), 0u);
  if (empty == counts.end()) return;
  const std::string& class_name = folder.class_names[static_cast<std::size_t>(empty - counts.begin())];
  const SkippedFile& first = folder.skipped.front();
  throw DataError(name + ": no image of class " + quoted_name(class_name) +
                  " can be decoded; the first file that was skipped: " + first.path.string() + ": " +
                  first.reason);
}

class FolderDecoder {
 public:
  FolderDecoder(ImageFolder& folder, const fs::path& root, const ReadOptions& options, const Shape& shape,
                TensorWriter& samples)
      : folder_(folder),
        root_(root),
        options_(options),
        shape_(shape),
        sample_bytes_(element_count(shape)),
        samples_(samples) {}

  // Adds the samples and the labels of a part to `arrays`.
  void decode(const ImagePart& part, std::vector<NamedArray>& arrays) {
    const std::span<const ImageEntry> entries = part.entries;
    const std::size_t per_piece = std::max<std::size_t>(kPieceBytes / sample_bytes_, 1);
    samples_.begin("x_" + part.name, TensorType::kU8);
    std::vector<std::int64_t> classes;
    std::vector<std::uint8_t> piece(std::min(per_piece, entries.size()) * sample_bytes_), decoded;
    std::size_t decoded_bytes = 0;
    const auto write = [&] {
      if (decoded_bytes > 0) samples_.append(std::as_bytes(std::span(decoded).first(decoded_bytes)));
    };
    for (std::size_t first = 0; first < entries.size(); first += per_piece) {
      const auto some = entries.subspan(first, std::min(per_piece, entries.size() - first));
      const std::size_t before = classes.size();
      list(some, decode_images(some, options_, image_size(shape_), piece, write), classes);
      if (decoded.empty() && first + per_piece < entries.size()) decoded.resize(piece.size());
      std::swap(piece, decoded);
      decoded_bytes = (classes.size() - before) * sample_bytes_;
    }
    write();
    const auto count = static_cast<std::int64_t>(classes.size());
    const Shape shape = {count, shape_[0], shape_[1], shape_[2]};
    samples_.end(shape);
    arrays.push_back({"x_" + part.name, shape, {}});
    arrays.push_back({"y_" + part.name, {count}, std::move(classes)});
  }

  std::string digest() { return digest_.finish(); }

 private:
  static constexpr std::size_t kPieceBytes = std::size_t{32} << 20;

  // Adds the classes of the files that were decoded; the others are skipped.
  void list(std::span<const ImageEntry> entries, const std::vector<DecodedFile>& files,
            std::vector<std::int64_t>& classes) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (files[i].other_size) {
        throw DataError(entries[i].path.string() + ": " + files[i].problem +
                        "; give \"resize\": [height, width]");
      }
      if (!files[i].problem.empty()) {
        folder_.skipped.push_back({entries[i].path, files[i].problem});
        continue;
      }
      classes.push_back(entries[i].class_index);
      const std::string line = files[i].sha256 + "  " + relative_name(root_, entries[i].path) + "\n";
      digest_.update(std::span(reinterpret_cast<const std::uint8_t*>(line.data()), line.size()));
    }
  }

  ImageFolder& folder_;
  const fs::path& root_;
  const ReadOptions& options_;
  const Shape& shape_;
  const std::size_t sample_bytes_;
  TensorWriter& samples_;
  Sha256 digest_;
};

}  // namespace

Shape common_shape(const ImageFolder& folder, const ReadOptions& options, const std::string& name) {
  const auto shape = [&](ImageSize size) {
    return Shape{options.grayscale ? 1 : 3, size.height, size.width};
  };
  if (options.resize && (options.resize->height == 0 || options.resize->width == 0))
    throw ConfigError("resize: height and width must be at least 1");
  if (options.resize) return shape(*options.resize);
  std::string first_problem;
  const std::vector<ImageEntry>& entries = folder.parts.front().entries;
  for (const ImageEntry& entry : entries) {
    try {
      const std::vector<std::uint8_t> bytes = read_bytes(entry.path, kMaxImageBytes);
      return shape(decode_image(bytes, {options.grayscale, {}}, entry.path.string()).size);
    } catch (const DataError& error) {
      if (first_problem.empty()) first_problem = error.what();
    }
  }
  throw DataError(name + ": none of its " + std::to_string(entries.size()) +
                  " files can be decoded; the first: " + first_problem);
}

std::size_t image_count(const ImageFolder& folder) {
  std::size_t count = 0;
  for (const ImagePart& part : folder.parts) count += part.entries.size();
  return count;
}

std::vector<DecodedFile> decode_images(std::span<const ImageEntry> entries, const ReadOptions& options,
                                       ImageSize size, std::span<std::uint8_t> out,
                                       const std::function<void()>& meanwhile) {
  const std::size_t sample_bytes = (options.grayscale ? 1u : 3u) * std::size_t{size.height} * size.width;
  if (out.size() < entries.size() * sample_bytes) throw std::logic_error("no room for the decoded images");
  std::vector<DecodedFile> files(entries.size());
  const auto decode = [&](std::size_t i) {
    const fs::path& path = entries[i].path;
    try {
      const std::vector<std::uint8_t> bytes = read_bytes(path, kMaxImageBytes);
      const Image image = decode_image(bytes, {options.grayscale, options.resize}, path.string());
      if (image.size != size) {
        files[i].problem = "has " + size_text(image.size) + ", others have " + size_text(size);
        files[i].other_size = true;
        return;
      }
      std::copy(image.pixels.begin(), image.pixels.end(),
                out.begin() + static_cast<std::ptrdiff_t>(i * sample_bytes));
      files[i].sha256 = sha256_of(bytes);
    } catch (const DataError& error) {
      files[i].problem = without_path(error.what(), path);
    }
  };
  // Call 0 is `meanwhile`.
  parallel_for(entries.size() + 1, options.threads, [&](std::size_t i) {
    if (i > 0)
      decode(i - 1);
    else if (meanwhile)
      meanwhile();
  });
  std::size_t count = 0;  // that have a place
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!files[i].problem.empty()) continue;
    if (count < i) std::memcpy(&out[count * sample_bytes], &out[i * sample_bytes], sample_bytes);
    ++count;
  }
  return files;
}

DataArrays decode_image_folder(ImageFolder folder, const fs::path& root, const ReadOptions& options,
                               const Shape& shape, TensorWriter& samples) {
  DataArrays data;
  FolderDecoder decoder(folder, root, options, shape, samples);
  for (const ImagePart& part : folder.parts) {
    decoder.decode(part, data.arrays);
    if (&part == &folder.parts.front()) check_classes(data.arrays.back(), folder, root.string());
  }
  data.class_names = std::move(folder.class_names);
  data.skipped = std::move(folder.skipped);
  data.files = {{root, decoder.digest()}};
  return data;
}

}  // namespace sweep
