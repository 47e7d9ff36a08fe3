// Options of a SummaryWriter, and the details of its points.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sweep::tbwriter {

/// How a SummaryWriter writes.
struct WriterOptions {
  /// Data is written to the file, where TensorBoard sees it, after at most this time, 1 ms or more ...
  std::chrono::milliseconds flush_interval{1000};
  /// ... or once this many bytes are queued.
  std::size_t flush_bytes = std::size_t{1} << 20;
  /// Limit of the queue in bytes; 0 is 1. If the disk falls behind that far, add_*() waits for room as long
  /// as the disk makes progress. No progress for `write_timeout`, not counting the time for which the process
  /// was stopped, is a failure of the writer, like a full disk, so add_*(), flush(), sync() and close() never
  /// block forever. Less than 1 ms is 1 ms.
  std::size_t queue_bytes = std::size_t{64} << 20;
  std::chrono::milliseconds write_timeout{30000};
  /// The first step that this session writes. TensorBoard discards the points of older files in the directory
  /// from this step on: by default from 0 on. Give the next step to resume a run.
  std::int64_t purge_step = 0;
  /// Whether the name of the file sorts before those of the directory's other event files, not after them:
  /// for points that come before theirs.
  bool sorts_first = false;
  /// Whether close() ends an open hparams session: as a success, or as a failure if the writer is destroyed
  /// by an exception. Set to false for a run that may be resumed, because the first end is final.
  bool end_session_on_close = true;
  /// Locks the directory against a second writer. Turn off if you ensure that yourself: a hung process keeps
  /// its lock.
  bool locks_directory = true;
  /// Returns the wall time in seconds since 1970, which must be finite; empty: the system clock. Called from
  /// any thread that adds.
  std::function<double()> clock = {};
  /// Receives warnings about data that TensorBoard shows wrongly (steps that do not increase); empty: stderr.
  /// Called from any thread that adds, with the queue locked, so it must not call the writer. What it throws
  /// is dropped, and the warning goes to stderr.
  std::function<void(const std::string&)> warn = {};
};

/// Details of a point. Names and descriptions are used from the first point of a tag only.
struct Details {
  std::optional<double> wall_time = {};  // seconds since 1970, finite; default: now
  std::string_view display_name = {};    // shown instead of the tag
  std::string_view description = {};     // Markdown
};

/// A point of SummaryWriter::add_scalars() and add_scalar_batch().
struct ScalarPoint {
  std::string_view tag = {};
  double value = 0;
};

}  // namespace sweep::tbwriter
