// Manages everything that a sweep displays and writes about its runs during training.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runmanager/records/provenance.h"
#include "runmanager/records/results.h"
#include "runmanager/tensorboard/aggregate.h"
#include "runmanager/terminal/progress.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/training/run_recorder.h"

namespace sweep {

/// Time spent on completed runs, and on trials that wait or were pruned.
struct SweepCost {
  std::size_t runs = 0;
  double elapsed_seconds = 0;   // on the wall clock, from the start of the sweep to its end
  double seconds = 0;           // the sum over the runs, from their start to their end, results written
  double training_seconds = 0;  // of these: training, validation and test themselves
  double logging_seconds = 0;   // of these: logs, records and checkpoints
};

/// "8 runs took 6.21 s; besides training 1.9 ms per run (0.24%), logs and checkpoints are 0.20%". The time is
/// the wall clock's; if several were trained at once, the sum of their times follows, and the fractions
/// refer to that sum.
std::string cost_text(const SweepCost& cost);

struct SweepRecorderOptions {
  std::filesystem::path directory;  // of the sweep
  std::string name;                 // for results.json
  std::vector<std::string> keys;    // the swept keys: columns of results.csv
  std::function<double()> clock;    // seconds, monotonic
  Terminal terminal;
  bool quiet = false, json = false;  // no progress; progress as JSON
  std::size_t total_runs = 0;        // if more are to be added; 0: those that are there
  double work = 0;                   // see Progress
  double work_per_epoch = 1;         // of it, on average
  Goals goals = {};                  // see goals_of()
  /// Whether several processes share the sweep. Means are then written by write_means() only, and no progress
  /// file is written.
  bool shared = false;
};

/// Syncs to the disk the files of a sweep and of its runs that have ended. Those of a run that is being
/// trained are synced by its CheckpointWriter. Any thread may call any method.
///
/// Written data is in the kernel and survives the end of the program at once. Only a power cut needs it on
/// the disk. Waiting for the disk takes as long as many epochs of a small network, so a thread does that
/// every few seconds, for many files at a time. Until then run.json says that a run is completed though its
/// other files are not on the disk. That does not matter, because run.json names what belongs to it: the next
/// start compares sizes and checksums, and continues a run of which something is missing from its last whole
/// checkpoint.
class DiskSync {
 public:
  /// `directory`: of the sweep; its own files are synced, too. Starts the thread.
  explicit DiskSync(std::filesystem::path directory);
  /// Stops the thread without syncing what is left. Errors are lost: finish() reports them.
  ~DiskSync();
  DiskSync(const DiskSync&) = delete;
  DiskSync& operator=(const DiskSync&) = delete;

  /// The run with this name is being trained.
  void begin_run(const std::string& run);
  /// The run is synced in the next round. Nobody writes its files any more, so its last checkpoint is then
  /// safe, and the previous one is removed.
  void end_run(const std::string& run);

  /// Returns when all files are on the disk, also those of runs that have begun and not ended. Throws
  /// IoError, also for an error of an earlier round.
  void finish();

 private:
  enum class Runs { kEnded, kAll };

  void loop();
  void sync_round(Runs which);

  const std::filesystem::path directory_;
  std::mutex round_;  // held during a round, so that finish() waits for it; locked before mutex_
  std::mutex mutex_;  // guards the members below
  std::condition_variable wake_;
  std::set<std::string> running_, ended_;
  std::string error_;
  bool closing_ = false;
  std::thread thread_;
};

/// The records of all runs, results.csv and results.json, progress display, aggregates and disk syncing of a
/// sweep. The process that trains a run writes its files; this class writes them only for runs that were
/// not trained or were lost. Runs are counted from 0. Not thread-safe. Every call may throw IoError.
class SweepRecorder {
 public:
  /// `records` has one per run, in order. `runs` is used by the constructor only.
  SweepRecorder(const SweepRecorderOptions& options, std::span<const RunConfig> runs,
                std::vector<RunRecord> records);
  ~SweepRecorder();  ///< Removes the file that tells others of the progress.
  SweepRecorder(const SweepRecorder&) = delete;
  SweepRecorder& operator=(const SweepRecorder&) = delete;

