// What a SummaryWriter adds as values of a tag: histograms, pictures, sound, text, curves, meshes and
// tensors.
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>

#include "tbwriter/summary_writer_state.h"

namespace sweep::tbwriter {
namespace {

// HistogramProto.
std::string encode_histogram(Histogram histogram) {
  // TensorBoard converts the buckets to floats. An infinite one would make its distributions NaN.
  const auto clamped = [](double limit) {
    constexpr double kMax = std::numeric_limits<float>::max();
    return std::clamp(limit, -kMax, kMax);
  };
  std::ranges::transform(histogram.limits, histogram.limits.begin(), clamped);
  return Message()
      .reserve(64 + 16 * histogram.limits.size())
      .real(1, clamped(histogram.min))
      .real(2, clamped(histogram.max))
      .real(3, histogram.number)
      .real(4, histogram.sum)
      .real(5, histogram.sum_squares)
      .packed(6, std::span<const double>(histogram.limits))
      .packed(7, std::span<const double>(histogram.counts))
      .take();
}

// As in TensorBoard's and PyTorch's writers: avoids division by zero and is too small to change real counts.
constexpr double kMinimumCount = 1e-7;

void check_pr_curve(std::span<const std::uint8_t> labels, std::span<const float> scores,
                    std::span<const float> weights, int thresholds) {
  require(thresholds >= 2 && thresholds <= 127, "a PR curve has ", thresholds,
          " thresholds, but needs 2 to 127");
  require(labels.size() == scores.size() && (weights.empty() || weights.size() == labels.size()),
          "a PR curve has ", labels.size(), " labels, ", scores.size(), " scores and ", weights.size(),
          " weights, but needs as many of each");
  for (std::size_t i = 0; i < labels.size(); ++i) {
    require(labels[i] <= 1, "a PR curve's label ", i, " is ", labels[i], ", but must be 0 or 1");
    require(scores[i] >= 0.0f && scores[i] <= 1.0f, "a PR curve's score ", i, " is ", scores[i],
            ", but must be from 0 to 1");
    const float weight = weights.empty() ? 1 : weights[i];
    require(weight >= 0.0f && std::isfinite(weight), "a PR curve's weight ", i, " is ", weight,
            ", but must be a finite number of at least 0");
  }
}

void check_mesh(const Mesh& mesh) {
  const auto batch = static_cast<std::size_t>(mesh.batch);
  require(mesh.batch >= 1 && !mesh.vertices.empty() && mesh.vertices.size() % (3 * batch) == 0,
          "a mesh of batch ", mesh.batch, " has ", mesh.vertices.size(),
          " coordinates, but needs 3 for every point");
  require(mesh.colors.empty() || mesh.colors.size() == mesh.vertices.size(), "a mesh has ",
          mesh.colors.size(), " colour values for ", mesh.vertices.size(), " coordinates, but needs as many");
  require(mesh.faces.size() % (3 * batch) == 0, "a mesh of batch ", mesh.batch, " has ", mesh.faces.size(),
          " indices, but needs 3 for every triangle");
  const auto points = static_cast<std::int64_t>(mesh.vertices.size() / 3 / batch);
  for (const std::int32_t index : mesh.faces)
    require(index >= 0 && index < points, "a mesh's face names point ", index, " of ", points);
}

// Whether all extents are >= 0 and their product is `count`.
bool fits(std::span<const std::int64_t> shape, std::size_t count) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) return false;
  }
  return static_cast<std::size_t>(elements) == count;
}

}  // namespace

std::string encode_shape(std::span<const std::int64_t> extents) {
  return Message()
      .repeated(2, extents, [](std::int64_t extent) { return Message().integer(1, extent).take(); })
      .take();
}

std::string encode_tensor(const Values& values, std::span<const std::int64_t> shape) {
  if (std::holds_alternative<std::span<const BFloat16>>(values))
    return encode_tensor(converted<float>(values), shape);
  constexpr int kTypes[] = {kDtFloat, kDtDouble, kDtInt32, kDtInt64, kDtUint8, kDtFloat, kDtHalf};
  static_assert(std::size(kTypes) == std::variant_size_v<Values>);
  return Message()
      .integer(1, kTypes[values.index()])
      .message(2, encode_shape(shape))
      .bytes(4, bytes_of(values))
      .take();
}

