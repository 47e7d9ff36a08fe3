// Hyperparameters of a run, for TensorBoard's HParams tab.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sweep::tbwriter {

/// TensorBoard knows text, bool and number; integers are stored as doubles. One name must have one type in
/// all runs.
using HParamValue = std::variant<bool, std::int64_t, double, std::string>;

using HParams = std::vector<std::pair<std::string, HParamValue>>;

/// How a run ended. A run without an end is shown as unknown, which is right for one that still trains or was
/// killed.
enum class SessionStatus { kUnknown = 0, kSuccess = 1, kFailure = 2, kRunning = 3 };

/// One column of the HParams table, where TensorBoard shall not derive it itself.
struct HParamInfo {
  enum class Type { kString = 1, kBool = 2, kNumber = 3 };
  std::string name = {};
  Type type = Type::kNumber;
  std::string display_name = {};
  std::string description = {};
  std::vector<HParamValue> discrete = {};                  // the values to tick in the filter
  std::optional<std::pair<double, double>> interval = {};  // or the smallest and largest; numbers only
  bool differs = true;                                     // whether the runs differ in it
};

/// One metric column: the last value of scalar `tag` in the run `session/group`.
struct MetricInfo {
  std::string tag = {};
  std::string group = {};  // "" is the session's own run
  std::string display_name = {};
  std::string description = {};
};

/// The whole table. TensorBoard uses a single one of these in a log directory, whichever it meets first:
/// write it once, into the top directory, or better not at all, since it derives the same from the sessions.
struct HParamsExperiment {
  std::string name = {};
  std::string description = {};
  std::string user = {};
  std::vector<HParamInfo> hparams = {};
  std::vector<MetricInfo> metrics = {};
};

}  // namespace sweep::tbwriter
