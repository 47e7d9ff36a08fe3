// The records of all runs of a sweep, and the files of results made of them. Not part of the installed
// interface.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Not thread-safe.
class RunRecords {
 public:
  const std::vector<RunRecord>& all() const { return records_; }
  bool is_first(const RunRecord& record) const { return &record == records_.data(); }

  /// The record of the run of that name; an empty one is added if there is none. Valid until the next call.
  RunRecord& at(const std::string& name);
  /// Takes the place of the record of that name, or is added.
  void put(RunRecord record);
  void clear() { records_.clear(); }

  /// Replaces `base`.csv, whose columns begin with `keys`, and `base`.json, of the sweep called `name`.
  /// Throws IoError.
  void save(const std::filesystem::path& base, const std::string& name, std::vector<std::string> keys,
            Survives survives) const;

 private:
  std::vector<RunRecord> records_;
};

}  // namespace sweep
