// The records of all runs of a sweep, in order, and the results that are made of them. Not part of the
// installed interface.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Names are unique. Not thread-safe.
class RunRecords {
 public:
  const std::vector<RunRecord>& all() const { return records_; }

  /// The record of the run of that name; adds an empty one if there is none. Valid until another is added.
  RunRecord& at(const std::string& name);
  /// The record at `position`, which must be there. Valid until another is added.
  RunRecord& at(std::size_t position) { return records_.at(position); }
  /// Replaces the record of that name, or adds it.
  void put(RunRecord record);

  /// Replaces `base`.csv and `base`.json. `name`: of the sweep. `keys`: the first columns for params; others
  /// follow in the order of the runs. Throws IoError.
  void save(const std::filesystem::path& base, const std::string& name, std::vector<std::string> keys,
            Survives survives) const;

 private:
  std::vector<RunRecord> records_;
};

}  // namespace sweep
