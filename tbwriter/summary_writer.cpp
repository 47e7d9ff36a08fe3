#include "tbwriter/summary_writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <utility>

#include "core/base/utf8.h"
#include "tbwriter/message.h"
#include "tbwriter/summary_writer_state.h"

namespace sweep::tbwriter {
namespace {

std::string pr_curve_content(std::size_t thresholds) {
  return Message().integer(2, static_cast<std::int64_t>(thresholds)).take();
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
    : state_(std::make_unique<State>(log_dir, options)) {}

SummaryWriter::~SummaryWriter() {
  try {
    const bool failed = std::uncaught_exceptions() > state_->exceptions;
    state_->close(failed ? SessionStatus::kFailure : SessionStatus::kSuccess);
  } catch (const std::exception& error) {
    state_->warn(error.what());
  }
}

void SummaryWriter::add_scalar(std::string_view tag, double value, std::int64_t step,
                               const Details& details) {
  Point point{.tag = tag, .kind = &kScalar, .number = static_cast<float>(value)};
  state_->add({&point, 1}, step, details);
}

void SummaryWriter::add_scalar_tensor(std::string_view tag, double value, std::int64_t step,
                                      const Details& details) {
  const float number[] = {static_cast<float>(value)};
  state_->add(tag, kScalarTensor, encode_tensor(number, {}), step, details);
}

void SummaryWriter::add_scalar_batch(std::span<const ScalarPoint> points, std::int64_t step,
                                     const Details& details) {
  if (points.empty()) return;
  std::vector<Point> all;
  all.reserve(points.size());
  for (const ScalarPoint& point : points)
    all.push_back({.tag = point.tag, .kind = &kScalar, .number = static_cast<float>(point.value)});
  state_->add(all, step, details);
}

void SummaryWriter::add_scalars(std::string_view tag, std::span<const ScalarPoint> points, std::int64_t step,
                                const Details& details) {
  const auto line = [&](const std::string& directory) -> SummaryWriter& {
    const std::lock_guard lock(state_->mutex);
    state_->check_open(tag);
    const auto known = state_->lines.find(directory);
    if (known != state_->lines.end()) return *known->second;
    auto writer = std::make_unique<SummaryWriter>(log_dir() / directory, state_->options);
    return *state_->lines.emplace(directory, std::move(writer)).first->second;
  };
  for (const ScalarPoint& point : points)
    line(line_directory(tag, point.tag)).add_scalar(tag, point.value, step, details);
}

void SummaryWriter::add_histogram(std::string_view tag, const Values& values, std::int64_t step,
                                  const Details& details) {
  state_->add(tag, kHistogram, encode_histogram(make_histogram(values)), step, details);
}

void SummaryWriter::add_histogram(std::string_view tag, const Values& values, HistogramBins bins,
                                  std::int64_t step, const Details& details) {
  state_->add(tag, kHistogram, encode_histogram(make_histogram(values, bins)), step, details);
}

void SummaryWriter::add_histogram_counts(std::string_view tag, const Histogram& histogram, std::int64_t step,
                                         const Details& details) {
  state_->add(tag, kHistogram, encode_histogram(checked_histogram(histogram)), step, details);
}

void SummaryWriter::add_image(std::string_view tag, const EncodedImage& image, std::int64_t step,
                              const Details& details) {
  state_->add(tag, kImage, encode_image_message(image), step, details);
}

void SummaryWriter::add_images(std::string_view tag, std::span<const EncodedImage> images, std::int64_t step,
                               const Details& details) {
  if (images.empty()) throw UsageError("\"" + std::string(tag) + "\": no images were given");
  const std::string width = std::to_string(images[0].width), height = std::to_string(images[0].height);
  std::vector<std::string_view> strings{width, height};
  for (const EncodedImage& image : images) {
    if (image.width != images[0].width || image.height != images[0].height) {
      throw UsageError("\"" + std::string(tag) + "\": images of one tag and step must have the same size");
    }
    strings.push_back(image.bytes);
  }
  const std::int64_t shape[] = {static_cast<std::int64_t>(strings.size())};
  state_->add(tag, kImages, encode_strings(strings, shape), step, details);
}

void SummaryWriter::add_audio(std::string_view tag, std::span<const float> samples, std::int64_t sample_rate,
                              std::int64_t channels, std::int64_t step, const Details& details) {
  constexpr std::int64_t kWav = 11;  // AudioPluginData.Encoding
  state_->add(tag, kAudio, encode_audio(samples, sample_rate, channels), step, details,
              Message().integer(2, kWav).take());
}

void SummaryWriter::add_text(std::string_view tag, std::string_view markdown, std::int64_t step,
                             const Details& details) {
  state_->add(tag, kText, encode_strings({valid_utf8(markdown)}, {}), step, details);
}

void SummaryWriter::add_graph(const Graph& graph, std::optional<double> wall_time) {
  const std::string encoded = encode_graph(graph);
  std::unordered_set<std::string> nodes;
  for (const GraphNode& node : graph.nodes) nodes.insert(node.name);
  const std::lock_guard lock(state_->mutex);
  if (state_->graph_nodes) throw UsageError("this run has a graph already; TensorBoard shows one per run");
  state_->add_event("graph", state_->time_of(wall_time), 0, kGraphDef, encoded);
  state_->graph_nodes = std::move(nodes);
}

void SummaryWriter::add_graph_profile(std::string_view tag, std::span<const NodeProfile> nodes,
                                      std::int64_t step) {
  state_->check_open(tag);
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->graph_nodes && state_->options.purge_step <= 0)
      throw UsageError("a profile comes before the graph that it belongs to; call add_graph() first");
    for (const NodeProfile& node : nodes) {
      if (state_->graph_nodes && !state_->graph_nodes->contains(node.node))
        throw UsageError("the profile has the node " + node.node + ", but the graph has none of that name");
    }
  }
  state_->add_event(tag, state_->now(), step, kTaggedRunMetadata,
                    Message().text(1, tag).bytes(2, encode_step_stats(nodes)).take());
}

void SummaryWriter::add_hparams_start(const HParams& hparams, std::optional<double> start_time) {
  const std::string content = encode_session_start(hparams, state_->time_of(start_time));
  state_->add_plugin_record("_hparams_/session_start_info", "hparams", content, "", [this] {
    if (state_->session != State::Session::kNone)
      throw UsageError("this run's hparams session has been started before");
    State::check_metric_step(state_->largest_step);
    state_->limits_steps = true;
    state_->session = State::Session::kStarted;
  });
  for (const auto& [name, value] : hparams) {
    if (const auto* number = std::get_if<double>(&value); number != nullptr && !std::isfinite(*number)) {
      state_->warn("the hyperparameter " + name + " is " + std::to_string(*number) +
                   ", which TensorBoard's table cannot show; it is left out");
    }
  }
}

void SummaryWriter::add_hparams_end(SessionStatus status, std::optional<double> end_time) {
  state_->end_session(status, end_time);
}

void SummaryWriter::add_hparams_experiment(const HParamsExperiment& experiment) {
  state_->add_plugin_record("_hparams_/experiment", "hparams", encode_experiment(experiment, state_->now()),
                            "");
}

void SummaryWriter::add_pr_curve(std::string_view tag, std::span<const std::uint8_t> labels,
                                 std::span<const float> scores, std::int64_t step, int thresholds,
                                 const Details& details, std::span<const float> weights) {
  const std::vector<float> curve = make_pr_curve(labels, scores, weights, thresholds);
  const std::int64_t shape[] = {6, thresholds};
  state_->add(tag, kPrCurve, encode_tensor(curve, shape), step, details,
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
    if (!std::ranges::all_of(row, [](float value) { return std::isfinite(value); })) {
      throw UsageError("\"" + std::string(tag) +
                       "\": a PR curve has a number that is not finite; TensorBoard could not show it");
    }
    values.insert(values.end(), row.begin(), row.end());
  }
  const std::int64_t shape[] = {6, static_cast<std::int64_t>(thresholds)};
  state_->add(tag, kPrCurve, encode_tensor(values, shape), step, details, pr_curve_content(thresholds));
}

void SummaryWriter::add_mesh(std::string_view tag, const Mesh& mesh, std::int64_t step,
                             const Details& details) {
  check_mesh(mesh);
  state_->check_open(tag);
  constexpr int kVertex = 1, kFace = 2, kColor = 3;
  const int components =
      1 << kVertex | (mesh.faces.empty() ? 0 : 1 << kFace) | (mesh.colors.empty() ? 0 : 1 << kColor);
  const auto add = [&](const char* suffix, int content_type, const Values& values) {
    const auto count = static_cast<std::int64_t>(count_values(values));
    if (count == 0) return;
    const std::int64_t shape[] = {mesh.batch, count / 3 / mesh.batch, 3};
    state_->add(std::string(tag) + suffix, kMesh, encode_tensor(values, shape), step, details,
                encode_mesh_content(tag, content_type, shape, components, mesh.config));
  };
  add("_VERTEX", kVertex, mesh.vertices);
  add("_FACE", kFace, mesh.faces);
  add("_COLOR", kColor, mesh.colors);
}

void SummaryWriter::add_embedding(std::string_view tag, std::span<const float> points,
                                  std::int64_t dimensions, const EmbeddingLabels& labels,
                                  const EmbeddingPictures& pictures, std::int64_t step) {
  const std::lock_guard lock(state_->mutex);  // what the projector reads is read, extended and replaced
  state_->check_open(tag);
  write_embedding(log_dir(), tag, points, dimensions, labels, pictures, step);
}

void SummaryWriter::add_tensor(std::string_view tag, const Values& values,
                               std::span<const std::int64_t> shape, std::int64_t step,
                               const Details& details) {
  if (!fits(shape, count_values(values))) {
    std::string extents;
    for (const std::int64_t extent : shape) extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
    throw UsageError("\"" + std::string(tag) + "\": a tensor's shape is [" + extents + "], but " +
                     std::to_string(count_values(values)) + " values were given");
  }
  state_->add(tag, kTensor, encode_tensor(values, shape), step, details);
}

void SummaryWriter::add_custom_scalars_layout(const CustomScalarsLayout& layout) {
  state_->add_plugin_record("custom_scalars__config__", "custom_scalars", "",
                            encode_strings({encode_layout(layout)}, {}));
}

void SummaryWriter::flush() { state_->flush(false); }

void SummaryWriter::sync() { state_->flush(true); }

FilePosition SummaryWriter::position() const { return state_->log->end(); }

void SummaryWriter::close() { state_->close(SessionStatus::kSuccess); }

const std::filesystem::path& SummaryWriter::log_dir() const { return state_->log_dir; }

const std::filesystem::path& SummaryWriter::path() const { return state_->log->path(); }

}  // namespace sweep::tbwriter
