// Hyperparameters of a run, for TensorBoard's HParams tab.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sweep::tbwriter {

/// TensorBoard has text, bool and number; integers are stored as doubles. A name must
/// have the same type in all runs, or be nullptr: no value.
using HParamValue = std::variant<bool, std::int64_t, double, std::string, std::nullptr_t>;

/// Name and value, in the order to be written. Numbers that are not finite and nullptr are not written, so
/// that the cell is empty: TensorBoard cannot sort or filter a column that has a null.
using HParams = std::vector<std::pair<std::string, HParamValue>>;

/// How a run ended. TensorBoard shows a run without an end as unknown, which fits a run that is still
/// training or was killed.
enum class SessionStatus { kUnknown = 0, kSuccess = 1, kFailure = 2, kRunning = 3 };

/// One hyperparameter column of the HParams table.
struct HParamInfo {
  enum class Type { kString = 1, kBool = 2, kNumber = 3 };
  std::string name = {};
  Type type = Type::kNumber;
  std::string display_name = {};
  std::string description = {};
  std::vector<HParamValue> discrete = {};                  // the choices of the filter
  std::optional<std::pair<double, double>> interval = {};  // or the range of the filter; numbers only
  bool differs = true;                                     // whether the values of the runs differ
};

/// One metric column: the last value of scalar `tag` in the run `session/group`.
struct MetricInfo {
  std::string tag = {};
  std::string group = {};  // "" is the session's own run
  std::string display_name = {};
  std::string description = {};
};

/// The whole table. TensorBoard uses only one of these in a log directory, the first that it finds: write it
/// once, to the top directory, or not at all, since TensorBoard derives the same table from the sessions.
struct HParamsExperiment {
  std::string name = {};
  std::string description = {};
  std::string user = {};
  std::vector<HParamInfo> hparams = {};
  std::vector<MetricInfo> metrics = {};
};

}  // namespace sweep::tbwriter
