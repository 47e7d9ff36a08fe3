// Finds tensors by name. TensorFile::find() searches all of them each time.
#pragma once

#include <string_view>
#include <unordered_map>

#include "core/data/safetensors.h"

namespace sweep {

/// Refers to the tensors of a file, which must outlive it and not change. Reading is thread-safe.
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

}  // namespace sweep
