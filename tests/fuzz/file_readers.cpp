#include "tests/fuzz/file_readers.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/data/data_from_arrays.h"
#include "core/data/readers/images/image_file.h"
#include "core/data/readers/readers.h"
#include "core/data/safetensors.h"
#include "tests/support/memory_file.h"

namespace sweep::test {
namespace {

void check(const NamedArray& array) {
  const auto count = std::visit([](const auto& values) { return values.size(); }, array.values);
  require(count > 0 && count == element_count(array.shape));
}

// Throws DataError for arrays that make no data set.
Dataset data_set(std::vector<NamedArray> arrays, const DatasetSpec& spec = {}) {
  for (const NamedArray& array : arrays)
    if (array.problem.empty()) check(array);
  return data_from_arrays({std::move(arrays)}, spec, "FILE");
}

// Whether option `bit` is on. There may be no byte at all.
bool has_option(std::string_view bytes, int bit) { return !bytes.empty() && (bytes[0] & bit) != 0; }
std::string_view content(std::string_view bytes) {
  return bytes.substr(std::min<std::size_t>(bytes.size(), 1));
}

void read_cifar_bytes(std::string_view bytes) {
  const bool fine = has_option(bytes, 1);
  NamedArray samples{"x", {0, 3, 32, 32}, std::vector<std::uint8_t>()};
  NamedArray labels{"y", {0}, std::vector<std::int64_t>()};
  InputFile file = input_file(content(bytes));
  read_cifar_file(file, fine ? kCifar100 : kCifar10, samples, labels);
  try {
    data_from_arrays({{samples, labels}, std::vector<std::string>(fine ? 100 : 10, "c")}, {}, "FILE");
  } catch (const DataError& error) {
    throw std::logic_error(error.what());
  }
}

void read_csv_bytes(std::string_view bytes) {
  ReadOptions options;
  if (has_option(bytes, 1)) options.missing = MissingValues::kMean;
  if (has_option(bytes, 2)) options.categories = Categories::kOrdinal;
  InputFile file = input_file(content(bytes));
  DataArrays data = read_csv_file(file, options);
  const Dataset table = data_from_arrays(std::move(data), {.missing = options.missing}, "FILE");
  require(table.feature_names.size() == element_count(table.shape));
}

void read_idx_bytes(std::string_view bytes) {
  const std::size_t dimensions = has_option(bytes, 1) ? 1 : 3;
  InputFile file = input_file(content(bytes));
  const NamedArray array = read_idx(file, dimensions);
  check(array);
  require(array.shape.size() == dimensions && array.values.index() == 0);
}

void read_image_bytes(std::string_view bytes) {
  ImageOptions options{.grayscale = has_option(bytes, 1)};
  if (has_option(bytes, 2)) options.resize = ImageSize{7, 5};
  const std::string_view file = content(bytes);
  const Image image =
      decode_image({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, options, "FILE");
  require(image.channels == (options.grayscale ? 1 : 3) &&
          (!options.resize || image.size == *options.resize));
  require(!image.pixels.empty() &&
          image.pixels.size() == image.channels * image.size.height * image.size.width);
}

void read_npy_bytes(std::string_view bytes) {
  InputFile file = input_file(bytes);
  check(read_npy(source_of(file)));
}

void read_npz_bytes(std::string_view bytes) {
  const MemoryFile file(bytes);
  const std::filesystem::path path = file.path();
  try {
    data_set(read_npz(std::span(&path, 1), {}).arrays);
  } catch (const DataError& error) {
    const std::string message = error.what();
    throw DataError(message.starts_with(path.string()) ? "FILE" + message.substr(path.string().size())
                                                       : message);
  }
}

void read_tensor_bytes(std::string_view bytes) {
  InputFile file = input_file(bytes);
  data_set(read_safetensors_arrays(file));
}

void read_weight_bytes(std::string_view bytes) {
  const TensorFile file = parse_safetensors(bytes, "FILE");
  const TensorIndex index(file);
  for (const NamedTensor& tensor : file.tensors)
    require(tensor.values.size() == element_count(tensor.shape) && index.find(tensor.name) == &tensor);
}

constexpr FileReader kReaders[] = {{"cifar", true, read_cifar_bytes},
                                   {"csv", true, read_csv_bytes},
                                   {"idx", true, read_idx_bytes},
                                   {"image", true, read_image_bytes},
                                   {"npy", false, read_npy_bytes},
                                   {"npz", false, read_npz_bytes},
                                   {"safetensors", false, read_weight_bytes},
                                   {"safetensors_data", false, read_tensor_bytes}};

}  // namespace

std::span<const FileReader> file_readers() { return kReaders; }

}  // namespace sweep::test
