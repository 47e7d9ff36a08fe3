// Runs that train a network of this program's engine.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/stages.h"
#include "runmanager/config/data_check.h"
#include "runmanager/kinds/run_kind.h"

namespace sweep {

/// What networks use from outside. See SweepEnvironment.
struct NetworkEnvironment {
  std::function<Dataset(const DatasetSpec&)> load_dataset;
  std::function<std::optional<std::string>(const Device&)> unavailable_reason;
  std::function<std::optional<std::string>(const Network&, const EngineOptions&)> parallel_missing_reason;
  std::function<Device(std::string_view)> parse_device;
};

/// Each data set is loaded once. share_datasets() moves them to memory that workers see; this object drops
/// its own. needs() makes the network for its checks only, and loads weights once per file and network: each
/// worker makes and loads its own.
class NetworkKind final : public RunKind {
 public:
  /// `program`: program_provenance().
  NetworkKind(NetworkEnvironment environment, nlohmann::ordered_json program);

  void load(const Sweep& sweep) override;
  std::vector<std::string> remarks() const override;
  /// The name of a data set that is not loaded counts instead of its content.
  RunIdentity identity(const RunConfig& config) override;
  /// Throws why load() could not load a data set, if there is one.
  void check_loaded() const;
  bool has_loaded(const DatasetSpec& spec) { return find(spec) != nullptr; }
  /// The data set of a run, which is loaded now if it was not before. Throws what the loader throws. Not
  /// after share_datasets().
  std::shared_ptr<const Dataset> dataset(const DatasetSpec& spec);
  void check(const Sweep& sweep) override;
  void check(const RunConfig& config, const std::filesystem::path& sweep_file) override;
  RunNeeds needs(const RunConfig& config) override;
  /// Throws DataError, with the place of "init", unless the run can start from its initial weights.
  void check_weights(const RunConfig& config, const Shape& shape);
  nlohmann::ordered_json input_files(const RunConfig& config) override;
  double stop_seconds(const RunConfig&) const override;
  std::optional<RunRecord> state_of(const std::filesystem::path& run) const override;
  std::optional<RunRecord> start_of(const std::filesystem::path& run) const override;
  void keep_start(const std::filesystem::path& parent, const std::filesystem::path& run) const override;
  std::vector<std::shared_ptr<const Dataset>> datasets() override;
  std::vector<SharedDataset> share_datasets() override;

 private:
  // What is known of a data set also when its samples are with the workers.
  struct Data {
    DatasetSpec spec;
    std::shared_ptr<const Dataset> dataset;  // null: it is with the workers
    DataSizes sizes;
    nlohmann::ordered_json provenance;       // what tells it from other data
    nlohmann::ordered_json balance, format;  // of describe()
    std::vector<std::string> remarks;
  };
  Data* find(const DatasetSpec& spec);  // nullptr: not loaded
  Data& add(const DatasetSpec& spec);
  /// Fills in what takes a look at every sample; only for data that runs are trained with.
  static void describe(Data& data);
  Data& get(const DatasetSpec& spec);  // throws why it could not be loaded
  const std::string& weights_digest(const RunConfig& config);

  const NetworkEnvironment environment_;
  const nlohmann::ordered_json program_;
  std::vector<Data> data_;
  std::map<std::string, std::string> weights_;  // SHA-256 of files
  std::set<std::string> good_weights_;          // files, with the networks that they fit
  std::exception_ptr error_;                    // why a data set could not be loaded
};

/// Its KindWorker. `datasets`: those of RunKind::share_datasets(), opened in this process.
KindWorker network_worker(std::vector<std::shared_ptr<const Dataset>> datasets);

}  // namespace sweep
