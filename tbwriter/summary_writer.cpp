#include "tbwriter/summary_writer.h"

#include <algorithm>
#include <array>
#include <exception>
#include <unordered_set>
#include <utility>

#include "core/base/utf8.h"
#include "tbwriter/audio.h"
#include "tbwriter/histogram.h"
#include "tbwriter/pr_curve.h"
#include "tbwriter/proto_encoding.h"
#include "tbwriter/summary_writer_implementation.h"
#include "tbwriter/wire.h"

namespace sweep::tbwriter {
namespace {

std::string pr_curve_content(std::size_t thresholds) {
  std::string content;
  wire::integer(content, 2, static_cast<std::int64_t>(thresholds));
  return content;
}

// Tag "a/b" and line "c" give the directory "a_b_c", without separators and leading dots, so that it stays
// inside the run's.
std::string line_directory(std::string_view tag, std::string_view line) {
  std::string name = valid_utf8(tag) + "_" + valid_utf8(line);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '\0'; }, '_');
  return name.starts_with('.') ? "_" + name : name;
}

// Whether all extents are >= 0 and their product is `count`. Divides, because the product may overflow.
bool fits(std::span<const std::int64_t> shape, std::size_t count) {
  if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; })) return false;
  if (std::ranges::find(shape, 0) != shape.end()) return count == 0;
  std::uint64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (static_cast<std::uint64_t>(extent) > count / elements) return false;
    elements *= static_cast<std::uint64_t>(extent);
  }
  return elements == count;
}

}  // namespace

SummaryWriter::SummaryWriter(const std::filesystem::path& log_dir, WriterOptions options)
    : implementation_(std::make_unique<Implementation>(log_dir, options)) {}

SummaryWriter::~SummaryWriter() {
  try {
    const bool failed = implementation_->destroyed_by_exception();
    implementation_->close(failed ? SessionStatus::kFailure : SessionStatus::kSuccess);
  } catch (const std::exception& error) {
    implementation_->warn(error.what());
  }
}

void SummaryWriter::add_scalar(std::string_view tag, double value, std::int64_t step,
                               const Details& details) {
  Point point{tag, Kind::kScalar, Member(static_cast<float>(value))};
  implementation_->add({&point, 1}, step, details);
}

void SummaryWriter::add_scalar_tensor(std::string_view tag, double value, std::int64_t step,
                                      const Details& details) {
  const float number[] = {static_cast<float>(value)};
  implementation_->add(tag, Kind::kScalarTensor, field::kTensor, encode_float_tensor(number, {}), step,
                       details);
}

void SummaryWriter::add_scalar_batch(std::span<const ScalarPoint> points, std::int64_t step,
                                     const Details& details) {
  if (points.empty()) return;
  std::vector<Point> all;
  all.reserve(points.size());
  for (const ScalarPoint& point : points)
    all.push_back({point.tag, Kind::kScalar, Member(static_cast<float>(point.value))});
  implementation_->add(all, step, details);
}

void SummaryWriter::add_scalars(std::string_view tag, std::span<const ScalarPoint> points, std::int64_t step,
                                const Details& details) {
  for (const ScalarPoint& point : points) {
    implementation_->line(line_directory(tag, point.tag)).add_scalar(tag, point.value, step, details);
  }
}

void SummaryWriter::add_histogram(std::string_view tag, Values values, std::int64_t step,
                                  const Details& details) {
  implementation_->add(tag, Kind::kHistogram, field::kHistogram, encode_histogram(make_histogram(values)),
                       step, details);
}

void SummaryWriter::add_histogram(std::string_view tag, Values values, HistogramBins bins, std::int64_t step,
                                  const Details& details) {
  implementation_->add(tag, Kind::kHistogram, field::kHistogram,
                       encode_histogram(make_histogram(values, bins)), step, details);
}

void SummaryWriter::add_histogram_counts(std::string_view tag, const HistogramCounts& histogram,
                                         std::int64_t step, const Details& details) {
  implementation_->add(tag, Kind::kHistogram, field::kHistogram,
                       encode_histogram(checked_histogram(histogram)), step, details);
}

void SummaryWriter::add_image(std::string_view tag, const EncodedImage& image, std::int64_t step,
                              const Details& details) {
  implementation_->add(tag, Kind::kImage, field::kImage, encode_image_message(image), step, details);
}

