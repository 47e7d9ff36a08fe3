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
#include <vector>

#include "tbwriter/embedding.h"
#include "tbwriter/error.h"
#include "tbwriter/graph.h"
#include "tbwriter/hparams.h"
#include "tbwriter/image.h"
#include "tbwriter/layout.h"
#include "tbwriter/mesh.h"
#include "tbwriter/resume.h"
#include "tbwriter/values.h"

namespace sweep::tbwriter {

struct WriterOptions {
  /// What was added is in the file, and so in TensorBoard's reach, after at most this time ...
  std::chrono::milliseconds flush_interval{1000};
  /// ... or when this many bytes have come together.
  std::size_t flush_bytes = std::size_t{1} << 20;
  /// Bytes that may wait for the disk. When it falls that far behind, add_*() waits for room as long as the
  /// disk takes something. When it has taken nothing for `longest_wait`, the writer has failed, as it has on
  /// a full disk: so do add_*(), flush(), sync() and close() never wait for ever.
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

/// A histogram that the caller has counted. Bucket i reaches from limits[i - 1] to limits[i]; limits grow.
struct HistogramCounts {
  double min = 0;
  double max = 0;
  double number = 0;
  double sum = 0;
  double sum_squares = 0;
  std::span<const double> limits = {};  // right ends of buckets
  std::span<const double> counts = {};  // as many
};

/// The limits of all buckets of SummaryWriter::add_histogram() where the largest value is `max`, so that the
/// same histogram can be counted elsewhere: a finite value v is in the bucket whose limit is the first that
/// is greater than v. All but the last are the same for every `max`; what reaches the last but one is in the
/// last.
std::vector<double> histogram_limits(double max);

/// A precision-recall curve that the caller has computed: as many values in each, by growing threshold from 0
/// to 1.
struct PrCurve {
  std::span<const float> true_positives = {};
  std::span<const float> false_positives = {};
  std::span<const float> true_negatives = {};
  std::span<const float> false_negatives = {};
  std::span<const float> precision = {};
  std::span<const float> recall = {};
};

/// Writes one run's directory. Any thread may call any method; calls are written in the order they were made.
///
/// add_*() encodes into a queue and returns; one background thread writes. The first failure of the disk
/// (full, directory removed, nothing taken for options.longest_wait) is kept: later add_*() calls do nothing,
/// and flush(), sync() and close() throw it as IoError with the path and the number of events that are not in
/// the file. Every add_*() throws UsageError, before anything is queued, for an empty tag, a tag that has
/// been used for another kind of data, a wall time that is not finite, a record of 64 MiB or more, and after
/// close().
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

  /// Adds a point to each of several lines of one chart. TensorBoard draws a line per run, so each line
  /// becomes a run of its own, in the directory `<log_dir>/<tag, "/" as "_">_<point.tag>`, as with PyTorch.
  /// For few lines, in runs that nobody compares by hyperparameters; add_custom_scalars_layout() needs no
  /// more runs.
  void add_scalar_lines(std::string_view tag, std::span<const ScalarPoint> points, std::int64_t step = 0,
                        const Details& details = {});

  /// Counts values in buckets that grow by a tenth each, as TensorFlow and PyTorch do. Values that are not
  /// finite are in no bucket, but count in the record's number and sum.
  void add_histogram(std::string_view tag, Values values, std::int64_t step = 0, const Details& details = {});

  /// Adds a histogram with buckets of the caller's. Empty buckets at the ends are left out.
  /// Throws UsageError if limits do not grow, or limits and counts differ in number.
  void add_histogram_counts(std::string_view tag, const HistogramCounts& histogram, std::int64_t step = 0,
                            const Details& details = {});

  /// Adds one picture of samples of 8 bits, [height, width, channels].
  void add_image(std::string_view tag, std::span<const std::uint8_t> pixels, ImageSize size,
                 std::int64_t step = 0, const Details& details = {});
  /// Adds one picture that was encoded before, perhaps for another run too.
  void add_image(std::string_view tag, const EncodedImage& image, std::int64_t step = 0,
                 const Details& details = {});

  /// Adds several pictures as samples of one tag, each with a slider of its own. All need the same size.
  void add_images(std::string_view tag, std::span<const EncodedImage> images, std::int64_t step = 0,
                  const Details& details = {});

