// The identity of a run: everything that changes the numbers of its training, and nothing else.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sweep {

struct RunRecord;

/// The settings of a run that change its numbers, in one spelling: complete arguments, 1 and 1.0 alike, files
/// by the digest of their content. It has the device that trained the run, but not how that was asked for,
/// nor the names of sweep, network and layers, "log", "num_workers", "evaluate_first", "checkpoint" and
/// "dataset.placement". "epochs" is handled separately, because a longer training can continue a shorter one.
struct RunIdentity {
  std::vector<std::pair<std::string, std::string>> settings;  // {"optimizer.eps", "1e-08"}, sorted by key
  /// Names and digests of the data set's files, of which the digests count; none: not known, then `source`
  /// does.
  using Files = std::vector<std::pair<std::string, std::string>>;
  std::optional<Files> data;
  std::string source;               // name of the data set
  std::vector<std::string> layers;  // layer names, which a checkpoint uses to name its weights
  int epochs = 0;
  /// The schedule if it depends on the number of epochs, so that a longer run does not begin like a shorter
  /// one; else "".
  std::string spanning_schedule;
};

/// Whether the setting `key` ("num_workers", "dataset.placement", "log.batches") changes only how long a run
/// takes, or what is shown of it.
bool changes_only_times(std::string_view key);

/// `config` is RunConfig::resolved or RunRecord::config, `device` the name of the device that the run trains
/// on. From `provenance`, reads "numerics" and, if present, "init_sha256" and the files of "dataset".
RunIdentity identity_of(const nlohmann::ordered_json& config, const std::string& device,
                        const nlohmann::ordered_json& provenance);

/// The same of what a run's record has.
RunIdentity identity_of(const RunRecord& run);

/// A setting whose values differ between two runs.
struct SettingDifference {
  std::string key;          // "optimizer.name"; "data" for files whose content differs
  std::string before, now;  // as JSON; "nothing" where a run has no such setting
  std::string why = "";     // it matters, where the key does not say it
  friend bool operator==(const SettingDifference&, const SettingDifference&) = default;
};

/// Returns them sorted by key; empty if both give the same numbers in the epochs that both have.
std::vector<SettingDifference> differences(const RunIdentity& before, const RunIdentity& now);

/// "lr: 0.01 -> 0.1, optimizer.name: "sgd" -> "adam"".
std::string to_string(const std::vector<SettingDifference>& differences);

}  // namespace sweep
