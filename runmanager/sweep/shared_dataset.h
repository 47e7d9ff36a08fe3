// A data set in memory that all processes of a sweep share.
#pragma once

#include <nlohmann/json.hpp>

#include "core/data/dataset.h"

namespace sweep {

/// Owns a memfd with the samples. The memory lives as long as this object, a mapping in any process, or a
/// dataset() made from it.
class SharedDataset {
 public:
  /// Copies the samples of `dataset` to a new memfd. Throws IoError if there is not enough memory.
  explicit SharedDataset(const Dataset& dataset);
  ~SharedDataset();
  SharedDataset(SharedDataset&& other) noexcept;
  SharedDataset& operator=(SharedDataset&&) = delete;
  SharedDataset(const SharedDataset&) = delete;

  /// The same data set, with its samples in the shared memory.
  const Dataset& dataset() const { return dataset_; }
  /// The arguments of open_shared_dataset() in another process, which has to inherit the descriptor.
  int fd() const { return fd_; }
  const nlohmann::ordered_json& description() const { return description_; }

 private:
  int fd_ = -1;
  nlohmann::ordered_json description_;
  Dataset dataset_;
};

/// Opens the data set in another process without copying the samples. `fd` may be closed afterwards. Throws
/// IoError if the memory cannot be mapped, and DataError if `description` does not belong to it.
Dataset open_shared_dataset(int fd, const nlohmann::ordered_json& description);

}  // namespace sweep
