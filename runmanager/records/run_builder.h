// The Cartesian product of hyperparameters, for programs with their own training loop.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runmanager/config/run_config.h"

namespace sweep {

/// One combination of hyperparameters, for a training loop and RunManager::begin_run().
struct Run {
  std::string name = {};                      // of its directory, "lr=0.01,batch_size=100"; must not be empty
  Params params = {};                         // in the order of the axes
  Params not_swept = {};                      // RunConfig::not_swept: for TensorBoard's table
  std::string device = "cpu";                 // for the graph and the records
  LossOptions loss = {};                      // for the graph
  std::vector<std::string> class_names = {};  // for captions; empty: classes are shown as numbers
  bool has_validation = true;                 // so that there are charts for it
  LogOptions log = {};                        // which events are written
  nlohmann::ordered_json config = {};  // every other setting, for run.json and the Text tab; may be null
  int jobs = 1;                        // runs at once on this machine, this one included; for the records

  /// The value of `key`. Throws ConfigError, listing all keys, if there is none.
  const ParamValue& at(std::string_view key) const;

  /// run.get<double>("lr"). `T`: bool, std::int64_t, double or std::string. An integer is converted to
  /// double; any other difference of type throws ConfigError.
  template <typename T>
  T get(std::string_view key) const {
    const ParamValue& value = at(key);
    if (const T* same = std::get_if<T>(&value)) return *same;
    if constexpr (std::is_same_v<T, double>) {
      if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
    }
    refuse_type(key, ParamValue(T()));
  }

 private:
  /// Throws ConfigError: the value of `key` is not of the type of `wanted`.
  [[noreturn]] void refuse_type(std::string_view key, const ParamValue& wanted) const;
};

/// for (const Run& run : RunBuilder::get_runs({{"lr", {0.01, 0.001}}, {"batch_size", {100, 1000}}})) …
class RunBuilder {
 public:
  using Axis = std::pair<std::string, std::vector<ParamValue>>;

  /// Every combination, in the order of itertools.product: the last key varies fastest. An axis "device" also
  /// sets Run::device. Without axes there is one run, without params. Names are unique and valid as
  /// directories. Throws ConfigError for an axis without values or a repeated key.
  static std::vector<Run> get_runs(const std::vector<Axis>& params);
};

}  // namespace sweep
