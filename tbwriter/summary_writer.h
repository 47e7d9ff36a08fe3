// Writes one run for TensorBoard: scalars, images, histograms, text, graph, hyperparameters, curves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tbwriter/error.h"
#include "tbwriter/event_files.h"
#include "tbwriter/histogram.h"
#include "tbwriter/image.h"
#include "tbwriter/plugin_data.h"
#include "tbwriter/values.h"
#include "tbwriter/writer_options.h"

namespace sweep::tbwriter {

/// A precision-recall curve that the caller has computed. All arrays are [thresholds], by increasing
/// threshold from 0 to 1.
struct PrCurve {
  std::span<const float> true_positives = {};
  std::span<const float> false_positives = {};
  std::span<const float> true_negatives = {};
  std::span<const float> false_negatives = {};
  std::span<const float> precision = {};
  std::span<const float> recall = {};
};

/// Writes the event file of one run. Thread-safe; calls are written in the order in which they were made. A
/// forked child cannot write: its flush() and sync() throw IoError, its close() does nothing.
///
/// add_*() encodes into a queue and returns; a background thread writes. The first failure of the disk
/// (full, directory removed, no progress for options.write_timeout) is kept: later add_*() calls do
/// nothing, and flush(), sync() and close() throw it as IoError with the path and the number of events
/// that are not in the file. Only add_scalars() and add_embedding(), which use further files, may throw
/// IoError as well. Every add_*() throws UsageError, before anything is queued, for an empty tag, a tag that
/// has been used for another kind of data, a wall time that is not finite, a record of 64 MiB or more, and
/// after close().
///
/// `step` is any counter of the caller, also below 0, and must increase from point to point of a tag. Invalid
/// UTF-8 in texts and tags is replaced. Values are stored with the precision of TensorBoard: scalars as
/// float, which is infinite beyond 3.4e38, as with PyTorch.
class SummaryWriter {
 public:
  /// Creates `log_dir` and its parents, locks it against other writers, and creates the file
  /// events.out.tfevents.<seconds>.<host>.<pid>.<n>, whose name sorts after all older files. Throws IoError
  /// if that fails, or if another writer has locked the directory.
  explicit SummaryWriter(const std::filesystem::path& log_dir, WriterOptions options = {});

  /// Does what close() does, but reports an error to options.warn.
  ~SummaryWriter();

  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  /// Adds a point to a chart. "/" groups charts: "Loss/train". NaN and infinity are kept,
  /// so that divergence is visible.
  void add_scalar(std::string_view tag, double value, std::int64_t step = 0, const Details& details = {});

  /// The same as a tensor, which takes more room: the form that TensorFlow 2 writes, and PyTorch with
  /// new_style=True. A tag has one of the two forms.
  void add_scalar_tensor(std::string_view tag, double value, std::int64_t step = 0,
                         const Details& details = {});

  /// Adds a point to each of several charts, in one record. `details` apply to all of them.
  void add_scalar_batch(std::span<const ScalarPoint> points, std::int64_t step = 0,
                        const Details& details = {});

  /// Adds a point to each of several lines of one chart, like PyTorch's add_scalars(). TensorBoard draws one
  /// line per run, so each line becomes a separate run in the directory `<log_dir>/<tag, "/" as
  /// "_">_<point.tag>`. Only for a few lines and without hparams; add_custom_scalars_layout() needs no
  /// additional runs. Throws IoError, as the constructor does, if the directory of a new line cannot be
  /// made or another writer has locked it.
  void add_scalars(std::string_view tag, std::span<const ScalarPoint> points, std::int64_t step = 0,
                   const Details& details = {});

  /// Adds a histogram with the buckets of TensorFlow and PyTorch, each 10 % wider than the one before. Values
  /// that are not finite are in no bucket, but are part of the number and the sum.
  void add_histogram(std::string_view tag, const Values& values, std::int64_t step = 0,
                     const Details& details = {});

  /// Adds a histogram with buckets of equal width, as many as numpy chooses for that name. Throws UsageError
  /// for more than 100,000 buckets.
  void add_histogram(std::string_view tag, const Values& values, HistogramBins bins, std::int64_t step = 0,
                     const Details& details = {});

  /// Adds a histogram that the caller has computed. Throws as checked_histogram() does.
  void add_histogram_counts(std::string_view tag, const Histogram& histogram, std::int64_t step = 0,
                            const Details& details = {});

  /// Adds a picture in the order that `size` tells. Throws as encode_image() does.
  void add_image(std::string_view tag, const Pixels& pixels, ImageSize size, std::int64_t step = 0,
                 const Details& details = {}) {
    add_image(tag, encode_image(pixels, size), step, details);
  }
  /// Adds an encoded picture, which may be shared with other runs.
  void add_image(std::string_view tag, const EncodedImage& image, std::int64_t step = 0,
                 const Details& details = {});

  /// Adds several pictures as samples of one tag, each with its own slider. Throws UsageError if there are
  /// none or their sizes differ.
  void add_images(std::string_view tag, std::span<const EncodedImage> images, std::int64_t step = 0,
                  const Details& details = {});

  /// Adds a grid of pictures, see encode_image_grid().
  void add_image_grid(std::string_view tag, const Pixels& pixels, BatchSize size, std::int64_t step = 0,
                      const GridOptions& grid = {}, const Details& details = {}) {
    add_image(tag, encode_image_grid(pixels, size, grid), step, details);
  }

