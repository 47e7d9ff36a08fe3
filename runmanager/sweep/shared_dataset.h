// A data set that all processes of a sweep see, and that is in memory once.
#pragma once

#include <nlohmann/json.hpp>

#include "core/data/dataset.h"

namespace sweep {

/// Owns the memory as long as it or its dataset() lives.
class SharedDataset {
 public:
  /// Copies the samples of `dataset` to memory of their own (memfd). Throws IoError if the kernel gives none.
  explicit SharedDataset(const Dataset& dataset);
  ~SharedDataset();
  SharedDataset(SharedDataset&& other) noexcept;
  SharedDataset& operator=(SharedDataset&&) = delete;
  SharedDataset(const SharedDataset&) = delete;

  /// The same data set, with its samples in that memory.
  const Dataset& dataset() const { return dataset_; }
  /// What a process that is started with this descriptor gives to open_shared_dataset(), and ...
  int fd() const { return fd_; }
  /// ... what it needs to know besides.
  const nlohmann::ordered_json& description() const { return description_; }

 private:
  int fd_ = -1;
  nlohmann::ordered_json description_;
  Dataset dataset_;
};

/// The data set in another process; the samples are not copied. Throws IoError if the memory cannot be
/// mapped, and DataError if `description` is not its.
Dataset open_shared_dataset(int fd, const nlohmann::ordered_json& description);

}  // namespace sweep