void SummaryWriter::add_images(std::string_view tag, std::span<const EncodedImage> images, std::int64_t step,
                               const Details& details) {
  if (images.empty()) throw UsageError("\"" + std::string(tag) + "\": no images were given");
  std::vector<std::string> strings{std::to_string(images[0].width), std::to_string(images[0].height)};
  for (const EncodedImage& image : images) {
    if (image.width != images[0].width || image.height != images[0].height) {
      throw UsageError("\"" + std::string(tag) + "\": images of one tag and step must have the same size");
    }
    strings.push_back(image.bytes);
  }
  implementation_->add(tag, Kind::kImages, field::kTensor, encode_strings_tensor(strings), step, details);
}

void SummaryWriter::add_image(std::string_view tag, const Pixels& pixels, ImageSize size, std::int64_t step,
                              const Details& details) {
  add_image(tag, encode_image(pixels, size), step, details);
}

void SummaryWriter::add_image_grid(std::string_view tag, const Pixels& pixels, BatchSize size,
                                   std::int64_t step, const GridOptions& grid, const Details& details) {
  add_image(tag, encode_image_grid(pixels, size, grid), step, details);
}

void SummaryWriter::add_image_with_boxes(std::string_view tag, const Pixels& pixels, ImageSize size,
                                         std::span<const Box> boxes, std::int64_t step,
                                         const Details& details) {
  add_image(tag, encode_image_with_boxes(pixels, size, boxes), step, details);
}

void SummaryWriter::add_video(std::string_view tag, std::span<const std::uint8_t> pixels, VideoSize size,
                              double frames_per_second, std::int64_t step, const Details& details) {
  add_image(tag, encode_video(pixels, size, frames_per_second), step, details);
}

void SummaryWriter::add_videos(std::string_view tag, const Pixels& pixels, VideoBatchSize size,
                               double frames_per_second, std::int64_t step, const Details& details) {
  add_image(tag, encode_videos(pixels, size, frames_per_second), step, details);
}

void SummaryWriter::add_audio(std::string_view tag, std::span<const float> samples, std::int64_t sample_rate,
                              std::int64_t channels, std::int64_t step, const Details& details) {
  constexpr std::int64_t kWav = 11;  // AudioPluginData.Encoding
  std::string content;
  wire::integer(content, 2, kWav);
  const std::string wav = encode_wav(samples, sample_rate, channels);
  const std::string message =
      encode_audio_message(wav, sample_rate, channels, static_cast<std::int64_t>(samples.size()) / channels);
  implementation_->add(tag, Kind::kAudio, field::kAudio, message, step, details, content);
}

void SummaryWriter::add_text(std::string_view tag, std::string_view markdown, std::int64_t step,
                             const Details& details) {
  implementation_->add(tag, Kind::kText, field::kTensor, encode_text_tensor(valid_utf8(markdown)), step,
                       details);
}

void SummaryWriter::add_graph(const Graph& graph, std::optional<double> wall_time) {
  std::unordered_set<std::string> nodes;
  for (const GraphNode& node : graph.nodes) nodes.insert(node.name);
  implementation_->set_graph(std::move(nodes), [&, encoded = encode_graph(graph)] {
    implementation_->add_event("graph", implementation_->time_of(wall_time), 0, field::kGraphDef, encoded);
  });
}

void SummaryWriter::add_graph_profile(std::string_view tag, std::span<const NodeProfile> nodes,
                                      std::int64_t step) {
  if (tag.empty()) throw UsageError("a profile's tag is empty; TensorBoard could not show it");
  implementation_->check_nodes(nodes);
  std::string tagged;
  wire::bytes(tagged, 1, valid_utf8(tag));
  wire::bytes(tagged, 2, encode_step_stats(nodes));
  implementation_->add_event(tag, implementation_->now(), step, field::kTaggedRunMetadata, tagged);
}

void SummaryWriter::add_hparams_start(const HParams& hparams, std::optional<double> start_time) {
  implementation_->start_session(hparams, start_time);
}

void SummaryWriter::add_hparams_end(SessionStatus status, std::optional<double> end_time) {
  implementation_->end_session(status, end_time);
}

void SummaryWriter::add_hparams_experiment(const HParamsExperiment& experiment) {
  implementation_->add_plugin_record("_hparams_/experiment", "hparams",
                                     encode_experiment(experiment, implementation_->now()), "");
}

