// Writes one run for TensorBoard: scalars, images, histograms, text, graph, hyperparameters, curves.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tbwriter/error.h"
#include "tbwriter/graph.h"
#include "tbwriter/hparams.h"
#include "tbwriter/image.h"
#include "tbwriter/layout.h"

namespace sweep::tbwriter {

struct WriterOptions {
  /// What was added is in the file, and so in TensorBoard's reach, after at most this time ...
  std::chrono::milliseconds flush_interval{1000};
  /// ... or when this many bytes have come together.
  std::size_t flush_bytes = std::size_t{1} << 20;
  /// Bytes that may wait for the disk. When it falls that far behind, add_*() waits for room, at most
  /// `longest_wait`; after that the writer has failed, as it has on a full disk.
  std::size_t queue_bytes = std::size_t{64} << 20;
  std::chrono::milliseconds longest_wait{30000};
  /// A new file is begun when one has this many bytes; 0: never.
  std::uint64_t max_file_bytes = 0;
  /// The first step that this session writes. Of a run that is continued, TensorBoard forgets what older
  /// files of the directory have from this step on.
  std::int64_t first_step = 0;
  /// Whether close() ends a started hparams session that has no end yet: as a success, or from a destructor
  /// that an exception runs, as a failure. Switch it off for a run that may be continued: the first end is
  /// final.
  bool end_session_on_close = true;
  /// Seconds since 1970; empty: the system's clock.
  std::function<double()> clock = {};
  /// Told of what TensorBoard will show strangely (steps that do not grow); empty: a line on stderr.
  std::function<void(const std::string&)> warn = {};
};

/// What goes with a point besides its value. Names and descriptions count only with the first point of a tag.
struct Details {
  std::optional<double> wall_time = {};  // seconds since 1970, finite; default: now
  std::string_view display_name = {};    // shown instead of the tag
  std::string_view description = {};     // Markdown
};

struct ScalarPoint {
  std::string_view tag = {};
  double value = 0;
};

/// What a file holds for certain: the bytes of `file` before `bytes` are whole records.
struct FilePosition {
  std::string file = {};  // name without directory
  std::uint64_t bytes = 0;
};

/// Writes one run's directory. Any thread may call any method; calls are written in the order they were made.
///
/// add_*() encodes into a queue and returns; one background thread writes. The first failure of the disk
/// (full, directory removed) is kept: later add_*() calls do nothing, and flush(), sync() and close() throw
/// it as IoError with the path. Every add_*() throws UsageError, before anything is queued, for an empty tag,
/// a tag that has been used for another kind of data, a wall time that is not finite, a record of 64 MiB or
/// more, and after close().
///
/// `step` counts what the caller likes, from 0, and must grow from point to point of a tag. Text and tags
/// that are not UTF-8 are written with replacement characters. Values are stored as TensorBoard stores them:
/// scalars as float.
class SummaryWriter {
 public:
  /// Creates `log_dir` with its parents, locks it against a second writer, and creates in it
  /// events.out.tfevents.<seconds>.<host>.<pid>.<n>, whose name is greater than that of every older file
  /// there. Throws IoError if that fails, or if another writer has the directory.
  explicit SummaryWriter(const std::filesystem::path& log_dir, WriterOptions options = {});

  /// Does what close() does; an error goes to options.warn.
  ~SummaryWriter();

  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  /// Adds a point to a chart. "/" groups charts: "Loss/train". NaN and infinity are kept: a run that diverged
  /// must show.
  void add_scalar(std::string_view tag, double value, std::int64_t step = 0, const Details& details = {});

  /// Adds a point to each of several charts, in one record. Names and descriptions in `details` are for all
  /// of them.
  void add_scalars(std::span<const ScalarPoint> points, std::int64_t step = 0, const Details& details = {});

  /// Counts values in buckets that grow by a tenth each, as TensorFlow and PyTorch do. Values that are not
  /// finite are in no bucket, but count in the record's number and sum.
  void add_histogram(std::string_view tag, std::span<const float> values, std::int64_t step = 0,
                     const Details& details = {});
  void add_histogram(std::string_view tag, std::span<const double> values, std::int64_t step = 0,
                     const Details& details = {});

  /// Adds one picture of samples of 8 bits, [height, width, channels].
  void add_image(std::string_view tag, std::span<const std::uint8_t> pixels, ImageSize size,
                 std::int64_t step = 0, const Details& details = {});
  /// Adds one picture that was encoded before, perhaps for another run too.
  void add_image(std::string_view tag, const EncodedImage& image, std::int64_t step = 0,
                 const Details& details = {});

  /// Adds pictures side by side as one; see encode_image_grid.
  void add_image_grid(std::string_view tag, std::span<const std::uint8_t> pixels, BatchSize size,
                      std::int64_t step = 0, const GridOptions& grid = {}, const Details& details = {});
  void add_image_grid(std::string_view tag, std::span<const float> pixels, BatchSize size,
                      std::int64_t step = 0, const GridOptions& grid = {}, const Details& details = {});

  /// Adds text, shown as Markdown.
  void add_text(std::string_view tag, std::string_view markdown, std::int64_t step = 0,
                const Details& details = {});

  /// Adds the network's graph; TensorBoard shows one per run.
  /// Throws UsageError for a name that is empty or not unique, or an input that names no node.
  void add_graph(const Graph& graph, std::optional<double> wall_time = {});

  /// Says that this run is a session with these hyperparameters; its scalars become the metrics of its row.
  /// `start_time` is in seconds since 1970, default now. Once per run: TensorBoard ignores a second one.
  void add_hparams_start(const HParams& hparams, std::optional<double> start_time = {});

  /// Says how the session ended. Only the first end counts, in all files of the run.
  void add_hparams_end(SessionStatus status, std::optional<double> end_time = {});

  /// Adds a precision-recall curve of predictions for one class.
  /// labels[i] is 0 or 1, scores[i] in [0, 1]; thresholds are 2 to 127, evenly spaced. Throws UsageError
  /// otherwise.
  void add_pr_curve(std::string_view tag, std::span<const std::uint8_t> labels, std::span<const float> scores,
                    std::int64_t step = 0, int thresholds = 127, const Details& details = {});

  /// Says which tags share a chart in the Custom Scalars tab.
  void add_custom_scalars_layout(const CustomScalarsLayout& layout);

  /// Returns when everything added so far is in the file. Throws IoError, naming the file.
  void flush();

  /// flush(), and returns when the disk has it too.
  void sync();

  /// flush(), then says how far the file goes: what a checkpoint keeps to cut the file back to when it is
  /// resumed.
  FilePosition position();

  /// flush(), closes the file and releases the directory; a second call does nothing. Throws IoError.
  void close();

  const std::filesystem::path& log_dir() const;

  /// The events file that is being written.
  std::filesystem::path path() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sweep::tbwriter