  /// Adds pictures side by side as one; see encode_image_grid.
  void add_image_grid(std::string_view tag, std::span<const std::uint8_t> pixels, BatchSize size,
                      std::int64_t step = 0, const GridOptions& grid = {}, const Details& details = {});
  void add_image_grid(std::string_view tag, std::span<const float> pixels, BatchSize size,
                      std::int64_t step = 0, const GridOptions& grid = {}, const Details& details = {});

  /// Adds a picture with the outlines of boxes; see encode_image_with_boxes.
  void add_image_with_boxes(std::string_view tag, std::span<const std::uint8_t> pixels, ImageSize size,
                            std::span<const Box> boxes, std::int64_t step = 0, const Details& details = {});

  /// Adds frames as an animated GIF among the images; see encode_video.
  void add_video(std::string_view tag, std::span<const std::uint8_t> pixels, VideoSize size,
                 double frames_per_second = 4, std::int64_t step = 0, const Details& details = {});

  /// Adds a sound of samples [frames, channels] in [-1, 1], `sample_rate` frames a second. Others are
  /// clamped.
  void add_audio(std::string_view tag, std::span<const float> samples, std::int64_t sample_rate = 44100,
                 std::int64_t channels = 1, std::int64_t step = 0, const Details& details = {});

  /// Adds text, shown as Markdown.
  void add_text(std::string_view tag, std::string_view markdown, std::int64_t step = 0,
                const Details& details = {});

  /// Adds the network's graph; TensorBoard shows one per run.
  /// Throws UsageError for a name that is empty or not unique, or an input that names no node.
  void add_graph(const Graph& graph, std::optional<double> wall_time = {});

  /// Adds what one step took, node by node: the Graphs tab then colours by time and memory. The nodes' names
  /// must be those of add_graph(); `tag` is what the step is called there.
  void add_graph_profile(std::string_view tag, std::span<const NodeProfile> nodes, std::int64_t step = 0);

  /// Says that this run is a session with these hyperparameters; its scalars become the metrics of its row.
  /// `start_time` is in seconds since 1970, default now. Once per run: TensorBoard ignores a second one.
  void add_hparams_start(const HParams& hparams, std::optional<double> start_time = {});

  /// Says how the session ended. Only the first end counts, in all files of the run.
  void add_hparams_end(SessionStatus status, std::optional<double> end_time = {});

  /// Describes the HParams table instead of leaving that to TensorBoard. See HParamsExperiment before using
  /// it.
  void add_hparams_experiment(const HParamsExperiment& experiment);

  /// Adds a precision-recall curve of predictions for one class.
  /// labels[i] is 0 or 1, scores[i] in [0, 1]; thresholds are 2 to 127, evenly spaced. Throws UsageError
  /// otherwise.
  void add_pr_curve(std::string_view tag, std::span<const std::uint8_t> labels, std::span<const float> scores,
                    std::int64_t step = 0, int thresholds = 127, const Details& details = {},
                    std::span<const float> weights = {});

  /// Adds a curve that the caller has computed. Throws UsageError unless all lists have the same length of 1
  /// or more.
  void add_pr_curve(std::string_view tag, const PrCurve& curve, std::int64_t step = 0,
                    const Details& details = {});

  /// Adds point clouds or meshes. Throws UsageError if numbers of values do not fit or a face names no point.
  void add_mesh(std::string_view tag, const Mesh& mesh, std::int64_t step = 0, const Details& details = {});

  /// Adds points [count, dimensions] to the Projector tab, at once and from the calling thread: the projector
  /// reads files, not events. Values that are not finite become 0. Throws UsageError if numbers do not match,
  /// and IoError.
  void add_embedding(std::string_view tag, std::span<const float> points, std::int64_t dimensions,
                     const EmbeddingLabels& labels = {}, const EmbeddingPictures& pictures = {},
                     std::int64_t step = 0);

  /// Adds numbers for programs that read the file; TensorBoard has no tab for them. Throws UsageError if
  /// `shape` does not have as many elements as there are values.
  void add_tensor(std::string_view tag, Values values, std::span<const std::int64_t> shape,
                  std::int64_t step = 0, const Details& details = {});

  /// Says which tags share a chart in the Custom Scalars tab.
  void add_custom_scalars_layout(const CustomScalarsLayout& layout);

  /// Returns when everything added so far is in the file. Throws IoError, naming the file.
  void flush();

  /// flush(), and returns when the disk has it too.
  void sync();

  /// How far the file goes with everything added so far: what a checkpoint keeps to cut the file back to when
  /// it is resumed. Does not wait: the file goes that far once a flush() that came later has returned.
  FilePosition position() const;

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
