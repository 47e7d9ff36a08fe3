#include "runmanager/kinds/network/requested_runs.h"

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/readers/sha256.h"
#include "runmanager/records/provenance.h"

namespace sweep {

const std::string& WeightsDigests::get(const std::filesystem::path& file) {
  std::string& digest = digests_[file.string()];
  if (digest.empty()) {
    const std::string content = read_file(file);
    Sha256 sha256;
    sha256.update({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
    digest = sha256.finish();
  }
  return digest;
}

RequestedRun requested_run(const RunConfig& config, const nlohmann::ordered_json* dataset,
                           WeightsDigests& weights,
                           const std::function<Device(std::string_view)>& parse_device) {
  nlohmann::ordered_json provenance = {{"numerics", kNumericsVersion}};
  if (!config.init.empty()) provenance["init_sha256"] = weights.get(config.init);
  if (dataset != nullptr) provenance["dataset"] = *dataset;
  return {&config, identity_of(config.resolved, parse_device(config.device).name(), provenance)};
}

std::vector<RequestedRun> requested_runs(const Sweep& sweep, const DatasetCache& data,
                                         WeightsDigests& weights,
                                         const std::function<Device(std::string_view)>& parse_device) {
  std::vector<RequestedRun> runs;
  for (const RunConfig& config : sweep.runs) {
    std::optional<nlohmann::ordered_json> provenance;
    if (const auto dataset = data.find(config.dataset)) provenance = dataset_provenance(*dataset);
    runs.push_back(requested_run(config, provenance ? &*provenance : nullptr, weights, parse_device));
  }
  return runs;
}

std::exception_ptr load_datasets(const Sweep& sweep, DatasetCache& data) {
  std::exception_ptr first_error;
  std::vector<DatasetSpec> failed;  // a sweep of thousands of runs looks for missing data once
  for (const RunConfig& config : sweep.runs) {
    if (std::find(failed.begin(), failed.end(), config.dataset) != failed.end()) continue;
    try {
      data.get(config.dataset);
    } catch (const DataError&) {
      failed.push_back(config.dataset);
      if (!first_error) first_error = std::current_exception();
    }
  }
  return first_error;
}

std::vector<ExistingRun> preview_existing_runs(const Sweep& sweep, const std::filesystem::path& logdir,
                                               DatasetCache& data) {
  const std::exception_ptr data_error = load_datasets(sweep, data);
  std::error_code failed;
  if (!std::filesystem::exists(logdir / sweep.name, failed) &&
      !failed) {  // There is nothing to compare with.
    if (data_error) std::rethrow_exception(data_error);
    return std::vector<ExistingRun>(sweep.runs.size());
  }
  WeightsDigests weights;
  const std::vector<RequestedRun> requests = requested_runs(sweep, data, weights, parse_device);
  std::vector<ExistingRun> existing =
      find_existing_runs(logdir / sweep.name, requests, /*retry_failed=*/true);
  const bool all_kept = std::all_of(existing.begin(), existing.end(),
                                    [](const ExistingRun& run) { return run.fate == RunFate::kKept; });
  if (data_error && !all_kept) std::rethrow_exception(data_error);
  return existing;
}

}  // namespace sweep
