// From the complete settings of a run, which are JSON, to the values that engines and trainers take.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/engine/parallel.h"
#include "core/network/layers.h"
#include "core/network/loss.h"
#include "core/network/optimizer.h"
#include "core/network/schedule.h"

namespace sweep {

struct RunConfig;

/// A run's complete settings: a JSON object whose values are shared with the other runs of the sweep that
/// have the same ones, so that 100,000 runs fit into memory. Reading is thread-safe.
class CompleteSettings {
 public:
  using Json = nlohmann::ordered_json;

  /// Null.
  CompleteSettings() = default;
  CompleteSettings(const Json& object);

  /// The whole object.
  Json json() const;
  operator Json() const { return json(); }
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  /// The value of a key that exists.
  const Json& at(std::string_view key) const;
  const Json& operator[](std::string_view key) const { return at(key); }
  std::string dump() const { return json().dump(); }
  /// The shared value; null if there is no such key.
  std::shared_ptr<const Json> find(std::string_view key) const;

  /// For writing: this copy has a value of its own from now on.
  Json& operator[](std::string_view key);
  /// Sets a value; null removes it. New keys follow the others.
  void set(std::string_view key, std::shared_ptr<const Json> value);

  friend bool operator==(const CompleteSettings& a, const CompleteSettings& b) {
    return a.json() == b.json();
  }

 private:
  std::shared_ptr<const Json>& place_of(std::string_view key);

  // By key; a null pointer keeps the place of a value that this run does not have.
  std::vector<std::pair<std::string, std::shared_ptr<const Json>>> values_;
};

/// Sets in a run what was read of a key.
using PutIntoRun = std::function<void(RunConfig& run)>;

/// Reads the complete value of a top-level key; null: the run does not have it. The result does nothing for a
/// key that no run has a member of.
PutIntoRun read_setting(std::string_view key, const nlohmann::ordered_json& value);

/// A boolean, number, string or list of numbers, two integers as a pair; nothing for anything else.
std::optional<ArgumentValue> argument_value(const nlohmann::ordered_json& json);

/// The value of a key as its type, with all arguments. Those of an optimizer, schedule or loss throw
/// ConfigError if they are not possible together.
DatasetSpec dataset_of(const nlohmann::ordered_json& json);
NetworkSpec network_of(const nlohmann::ordered_json& json);
ParallelOptions parallel_of(const nlohmann::ordered_json& json);
OptimizerOptions optimizer_of(const nlohmann::ordered_json& json);
LossOptions loss_of(const nlohmann::ordered_json& json);
ScheduleOptions schedule_of(const nlohmann::ordered_json& json);

/// What tables and the names of runs call the value of "parallel": "none", "data-2", "pipeline-2x4" (stages,
/// parts of a batch), "conv1-cpu+fc1-cpu.1". Without characters that names of runs escape.
std::string parallel_text(const ParallelOptions& options);

}  // namespace sweep
