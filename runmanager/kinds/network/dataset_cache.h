// The data sets of a sweep, each loaded once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "runmanager/kinds/shared_dataset.h"

namespace sweep {

/// Not thread-safe.
class DatasetCache {
 public:
  explicit DatasetCache(std::function<Dataset(const DatasetSpec&)> load) : load_(std::move(load)) {}

  /// Loads the data set with the first call for `spec`. Throws what the loader throws.
  std::shared_ptr<const Dataset> get(const DatasetSpec& spec);

  /// The data set if it was loaded, else null.
  std::shared_ptr<const Dataset> find(const DatasetSpec& spec) const;

  /// Position of a loaded data set, in the order of loading.
  std::size_t position(const DatasetSpec& spec) const;

  /// Copies all data sets to memory that other processes can map, in the order of their positions. Frees each
  /// original after its copy, if nobody else holds it, so that one data set at a time is in memory twice. The
  /// cache is empty afterwards. Throws IoError if there is not enough memory.
  std::vector<SharedDataset> move_to_shared_memory();

 private:
  std::function<Dataset(const DatasetSpec&)> load_;
  std::vector<std::pair<DatasetSpec, std::shared_ptr<const Dataset>>> loaded_;
};

}  // namespace sweep
