#include "runmanager/kinds/network/dataset_cache.h"

#include <algorithm>

namespace sweep {

std::shared_ptr<const Dataset> DatasetCache::get(const DatasetSpec& spec) {
  if (auto known = find(spec)) return known;
  loaded_.emplace_back(spec, std::make_shared<const Dataset>(load_(spec)));
  return loaded_.back().second;
}

std::shared_ptr<const Dataset> DatasetCache::find(const DatasetSpec& spec) const {
  const auto found = std::find_if(loaded_.begin(), loaded_.end(),
                                  [&spec](const auto& entry) { return entry.first == spec; });
  return found == loaded_.end() ? nullptr : found->second;
}

std::size_t DatasetCache::position(const DatasetSpec& spec) const {
  const auto found = std::find_if(loaded_.begin(), loaded_.end(),
                                  [&spec](const auto& entry) { return entry.first == spec; });
  return static_cast<std::size_t>(found - loaded_.begin());
}

std::vector<SharedDataset> DatasetCache::move_to_shared_memory() {
  std::vector<SharedDataset> shared;
  for (auto& [spec, data] : loaded_) {
    shared.emplace_back(*data);
    data.reset();
  }
  loaded_.clear();
  return shared;
}

}  // namespace sweep
