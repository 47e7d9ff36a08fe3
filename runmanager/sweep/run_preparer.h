// Loads and checks what runs need before they can be trained: data, networks, weights, devices.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runmanager/config/data_check.h"
#include "runmanager/config/run_config.h"
#include "runmanager/records/earlier_starts/existing_runs.h"
#include "runmanager/sweep/dataset_cache.h"
#include "runmanager/sweep/requested_runs.h"
#include "runmanager/sweep/shared_dataset.h"
#include "runmanager/sweep/sweep_runner.h"
#include "runmanager/training/prepared_run.h"

namespace sweep {

/// Each data set is loaded once. Not thread-safe.
class RunPreparer {
 public:
  /// `environment` has to outlive it. `program`: program_provenance().
  RunPreparer(const SweepEnvironment& environment, nlohmann::ordered_json program);

  /// Loads the data sets of all runs. What cannot be loaded matters only if a run needs it: check() throws
  /// it.
  void load(const Sweep& sweep);
  /// What a person should know about the data: skipped files, say. Once per data set.
  std::vector<std::string> remarks() const;

  /// The run as it is compared with those that are there. The result refers to `config`.
  RequestedRun request(const RunConfig& config);

  /// Throws what load() could not load, and ConfigError or ShapeError where a run does not fit its data.
  void check(const Sweep& sweep);

  /// The same for one run, whose data is loaded.
  void check(const RunConfig& config, const std::filesystem::path& sweep_file);

  /// Throws what goes wrong with the run's data, network, weights or device. A device that cannot be used is
  /// no error: PreparedRun::unavailable. After share_datasets(), the run comes without data, network and
  /// weights, which were only checked: each worker makes its own. The result refers to `config`.
  PreparedRun prepare(const RunConfig& config);

  const nlohmann::ordered_json& program() const { return program_; }
  /// Samples to train on in each epoch of the run.
  std::size_t training_samples(const RunConfig& config) { return get(config.dataset).sizes.train; }
  /// Every file that the run reads, of data and first weights: [{"path", "sha256"}]. Throws why the data
  /// could not be loaded, and DataError if weights cannot be read.
  nlohmann::ordered_json input_files(const RunConfig& config);
  /// Position of the run's data among share_datasets().
  std::size_t dataset_position(const RunConfig& config);
  /// Moves the data sets to memory that workers see; this object drops its own. Throws IoError if there is
  /// not enough memory.
  std::vector<SharedDataset> share_datasets();

 private:
  // What is known of a data set also when its samples are with the workers.
  struct Data {
    DatasetSpec spec;
    DataSizes sizes;
    nlohmann::ordered_json provenance;       // what tells it from other data
    nlohmann::ordered_json balance, format;  // of describe()
    std::vector<std::string> remarks;
  };
  Data* find(const DatasetSpec& spec);  // nullptr: not loaded
  /// Fills in what takes a look at every sample; only for data that runs are trained with.
  void describe(Data& data);
  Data& get(const DatasetSpec& spec);  // throws why it could not be loaded

  const SweepEnvironment& environment_;
  const nlohmann::ordered_json program_;
  DatasetCache cache_;
  std::vector<Data> data_;  // in the order of cache_
  bool shared_ = false;
  WeightsDigests weights_;
  std::exception_ptr error_;  // why a data set could not be loaded
};

}  // namespace sweep
