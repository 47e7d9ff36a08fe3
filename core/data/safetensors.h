// The safetensors file format: named float arrays, as Hugging Face defines it.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/shape.h"

namespace sweep {

struct NamedTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;  // row-major; F64, F16, BF16 and I64 are converted
};

struct TensorFile {
  std::vector<NamedTensor> tensors;             // in the order of the file
  std::map<std::string, std::string> metadata;  // the file's "__metadata__"

  /// Returns the tensor called `name`, or nullptr.
  const NamedTensor* find(std::string_view name) const;
};

/// A tensor whose values are kept elsewhere, for writing.
struct TensorView {
  std::string name;
  Shape shape;
  std::span<const float> values;  // row-major
};

/// A file to be written. Tensors whose values follow each other in memory are written in one piece.
struct TensorFileView {
  std::vector<TensorView> tensors;
  std::map<std::string, std::string> metadata;
  /// More metadata: each value stands in JSON already, without its quotes. For long texts that stay or grow,
  /// which need not be escaped for each file.
  std::vector<std::pair<std::string, std::string_view>> escaped_metadata = {};
};

/// `text` as it stands in JSON, between the quotes. Throws nlohmann::json::type_error if it is not UTF-8.
std::string escaped_text(const std::string& text);

/// Throws DataError, naming the file and what is wrong, unless it is a well-formed safetensors file of
/// floats.
TensorFile read_safetensors(const std::filesystem::path& path);

/// The same from the bytes of a file; `name` stands for the file in messages.
TensorFile parse_safetensors(std::string_view content, const std::string& name);

/// Replaces `path` atomically, as write_file_atomically() does; values are stored as F32, in the order given.
/// Throws IoError; DataError, naming the tensor, if the format cannot hold it: a name used twice, not UTF-8
/// or "__metadata__", or a wrong number of values.
void write_safetensors(const std::filesystem::path& path, const TensorFileView& file,
                       Survives survives = Survives::kPowerCut);
void write_safetensors(const std::filesystem::path& path, const TensorFile& file,
                       Survives survives = Survives::kPowerCut);

}  // namespace sweep
