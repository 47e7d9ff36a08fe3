#include "runmanager/records/run_records.h"

#include <algorithm>

#include "runmanager/records/run_files.h"
#include "runmanager/text/json_output.h"

namespace sweep {

RunRecord& RunRecords::at(const std::string& name) {
  const auto known =
      std::find_if(records_.begin(), records_.end(), [&](const RunRecord& r) { return r.name == name; });
  if (known != records_.end()) return *known;
  RunRecord& record = records_.emplace_back();
  record.name = name;
  return record;
}

void RunRecords::put(RunRecord record) {
  RunRecord& known = at(record.name);
  known = std::move(record);
}

void RunRecords::save(const std::filesystem::path& base, const std::string& name,
                      std::vector<std::string> keys, Survives survives) const {
  for (const RunRecord& record : records_) {
    for (const auto& [key, value] : record.params) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  std::filesystem::path csv = base, json = base;
  write_file_atomically(csv += ".csv", results_csv(records_, keys), survives);
  write_file_atomically(json += ".json", json_text(results_json(records_, name)), survives);
}

}  // namespace sweep