  /// Adds a picture with boxes, see encode_image_with_boxes().
  void add_image_with_boxes(std::string_view tag, const Pixels& pixels, ImageSize size,
                            std::span<const Box> boxes, std::int64_t step = 0, const Details& details = {}) {
    add_image(tag, encode_image_with_boxes(pixels, size, boxes), step, details);
  }

  /// Adds a video, or several side by side, as an animated PNG to the images, see encode_video().
  void add_video(std::string_view tag, const Pixels& pixels, VideoSize size, double frames_per_second = 4,
                 std::int64_t step = 0, const Details& details = {}) {
    add_image(tag, encode_video(pixels, size, frames_per_second), step, details);
  }

  /// Adds audio, [frames, channels] in [-1, 1]; other values are clamped. `sample_rate` is in frames per
  /// second, 1 to 10,000,000; `channels` are 1 to 65535. Throws UsageError for other values.
  void add_audio(std::string_view tag, std::span<const float> samples, std::int64_t sample_rate = 44100,
                 std::int64_t channels = 1, std::int64_t step = 0, const Details& details = {});

  /// Adds text, shown as Markdown.
  void add_text(std::string_view tag, std::string_view markdown, std::int64_t step = 0,
                const Details& details = {});

  /// Adds the network's graph; TensorBoard shows one per run. Throws UsageError for a second graph, an empty
  /// or duplicate name, and an input that is not the name of a node.
  void add_graph(const Graph& graph, std::optional<double> wall_time = {});

  /// Adds time and memory of each node in one step, by which the Graphs tab can colour. `tag` is the name of
  /// the step there. Throws UsageError for a node that is not one of add_graph(), which must come first
  /// unless the graph is in an older file of a resumed run (options.purge_step).
  void add_graph_profile(std::string_view tag, std::span<const NodeProfile> nodes, std::int64_t step = 0);

  /// Starts the hparams session of this run; its scalars become the metrics of its row in the HParams tab. A
  /// number that is not finite is left out, with a warning; nullptr is left out.
  /// `start_time` is in seconds since 1970, default: now. Throws UsageError if it is called twice, for an
  /// empty or duplicate name, and if a scalar has a step above 2^31 − 1, which breaks the tab.
  void add_hparams_start(const HParams& hparams, std::optional<double> start_time = {});

  /// Ends the session; only the first end in all files of the run counts. `end_time` is in seconds since
  /// 1970, default: now. Throws UsageError if it is called twice.
  void add_hparams_end(SessionStatus status, std::optional<double> end_time = {});

  /// Adds a description of the HParams table, which TensorBoard otherwise derives; see HParamsExperiment.
  void add_hparams_experiment(const HParamsExperiment& experiment);

  /// Adds a precision-recall curve of the predictions for one class. labels[i] is 0 or 1,
  /// scores[i] in [0, 1], `weights` are empty or one finite number >= 0 per label; `thresholds`, 2 to 127,
  /// are evenly spaced. Throws UsageError otherwise.
  void add_pr_curve(std::string_view tag, std::span<const std::uint8_t> labels, std::span<const float> scores,
                    std::int64_t step = 0, int thresholds = 127, const Details& details = {},
                    std::span<const float> weights = {});

  /// Adds a curve that the caller has computed. Throws UsageError unless all arrays have the same length >= 1
  /// and finite numbers.
  void add_pr_curve(std::string_view tag, const PrCurve& curve, std::int64_t step = 0,
                    const Details& details = {});

  /// Adds point clouds or meshes. Throws UsageError if sizes do not match or an
  /// index of a face is out of range.
  void add_mesh(std::string_view tag, const Mesh& mesh, std::int64_t step = 0, const Details& details = {});

  /// Adds points, [count, dimensions], to the Projector tab. The projector reads separate files, which the
  /// calling thread writes before this returns. Points of the same tag and step replace the earlier ones.
  /// Values that are not finite become 0. Throws UsageError if sizes do not match or the pictures make a
  /// sprite of more than 8192 pixels each way, and IoError if one of the files cannot be read or written.
  void add_embedding(std::string_view tag, std::span<const float> points, std::int64_t dimensions,
                     const EmbeddingLabels& labels = {}, const EmbeddingPictures& pictures = {},
                     std::int64_t step = 0);

  /// Adds a tensor for programs that read the file; TensorBoard does not show it. bfloat16 is stored as
  /// float, since readers without TensorFlow do not know it. Throws UsageError if `shape` does not have as
  /// many elements as there are values.
  void add_tensor(std::string_view tag, const Values& values, std::span<const std::int64_t> shape,
                  std::int64_t step = 0, const Details& details = {});

  /// Adds the layout of the Custom Scalars tab. Throws UsageError for a chart with bands that does not have
  /// three tags for every line.
  void add_custom_scalars_layout(const CustomScalarsLayout& layout);

  /// Returns when everything added so far is written to the file. Throws IoError, naming the file.
  void flush();

  /// Like flush(), and returns when the data is on disk.
  void sync();

  /// Returns the file's end with everything added so far, for a checkpoint: truncate_to() cuts the file
  /// there on resume. Does not wait; the file reaches this position when a later flush() returns.
  FilePosition position() const;

  /// Flushes, closes the file and unlocks the directory; further calls do nothing. Throws IoError.
  void close();

  const std::filesystem::path& log_dir() const;

  /// The events file that is being written.
  const std::filesystem::path& path() const;

 private:
  struct State;

  /// `status` is the end of an open hparams session. Closes all lines before it throws the first failure.
  void close(SessionStatus status);

  std::unique_ptr<State> state_;
};

}  // namespace sweep::tbwriter
