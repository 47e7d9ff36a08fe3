#include "runmanager/sweep/requested_runs.h"

#include "core/base/file.h"
#include "core/data/readers/content_reader.h"
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

std::vector<RequestedRun> requested_runs(const Sweep& sweep, const DatasetCache& data,
                                         WeightsDigests& weights,
                                         const std::function<Device(std::string_view)>& parse_device) {
  std::vector<RequestedRun> runs;
  for (const RunConfig& config : sweep.runs) {
    nlohmann::ordered_json provenance = {{"numerics", kNumericsVersion}};
    if (!config.init.empty()) provenance["init_sha256"] = weights.get(config.init);
    if (const auto dataset = data.find(config.dataset)) provenance["dataset"] = dataset_provenance(*dataset);
    runs.push_back({&config, identity_of(config.resolved, parse_device(config.device).name(), provenance)});
  }
  return runs;
}

}  // namespace sweep
