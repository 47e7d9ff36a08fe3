#include "runmanager/records/saved_results.h"

#include <algorithm>

#include "runmanager/text/json_output.h"

namespace sweep {

void save_results(const std::filesystem::path& base, const std::vector<RunRecord>& runs,
                  std::string_view sweep, std::vector<std::string> keys, Survives survives) {
  for (const std::string& key : param_keys(runs)) {
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  }
  std::filesystem::path csv = base, json = base;
  write_file_atomically(csv += ".csv", results_csv(runs, keys), survives);
  write_file_atomically(json += ".json", json_text(results_json(runs, sweep)), survives);
}

}  // namespace sweep
