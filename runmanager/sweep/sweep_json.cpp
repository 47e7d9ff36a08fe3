#include "runmanager/sweep/sweep_json.h"

#include <utility>

#include "runmanager/records/run_record_json.h"

namespace sweep {

nlohmann::ordered_json sweep_json(const Sweep& sweep, const nlohmann::ordered_json& program) {
  using Json = nlohmann::ordered_json;
  Json file = sweep.resolved.is_object() ? sweep.resolved : Json::object();
  Json runs = Json::array(), excluded = Json::array();
  for (const RunConfig& run : sweep.runs) runs.push_back(run.name);
  for (const ExcludedRun& run : sweep.excluded) {
    excluded.push_back({{"params", to_json(run.params)}, {"reason", run.reason}});
  }
  file["runs"] = std::move(runs);
  file["excluded"] = std::move(excluded);
  file["file"] = sweep.file.string();
  file["provenance"] = program;
  return file;
}

}  // namespace sweep
