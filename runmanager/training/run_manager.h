// Follows a training loop of your own and keeps its times, counts and metrics: in TensorBoard, run.json and
// the results table.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/data_loader.h"
#include "core/network/network.h"
#include "runmanager/records/run_builder.h"
#include "runmanager/training/run_tracker.h"

namespace sweep {

struct RunManagerOptions {
  std::filesystem::path directory = "runs";  // every run gets a directory below it
  std::string name = {};                     // of the sweep, for results.json; empty: the directory's name
  std::vector<std::string> keys = {};  // columns of results.csv, in order; others follow as runs bring them
  nlohmann::ordered_json provenance = {};  // of the program and machine, kept in every run.json
  std::function<double()> clock = {};      // seconds, monotonic; empty: std::chrono::steady_clock
};

/// Records the runs of a training loop:
///
///   for (const Run& run : RunBuilder::get_runs(params)) {
///     manager.begin_run(run, network, loader);
///     for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
///       manager.begin_epoch();
///       loader.begin_epoch(epoch);
///       while (const Batch* batch = loader.next()) {
///         …
///         manager.track_loss(loss, *batch);
///         manager.track_num_correct(outputs, *batch);
///       }
///       manager.end_epoch();
///     }
///     manager.end_run();
///   }
///   manager.save("results");
///
/// The destructor ends an open run as interrupted.
class RunManager : public RunTracker {
 public:
  explicit RunManager(RunManagerOptions options = {});
  ~RunManager();

  /// Opens the run's directory and events file and writes configuration, hparams, graph, and the images of
  /// the first batch that `loader` will give. Removes the files of an earlier run of this name. Keeps
  /// references to `network` and `loader` until end_run(). Starts the run's clock. Throws ConfigError unless
  /// the run's name is one of a directory below directory() and the loader has a data set.
  void begin_run(const Run& run, const Network& network, const DataLoader& loader) {
    begin_run(run, &network, &loader);
  }

  /// The same for a loop whose network and data are not this project's: without graph, images and layout.
  void begin_run(const Run& run) { begin_run(run, nullptr, nullptr); }

  /// Between epochs: how far the run has got, for the loop's own checkpoint. All events until here are on
  /// disk when it returns.
  std::string progress();
  /// In place of begin_run(): goes on where progress() returned `progress`. Removes what the run wrote after
  /// that; keeps its epochs and its clock. Throws DataError if `progress` is damaged or that of a run of
  /// another name or params, and if the run's events cannot be read.
  void resume_run(const Run& run, std::string_view progress) { resume_run(run, progress, nullptr, nullptr); }
  /// The same in place of begin_run(run, network, loader): keeps references to both until end_run().
  void resume_run(const Run& run, std::string_view progress, const Network& network,
                  const DataLoader& loader) {
    resume_run(run, progress, &network, &loader);
  }
  /// Returns whether the directory has this run, completed with equal params and config. Then it is among
  /// records() and results, and needs no training. Throws DataError if its run.json is damaged, and IoError
  /// if it cannot be read now: begin_run() would remove what may be a completed run.
  bool keep_completed(const Run& run);

  /// Writes the end of the session and run.json, and closes the events file. `reason` tells why a run failed
  /// or was interrupted. The run counts as ended even if this throws.
  void end_run(RunStatus status = RunStatus::kCompleted, std::string_view reason = {});

  /// The directory that holds every run's.
  const std::filesystem::path& directory() const;
  /// Every run so far, in order.
  const std::vector<RunRecord>& records() const;

  /// Replaces `file`.csv and `file`.json with the results so far. A relative path is below directory().
  /// Throws ConfigError if it names no file.
  void save(const std::filesystem::path& file) const;

 private:
  struct Runs;
  /// Throws std::logic_error, naming `call`, if a run is open.
  void check_ended(const char* call) const;
  /// Without a network if these are null.
  void begin_run(const Run& run, const Network* network, const DataLoader* loader);
  void resume_run(const Run& run, std::string_view progress, const Network* network,
                  const DataLoader* loader);

  std::unique_ptr<Runs> runs_;
};

}  // namespace sweep
