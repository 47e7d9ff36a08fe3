// The runs that a sweep asks for, as they are compared with those that are there.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/device.h"
#include "runmanager/config/run_config.h"
#include "runmanager/kinds/network/dataset_cache.h"
#include "runmanager/records/earlier_starts/existing_runs.h"

namespace sweep {

/// SHA-256 of weights files, each computed once. Not thread-safe.
class WeightsDigests {
 public:
  /// 64 hexadecimal digits. Throws DataError if the file cannot be read.
  const std::string& get(const std::filesystem::path& file);

 private:
  std::map<std::string, std::string> digests_;
};

/// `config` has to outlive the result. `dataset`: dataset_provenance() of its data; null if that is not
/// loaded: then the name counts instead of the content.
RequestedRun requested_run(const RunConfig& config, const nlohmann::ordered_json* dataset,
                           WeightsDigests& weights,
                           const std::function<Device(std::string_view)>& parse_device);

/// One entry for each run of `sweep`, which has to outlive the result. Of data sets that `data` does not
/// hold, the name counts instead of the content.
std::vector<RequestedRun> requested_runs(const Sweep& sweep, const DatasetCache& data,
                                         WeightsDigests& weights,
                                         const std::function<Device(std::string_view)>& parse_device);

/// Loads the data sets of all runs. Data that cannot be loaded matters only if something is to be trained
/// with it, so its error is returned instead of thrown; null if there is none.
std::exception_ptr load_datasets(const Sweep& sweep, DatasetCache& data);

/// What run_sweep() would find in <logdir>/<name>, without changing anything. Loads the data sets. Throws
/// DataError if a data set needed by an unfinished run is missing.
std::vector<ExistingRun> preview_existing_runs(const Sweep& sweep, const std::filesystem::path& logdir,
                                               DatasetCache& data);

}  // namespace sweep