void SummaryWriter::add_pr_curve(std::string_view tag, std::span<const std::uint8_t> labels,
                                 std::span<const float> scores, std::int64_t step, int thresholds,
                                 const Details& details, std::span<const float> weights) {
  const std::vector<float> curve = make_pr_curve(labels, scores, weights, thresholds);
  const std::int64_t shape[] = {6, thresholds};
  implementation_->add(tag, Kind::kPrCurve, field::kTensor, encode_float_tensor(curve, shape), step, details,
                       pr_curve_content(static_cast<std::size_t>(thresholds)));
}

void SummaryWriter::add_pr_curve(std::string_view tag, const PrCurve& curve, std::int64_t step,
                                 const Details& details) {
  const std::array rows = {curve.true_positives,  curve.false_positives, curve.true_negatives,
                           curve.false_negatives, curve.precision,       curve.recall};
  const std::size_t thresholds = rows[0].size();
  std::vector<float> values;
  for (const auto& row : rows) {
    if (thresholds == 0 || row.size() != thresholds) {
      throw UsageError("\"" + std::string(tag) +
                       "\": a PR curve's six lists must have the same length, 1 or more");
    }
    values.insert(values.end(), row.begin(), row.end());
  }
  const std::int64_t shape[] = {6, static_cast<std::int64_t>(thresholds)};
  implementation_->add(tag, Kind::kPrCurve, field::kTensor, encode_float_tensor(values, shape), step, details,
                       pr_curve_content(thresholds));
}

void SummaryWriter::add_mesh(std::string_view tag, const Mesh& mesh, std::int64_t step,
                             const Details& details) {
  check_mesh(mesh);
  if (tag.empty()) throw UsageError("a tag is empty; TensorBoard could not show it");
  constexpr int kVertex = 1, kFace = 2, kColor = 3;
  const int components =
      1 << kVertex | (mesh.faces.empty() ? 0 : 1 << kFace) | (mesh.colors.empty() ? 0 : 1 << kColor);
  const auto add = [&](const char* suffix, int content_type, DataType data_type, auto values) {
    if (values.empty()) return;
    const std::int64_t shape[] = {mesh.batch, static_cast<std::int64_t>(values.size()) / 3 / mesh.batch, 3};
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    implementation_->add(std::string(tag) + suffix, Kind::kMesh, field::kTensor,
                         encode_tensor(data_type, bytes, shape), step, details,
                         encode_mesh_content(valid_utf8(tag), content_type, shape, components, mesh.config));
  };
  add("_VERTEX", kVertex, kDtFloat, mesh.vertices);
  add("_FACE", kFace, kDtInt32, mesh.faces);
  add("_COLOR", kColor, kDtUint8, mesh.colors);
}

void SummaryWriter::add_embedding(std::string_view tag, std::span<const float> points,
                                  std::int64_t dimensions, const EmbeddingLabels& labels,
                                  const EmbeddingPictures& pictures, std::int64_t step) {
  write_embedding(log_dir(), tag, points, dimensions, labels, pictures, step);
}

void SummaryWriter::add_tensor(std::string_view tag, Values values, std::span<const std::int64_t> shape,
                               std::int64_t step, const Details& details) {
  if (!fits(shape, values.count())) {
    std::string extents;
    for (const std::int64_t extent : shape) extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
    throw UsageError("\"" + std::string(tag) + "\": a tensor's shape is [" + extents + "], but " +
                     std::to_string(values.count()) + " values were given");
  }
  if (values.type() == ValueType::kBFloat16) return add_tensor(tag, to_floats(values), shape, step, details);
  const auto bytes = values.bytes();
  const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  implementation_->add(tag, Kind::kTensor, field::kTensor,
                       encode_tensor(static_cast<DataType>(values.type()), content, shape), step, details);
}

void SummaryWriter::add_custom_scalars_layout(const CustomScalarsLayout& layout) {
  implementation_->add_plugin_record("custom_scalars__config__", "custom_scalars", "",
                                     encode_text_tensor(encode_layout(layout)));
}

void SummaryWriter::flush() { implementation_->flush(false); }

void SummaryWriter::sync() { implementation_->flush(true); }

FilePosition SummaryWriter::position() const { return implementation_->log->end(); }

void SummaryWriter::close() { implementation_->close(SessionStatus::kSuccess); }

const std::filesystem::path& SummaryWriter::log_dir() const { return implementation_->log_dir; }

const std::filesystem::path& SummaryWriter::path() const { return implementation_->log->path(); }

}  // namespace sweep::tbwriter
