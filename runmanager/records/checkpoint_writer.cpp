#include "runmanager/records/checkpoint_writer.h"

#include <utility>

#include "core/base/threads.h"
#include "runmanager/records/run_files.h"

namespace sweep {

CheckpointWriter::CheckpointWriter(std::filesystem::path path, const Network& network,
                                   std::function<void(Survives)> flush_events, double seconds_between_syncs)
    : path_(std::move(path)),
      network_(network),
      flush_events_(std::move(flush_events)),
      between_syncs_(seconds_between_syncs) {}

CheckpointWriter::~CheckpointWriter() {
  if (thread_.joinable()) thread_.join();
}

void CheckpointWriter::start(TrainingState state, const RunRecord& record, const RunPosition& position,
                             bool is_best, bool is_only) {
  state_ = std::move(state);
  update(metadata_, record, position);
  is_best_ = is_best;
  std::packaged_task<void()> task([this, survives = next_survives(is_best, is_only)] { write(survives); });
  written_ = task.get_future();
  if (is_only) return task();
  const BlockSignals block;
  thread_ = start_thread("writes checkpoints", std::move(task));
}

bool CheckpointWriter::is_ready() const {
  return !written_.valid() || written_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void CheckpointWriter::finish() {
  if (thread_.joinable()) thread_.join();
  if (written_.valid()) written_.get();
}

// Syncs this checkpoint if the next would come too late: the time between the last two tells when it comes.
// The state of an epoch is as old as its start(), so that is what counts, not the end of the writing.
Survives CheckpointWriter::next_survives(bool is_best, bool is_only) {
  const Clock::time_point now = Clock::now();
  const Clock::time_point next = now + (now - std::exchange(last_start_, now));
  if (is_only || (!is_best && next - last_sync_ <= between_syncs_)) return Survives::kKill;
  last_sync_ = now;
  return Survives::kPowerCut;
}

void CheckpointWriter::write(Survives survives) {
  // The events come first, because the checkpoint says how far they reach.
  flush_events_(survives);
  if (std::exchange(has_existing_, false)) {
    sync_files({&path_, 1});
    keep_as_previous();
  }
  write_checkpoint(path_, network_, std::exchange(state_, {}), metadata_, survives);
  if (survives == Survives::kPowerCut) keep_as_previous();
  // After the checkpoint, so that a process that ends in between goes on from that one, and can tell.
  if (is_best_) keep_as_best(survives);
}

// Makes the checkpoint at path_, which is synced, the previous one. The directory is synced afterwards: else
// the next rename to path_, whose data are not synced, could reach the disk before the second name.
void CheckpointWriter::keep_as_previous() const {
  const std::filesystem::path directory = path_.parent_path();
  link_file_atomically(path_, directory / kPreviousCheckpointFile);
  sync_directory(directory);
  sync_directory(directory.parent_path());  // the run's directory may be new
}

void CheckpointWriter::keep_as_best(Survives survives) const {
  link_file_atomically(path_, path_.parent_path() / kBestFile);
  if (survives == Survives::kPowerCut) sync_directory(path_.parent_path());
}

}  // namespace sweep
