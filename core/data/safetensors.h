// The safetensors file format of Hugging Face: named float tensors.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/shape.h"

namespace sweep {

/// A tensor that was read.
struct NamedTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;  // row-major; other types than F32 are converted, as PyTorch does
};

/// The content of a file.
struct TensorFile {
  std::vector<NamedTensor> tensors;             // in the order of the header
  std::map<std::string, std::string> metadata;  // the file's "__metadata__"
};

/// Finds tensors by name. Refers to the tensors of a file, which must outlive it and not change. Reading is
/// thread-safe.
class TensorIndex {
 public:
  explicit TensorIndex(const TensorFile& file) {
    tensors_.reserve(file.tensors.size());
    for (const NamedTensor& tensor : file.tensors) tensors_.emplace(tensor.name, &tensor);
  }

  /// Returns the tensor called `name`, or nullptr.
  const NamedTensor* find(std::string_view name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string_view, const NamedTensor*> tensors_;
};

/// A tensor to be written. Owns nothing.
struct TensorView {
  std::string name;
  Shape shape;
  std::span<const float> values;  // row-major
};

/// A file to be written. Tensors that are adjacent in memory are written with one call.
struct TensorFileView {
  std::vector<TensorView> tensors;
  std::map<std::string, std::string> metadata;
  /// More metadata, whose values are escaped already, see escaped_text(). For long texts that are written
  /// again and again, so that they are escaped only once.
  std::vector<std::pair<std::string, std::string_view>> escaped_metadata = {};
};

/// Returns `text` as a JSON string without the quotes. Throws nlohmann::json::type_error if it is not UTF-8.
std::string escaped_text(const std::string& text);

/// Reads a file. Throws DataError, naming the file and what is wrong, unless it is a well-formed safetensors
/// file. Thread-safe, as the functions below.
TensorFile read_safetensors(const std::filesystem::path& path);

/// Reads the bytes of a file; `name` stands for the file in messages.
TensorFile parse_safetensors(std::string_view content, const std::string& name);

/// Replaces `path` with write_file_atomically(). Values are stored as F32, in the given order. Throws
/// IoError; DataError, naming the tensor, for a name that is used twice, "__metadata__" or not UTF-8, and for
/// a number of values that does not match the shape, and for more metadata than read_safetensors() takes.
void write_safetensors(const std::filesystem::path& path, const TensorFileView& file,
                       Survives survives = Survives::kPowerCut);
void write_safetensors(const std::filesystem::path& path, const TensorFile& file,
                       Survives survives = Survives::kPowerCut);

}  // namespace sweep
