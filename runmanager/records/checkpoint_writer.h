// Writes a run's checkpoints in a thread, so that training does not wait for files.
//
// A checkpoint after every epoch, synced, would cost more than many epochs. So most are only renamed into
// place, which survives the end of the process, and every few seconds one is synced: events, then checkpoint,
// then the directory. The synced one gets a second name, kPreviousCheckpointFile, before the next unsynced
// one replaces it. After a power cut, the file of that name is therefore always whole. The best epoch's
// checkpoint gets a further name, kBestFile. It is synced at once, so that no power cut leaves a checkpoint
// to go on from without the best epoch before it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <thread>

#include "core/base/file.h"
#include "core/network/network.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Writes one checkpoint at a time. The trainer hands a copy of the state to a thread with start() and
/// collects the result with finish(). Between the two, the thread owns the state; otherwise the caller does.
/// Methods are called by one thread.
class CheckpointWriter {
 public:
  /// What a power cut may cost, in seconds, or one epoch if that takes longer.
  static constexpr double kSecondsBetweenSyncs = 10;

  /// Every checkpoint replaces `path`, whose name is kCheckpointFile. `flush_events` writes
  /// the run's events to their file, and syncs it for Survives::kPowerCut; the writer's thread calls it
  /// before each checkpoint, which says how far the events reach. `network` must outlive the writer. A
  /// checkpoint is synced when the next one might be later than `seconds_between_syncs` after the last that
  /// was synced, or after the construction.
  CheckpointWriter(std::filesystem::path path, const Network& network,
                   std::function<void(Survives)> flush_events,
                   double seconds_between_syncs = kSecondsBetweenSyncs);
  /// Waits for a checkpoint that was started. Its error is lost.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// `path` exists, and the run goes on from it: it is synced and kept as the previous one before it is
  /// replaced. To be called before start().
  void keep_existing() { has_existing_ = true; }

  /// Starts to write a checkpoint of the arguments' current values. finish() must have returned for the one
  /// before. `is_best`: kBestFile is this one from now on. `is_only`: the run has no other checkpoint, so
  /// there is no training to overlap with: it is written at once, without a thread, and not synced; finish()
  /// reports its error nevertheless.
  void start(TrainingState state, const RunRecord& record, const RunPosition& position, bool is_best,
             bool is_only);

  /// Whether finish() would return at once.
  bool is_ready() const;

  /// Returns when the checkpoint is in its file. Throws the writer's error: IoError or std::bad_alloc.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  void write(Survives survives);
  void keep_as_previous() const;
  void keep_as_best(Survives survives) const;
  Survives next_survives(bool is_best, bool is_only);

  const std::filesystem::path path_;
  const Network& network_;
  const std::function<void(Survives)> flush_events_;
  const std::chrono::duration<double> between_syncs_;
  Clock::time_point last_start_ = Clock::now(), last_sync_ = last_start_;

  // Used by the thread between start() and finish(), else by the caller.
  TrainingState state_;
  CheckpointMetadata metadata_;
  bool has_existing_ = false, is_best_ = false;

  std::future<void> written_;  // of the last start(), until finish()
  std::thread thread_;         // that writes it
};

}  // namespace sweep
