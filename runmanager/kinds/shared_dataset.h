// A data set that all processes of a sweep share, in memory or in a mapped file.
#pragma once

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/base/mapped_file.h"
#include "core/data/dataset.h"

namespace sweep {

/// Owns a memfd with the samples, unless these lie in a file, which the processes map then. The memory lives
/// as long as this object, or a mapping in any process.
class SharedDataset {
 public:
  /// Copies samples in memory, and all targets, to a new memfd. Throws IoError if there is not enough memory.
  explicit SharedDataset(const Dataset& dataset);

  /// The arguments of open_shared_dataset() in another process, which has to inherit the descriptors. The
  /// second one is that of the file, or -1.
  int fd() const { return fd_.get(); }
  int file_fd() const { return file_ ? file_->fd() : -1; }
  const nlohmann::ordered_json& description() const { return description_; }

 private:
  FileDescriptor fd_;
  std::shared_ptr<const MappedFile> file_;  // may be null
  nlohmann::ordered_json description_;
};

/// Opens the data set in another process without copying the samples. `fd` may be closed afterwards; `file`
/// is the other descriptor, or none. Throws IoError if the memory cannot be mapped, and DataError if
/// `description` does not belong to it.
Dataset open_shared_dataset(int fd, FileDescriptor file, const nlohmann::ordered_json& description);

}  // namespace sweep
