// The safetensors file format: named float arrays, as Hugging Face defines it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/shape.h"

namespace sweep {

struct NamedTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;  // row-major; F64, F16 and BF16 files are converted
};

struct TensorFile {
  std::vector<NamedTensor> tensors;             // in the order of the file
  std::map<std::string, std::string> metadata;  // the file's "__metadata__"

  /// Returns the tensor called `name`, or nullptr.
  const NamedTensor* find(std::string_view name) const;
};

/// Throws DataError, naming the file and what is wrong, unless it is a well-formed safetensors file.
TensorFile read_safetensors(const std::filesystem::path& path);

/// Replaces `path` atomically; values are stored as F32, in the order given. Throws IoError.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);

}  // namespace sweep
