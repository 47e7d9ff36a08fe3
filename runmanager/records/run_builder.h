// The Cartesian product of hyperparameters, for programs with a training loop of their own.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runmanager/config/run_config.h"

namespace sweep {

/// One combination of hyperparameters, as a training loop and RunManager::begin_run() use it.
struct Run {
  std::string name;               // its directory, "lr=0.01,batch_size=100"; empty: refused by RunManager
  Params params;                  // in the order of the axes
  std::string device = "cpu";     // for the graph and the records
  LossSpec loss;                  // for the graph
  LogOptions log;                 // what begin_run(), end_epoch() and end_run() write
  nlohmann::ordered_json config;  // every other setting, for run.json and the Text tab; may be null
  int jobs = 1;                   // runs that are trained at once on this machine, this one included

  /// Value of `key`. Throws ConfigError, listing the keys there are, if there is none.
  const ParamValue& at(std::string_view key) const;

  /// run.get<double>("lr"); an integer is converted where T is double. Throws ConfigError if the type is
  /// another.
  template <typename T>
  T get(std::string_view key) const;
};

template <>
bool Run::get<bool>(std::string_view key) const;
template <>
std::int64_t Run::get<std::int64_t>(std::string_view key) const;
template <>
double Run::get<double>(std::string_view key) const;
template <>
std::string Run::get<std::string>(std::string_view key) const;

/// for (const Run& run : RunBuilder::get_runs({{"lr", {0.01, 0.001}}, {"batch_size", {100, 1000}}})) …
class RunBuilder {
 public:
  using Axis = std::pair<std::string, std::vector<ParamValue>>;

  /// Every combination, the last key fastest, as itertools.product orders them. A "device" axis sets
  /// Run::device. Without axes there is one run, without params. Names are all different, and safe as
  /// directories. Throws ConfigError for an axis without values or a repeated key.
  static std::vector<Run> get_runs(const std::vector<Axis>& params);
};

}  // namespace sweep