  const std::filesystem::path& directory() const { return options_.directory; }
  Progress& progress() { return *progress_; }
  const std::vector<RunRecord>& records() const { return records_; }
  const RunRecord& record(std::size_t run) const { return records()[run]; }
  /// Moves all of them out, at the end.
  std::vector<RunRecord> take_records() { return std::move(records_); }
  /// What this start has trained.
  const SweepCost& cost() const { return cost_; }
  /// Whether a run has failed in this start, and no further attempt follows.
  bool has_failed_run() const { return has_failed_run_; }
  /// Names of the runs in mean_directory() that are there.
  std::vector<std::string> means() const { return aggregates_.written(); }

  /// An attempt to train the run begins. `record` becomes its record.
  void begin_run(std::size_t run, RunRecord record);
  /// What happens in the attempt: the run's record gets the epochs, and it is shown. What ends the attempt is
  /// up to the caller.
  void take(std::size_t run, const RunEvent& event);
  /// The attempt has ended with this record, which gets what is known already: configuration and provenance,
  /// and the epochs unless it changes them.
  void take_end(std::size_t run, TrainedRun trained);
  /// Seconds of a run that is being trained in earlier starts and attempts, or in the run that it copies.
  double earlier_seconds(std::size_t run) const;
  /// Replaces the run's record.
  void update(std::size_t run, RunRecord record);
  /// The run has its final record: no further attempt follows.
  void end_run(std::size_t run);
  /// The run waits for the results of others. begin_run() or record_end() may follow.
  void pause_run(std::size_t run);
  /// Adds the next run of the sweep.
  void add_run(RunRecord record);
  /// Writes the files of a run that cannot be trained here, and ends it. `status`: kSkipped or kFailed.
  void skip_run(const RunConfig& run, RunStatus status, const std::string& reason);
  /// Writes the end of a run that was lost, or pruned. Its process must be gone. end_run() may follow.
  void record_end(const RunConfig& run, RunRecord record);
  /// Another process has taken the run over; its results here do not count.
  void leave_run(std::size_t run);
  /// Takes over the final record of a run that another process or an earlier start has ended.
  void keep_run(std::size_t run, RunRecord record);

  /// Writes results.csv and results.json if the last time is long enough ago that this costs little, and the
  /// progress file up to once a second. Before results are written, `refresh` reads what others have done.
  void save_if_due(const std::function<void()>& refresh);
  /// Writes the final results and returns when all files of the sweep are on the disk.
  void finish();
  /// Writes the means over repeats anew.
  void write_means();
  /// After a failure, writes the results if that is possible: a disk may be too full for a checkpoint and
  /// still have room for them. Ignores IoError.
  void try_save();

 private:
  void save(const std::function<void()>& refresh = {});
  void write_progress();
  void set_finished_epochs(std::size_t run, const std::vector<EpochRecord>& epochs);
  void count_cost(std::size_t run);
  RecorderOptions recorder_options(std::size_t run) const;

  SweepRecorderOptions options_;
  std::vector<RunRecord> records_;
  AggregateRuns aggregates_;
  std::unique_ptr<Progress> progress_;
  DiskSync disk_;
  double next_save_ = 0, next_progress_ = 0;
  SweepCost cost_;
  double begin_ = 0;  // of this start
  bool has_failed_run_ = false;
  const std::string started_ = utc_time();
  /// When a run began to be trained, and what its record had of earlier times then.
  struct Begin {
    double seconds, run_seconds, logging_seconds;
  };
  std::map<std::size_t, Begin> begins_;  // of the runs that are being trained
  std::set<std::size_t> counted_;        // in cost_.runs: a trial may be paused and go on
};

}  // namespace sweep