std::string encode_strings(const std::vector<std::string_view>& strings,
                           std::span<const std::int64_t> shape) {
  return Message()
      .integer(1, kDtString)
      .message(2, encode_shape(shape))
      .repeated(8, strings, [](std::string_view text) { return text; })
      .take();
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
  Message message;
  message.reserve(32 + image.bytes.size())
      .integer(1, image.height)
      .integer(2, image.width)
      .integer(3, image.channels)
      .bytes(4, image.bytes);
  state_->add(tag, kImage, message.take(), step, details);
}

void SummaryWriter::add_images(std::string_view tag, std::span<const EncodedImage> images, std::int64_t step,
                               const Details& details) {
  require(!images.empty(), "\"", tag, "\": no images were given");
  const std::string width = std::to_string(images[0].width), height = std::to_string(images[0].height);
  std::vector<std::string_view> strings{width, height};
  for (const EncodedImage& image : images) {
    require(image.width == images[0].width && image.height == images[0].height, "\"", tag,
            "\": images of one tag and step must have the same size");
    strings.push_back(image.bytes);
  }
  const std::int64_t shape[] = {static_cast<std::int64_t>(strings.size())};
  state_->add(tag, kImages, encode_strings(strings, shape), step, details);
}

void SummaryWriter::add_audio(std::string_view tag, std::span<const float> samples, std::int64_t sample_rate,
                              std::int64_t channels, std::int64_t step, const Details& details) {
  require(sample_rate >= 1 && sample_rate <= 10'000'000 && channels >= 1 && channels <= 65535, "a sound has ",
          channels, " channels at ", sample_rate,
          " samples per second, but needs 1 to 65535 channels and 1 to 10000000 samples per second");
  require(samples.size() % static_cast<std::size_t>(channels) == 0, "a sound of ", channels, " channels has ",
          samples.size(), " samples, which are no whole frames");
  require(samples.size() <= 0x7FFFFF00u / 2, "a sound has more samples than a WAV file can hold");
  constexpr std::uint16_t kPcm = 1;
  constexpr std::size_t kHeader = 44;
  const auto data_size = static_cast<std::uint32_t>(samples.size() * 2);
  const auto frame_size = static_cast<std::uint32_t>(channels * 2);
  const auto rate = static_cast<std::uint32_t>(sample_rate);
  std::string wav;
  wav.reserve(kHeader + data_size);
  wav += "RIFF";
  wire::raw<std::uint32_t>(wav, static_cast<std::uint32_t>(kHeader) - 8 + data_size);
  wav += "WAVEfmt ";
  wire::raw<std::uint32_t>(wav, 16);
  wire::raw<std::uint16_t>(wav, kPcm);
  wire::raw<std::uint16_t>(wav, static_cast<std::uint16_t>(channels));
  wire::raw<std::uint32_t>(wav, rate);
  wire::raw<std::uint32_t>(wav, static_cast<std::uint32_t>(
                                    std::min<std::uint64_t>(std::uint64_t{rate} * frame_size, 0xFFFFFFFFu)));
  wire::raw<std::uint16_t>(wav, static_cast<std::uint16_t>(frame_size));
  wire::raw<std::uint16_t>(wav, 16);
  wav += "data";
  wire::raw<std::uint32_t>(wav, data_size);
  for (const float sample : samples) {
    const float clamped = std::isnan(sample) ? 0.0f : std::clamp(sample, -1.0f, 1.0f);
    wire::raw<std::int16_t>(wav, static_cast<std::int16_t>(std::lround(clamped * 32767.0f)));
  }
  Message message;
  message.reserve(64 + wav.size())
      .always(1, static_cast<float>(sample_rate))
      .integer(2, channels)
      .integer(3, static_cast<std::int64_t>(samples.size()) / channels)
      .bytes(4, wav)
      .bytes(5, "audio/wav");
  constexpr std::int64_t kWav = 11;  // AudioPluginData.Encoding
  state_->add(tag, kAudio, message.take(), step, details, Message().integer(2, kWav).take());
}

void SummaryWriter::add_text(std::string_view tag, std::string_view markdown, std::int64_t step,
                             const Details& details) {
  state_->add(tag, kText, encode_strings({valid_utf8(markdown)}, {}), step, details);
}

void SummaryWriter::add_pr_curve(std::string_view tag, std::span<const std::uint8_t> labels,
                                 std::span<const float> scores, std::int64_t step, int thresholds,
                                 const Details& details, std::span<const float> weights) {
  check_pr_curve(labels, scores, weights, thresholds);
  const auto n = static_cast<std::size_t>(thresholds);
  std::vector<double> positive(n), negative(n);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto bucket = static_cast<std::size_t>(scores[i] * static_cast<float>(thresholds - 1));
    (labels[i] == 1 ? positive : negative)[bucket] += weights.empty() ? 1.0 : static_cast<double>(weights[i]);
  }
  // Each score is counted once, in the bucket below it; suffix sums give the
  // counts at or above each threshold.
  for (std::size_t i = n - 1; i-- > 0;) {
    positive[i] += positive[i + 1];
    negative[i] += negative[i + 1];
  }
  std::array<std::vector<float>, 6> rows;
  for (std::size_t i = 0; i < n; ++i) {
    const double tp = positive[i], fp = negative[i], tn = negative[0] - fp, fn = positive[0] - tp;
    const double column[6] = {
        tp, fp, tn, fn, tp / std::max(kMinimumCount, tp + fp), tp / std::max(kMinimumCount, tp + fn)};
    for (std::size_t k = 0; k < 6; ++k) rows[k].push_back(static_cast<float>(column[k]));
  }
  add_pr_curve(tag, PrCurve{rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]}, step, details);
}

void SummaryWriter::add_pr_curve(std::string_view tag, const PrCurve& curve, std::int64_t step,
                                 const Details& details) {
  const std::array rows = {curve.true_positives,  curve.false_positives, curve.true_negatives,
                           curve.false_negatives, curve.precision,       curve.recall};
  const std::size_t thresholds = rows[0].size();
  std::vector<float> values;
  for (const auto& row : rows) {
    require(thresholds > 0 && row.size() == thresholds, "\"", tag,
            "\": a PR curve's six lists must have the same length, 1 or more");
    require(std::ranges::all_of(row, [](float value) { return std::isfinite(value); }), "\"", tag,
            "\": a PR curve has a number that is not finite; TensorBoard could not show it");
    values.insert(values.end(), row.begin(), row.end());
  }
  const auto extent = static_cast<std::int64_t>(thresholds);
  const std::int64_t shape[] = {6, extent};
  state_->add(tag, kPrCurve, encode_tensor(values, shape), step, details,
              Message().integer(2, extent).take());
}

void SummaryWriter::add_mesh(std::string_view tag, const Mesh& mesh, std::int64_t step,
                             const Details& details) {
  check_mesh(mesh);
  state_->check_open(tag);
  constexpr int kVertex = 1, kFace = 2, kColor = 3;
  const int components =
      1 << kVertex | (mesh.faces.empty() ? 0 : 1 << kFace) | (mesh.colors.empty() ? 0 : 1 << kColor);
  // One event: a part alone could not be shown, nor could parts of different times.
  std::deque<std::string> texts;  // that the points refer to
  std::vector<Point> points;
  const auto add = [&](const char* suffix, int content_type, const Values& values) {
    const auto count = static_cast<std::int64_t>(count_values(values));
    if (count == 0) return;
    const std::int64_t shape[] = {mesh.batch, count / 3 / mesh.batch, 3};
    Message content;  // MeshPluginData
    content.text(2, tag)
        .integer(3, content_type)
        .text(5, mesh.config)
        .packed(6, std::span<const std::int64_t>(shape))
        .integer(7, components);
    points.push_back({.tag = texts.emplace_back(std::string(tag) + suffix),
                      .kind = &kMesh,
                      .message = texts.emplace_back(encode_tensor(values, shape)),
                      .plugin_content = texts.emplace_back(content.take())});
  };
  add("_VERTEX", kVertex, mesh.vertices);
  add("_FACE", kFace, mesh.faces);
  add("_COLOR", kColor, mesh.colors);
  state_->add(points, step, details);
}

void SummaryWriter::add_tensor(std::string_view tag, const Values& values,
                               std::span<const std::int64_t> shape, std::int64_t step,
                               const Details& details) {
  std::string extents;
  for (const std::int64_t extent : shape) extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
  require(fits(shape, count_values(values)), "\"", tag, "\": a tensor's shape is [", extents, "], but ",
          count_values(values), " values were given");
  state_->add(tag, kTensor, encode_tensor(values, shape), step, details);
}

}  // namespace sweep::tbwriter
