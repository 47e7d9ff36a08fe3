#include "tbwriter/encoding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <variant>

#include "tbwriter/error.h"
#include "tbwriter/message.h"

namespace sweep::tbwriter {
namespace {

std::string encode_chart(const Chart& chart) {
  Message message, content;
  message.text(1, chart.title);
  if (const auto* lines = std::get_if<MultilineChart>(&chart.content)) {
    content.repeated(1, lines->tags, [](const std::string& tag) { return valid_utf8(tag); });
    return message.message(2, content.take()).take();
  }
  content.repeated(1, std::get<MarginChart>(chart.content).series, [](const MarginSeries& series) {
    return Message().text(1, series.value).text(2, series.lower).text(3, series.upper).take();
  });
  return message.message(3, content.take()).take();
}

std::string encode_category(const ChartCategory& category) {
  return Message()
      .text(1, category.title)
      .repeated(2, category.charts, encode_chart)
      .integer(3, category.closed ? 1 : 0)
      .take();
}

// As in TensorBoard's and PyTorch's writers: avoids division by zero and is too small to change real counts.
constexpr double kMinimumCount = 1e-7;

void check_pr_curve(std::span<const std::uint8_t> labels, std::span<const float> scores,
                    std::span<const float> weights, int thresholds) {
  if (thresholds < 2 || thresholds > 127) {
    throw UsageError("a PR curve has " + std::to_string(thresholds) + " thresholds, but needs 2 to 127");
  }
  if (labels.size() != scores.size() || (!weights.empty() && weights.size() != labels.size())) {
    throw UsageError("a PR curve has " + std::to_string(labels.size()) + " labels, " +
                     std::to_string(scores.size()) + " scores and " + std::to_string(weights.size()) +
                     " weights, but needs as many of each");
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] > 1) {
      throw UsageError("a PR curve's label " + std::to_string(i) + " is " + std::to_string(labels[i]) +
                       ", but must be 0 or 1");
    }
    if (!(scores[i] >= 0.0f && scores[i] <= 1.0f)) {
      throw UsageError("a PR curve's score " + std::to_string(i) + " is " + std::to_string(scores[i]) +
                       ", but must be from 0 to 1");
    }
    if (!weights.empty() && !(weights[i] >= 0.0f && std::isfinite(weights[i]))) {
      throw UsageError("a PR curve's weight " + std::to_string(i) + " is " + std::to_string(weights[i]) +
                       ", but must be a finite number of at least 0");
    }
  }
}

// TensorBoard would drop a number that is not finite from the row but make the column's range NaN. A
// null_value makes it fail where the column is sorted or filtered.
bool is_shown(const HParamValue& value) {
  const auto* number = std::get_if<double>(&value);
  return number != nullptr ? std::isfinite(*number) : !std::holds_alternative<std::nullptr_t>(value);
}

// google.protobuf.Value of one that is shown.
std::string encode_value(const HParamValue& value) {
  Message message;
  if (const auto* flag = std::get_if<bool>(&value)) return message.always(4, std::int64_t{*flag}).take();
  if (const auto* text = std::get_if<std::string>(&value))
    return message.message(3, valid_utf8(*text)).take();
  const auto* integer = std::get_if<std::int64_t>(&value);
  return message.always(2, integer != nullptr ? static_cast<double>(*integer) : std::get<double>(value))
      .take();
}

std::string encode_info(const HParamInfo& info) {
  Message message, domain;
  message.text(1, info.name).text(2, info.display_name).text(3, info.description);
  message.integer(4, static_cast<int>(info.type));
  if (!info.discrete.empty()) {
    for (const HParamValue& value : info.discrete) {
      if (is_shown(value)) domain.message(1, encode_value(value));
    }
    message.message(5, domain.take());
  } else if (info.interval) {
    message.message(6, domain.real(1, info.interval->first).real(2, info.interval->second).take());
  }
  return message.integer(7, info.differs ? 1 : 0).take();
}

std::string encode_metric(const MetricInfo& info) {
  return Message()
      .message(1, Message().text(1, info.group).text(2, info.tag).take())
      .text(3, info.display_name)
      .text(4, info.description)
      .take();
}

}  // namespace

std::string encode_metadata(std::string_view plugin, std::string_view content, DataClass data_class,
                            std::string_view display_name, std::string_view description) {
  return Message()
      .message(1, Message().bytes(1, plugin).bytes(2, content).take())
      .text(2, display_name)
      .text(3, description)
      .integer(4, static_cast<int>(data_class))
      .take();
}

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

std::string encode_image_message(const EncodedImage& image) {
  return Message()
      .reserve(32 + image.bytes.size())
      .integer(1, image.height)
      .integer(2, image.width)
      .integer(3, image.channels)
      .bytes(4, image.bytes)
      .take();
}

std::string encode_audio(std::span<const float> samples, std::int64_t sample_rate, std::int64_t channels) {
  if (sample_rate < 1 || sample_rate > 10'000'000 || channels < 1 || channels > 65535) {
    throw UsageError(
        "a sound has " + std::to_string(channels) + " channels at " + std::to_string(sample_rate) +
        " samples per second, but needs 1 to 65535 channels and 1 to 10000000 samples per second");
  }
  if (samples.size() % static_cast<std::size_t>(channels) != 0) {
    throw UsageError("a sound of " + std::to_string(channels) + " channels has " +
                     std::to_string(samples.size()) + " samples, which are no whole frames");
  }
  if (samples.size() > 0x7FFFFF00u / 2) throw UsageError("a sound has more samples than a WAV file can hold");
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
  return Message()
      .reserve(64 + wav.size())
      .always(1, static_cast<float>(sample_rate))
      .integer(2, channels)
      .integer(3, static_cast<std::int64_t>(samples.size()) / channels)
      .bytes(4, wav)
      .bytes(5, "audio/wav")
      .take();
}

std::vector<float> make_pr_curve(std::span<const std::uint8_t> labels, std::span<const float> scores,
                                 std::span<const float> weights, int thresholds) {
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
  std::vector<float> curve(6 * n);
  for (std::size_t i = 0; i < n; ++i) {
    const double tp = positive[i], fp = negative[i], tn = negative[0] - fp, fn = positive[0] - tp;
    const double row[6] = {
        tp, fp, tn, fn, tp / std::max(kMinimumCount, tp + fp), tp / std::max(kMinimumCount, tp + fn)};
    for (std::size_t k = 0; k < 6; ++k) curve[k * n + i] = static_cast<float>(row[k]);
  }
  return curve;
}

void check_mesh(const Mesh& mesh) {
  const auto batch = static_cast<std::size_t>(mesh.batch);
  if (mesh.batch < 1 || mesh.vertices.empty() || mesh.vertices.size() % (3 * batch) != 0) {
    throw UsageError("a mesh of batch " + std::to_string(mesh.batch) + " has " +
                     std::to_string(mesh.vertices.size()) + " coordinates, but needs 3 for every point");
  }
  if (!mesh.colors.empty() && mesh.colors.size() != mesh.vertices.size()) {
    throw UsageError("a mesh has " + std::to_string(mesh.colors.size()) + " colour values for " +
                     std::to_string(mesh.vertices.size()) + " coordinates, but needs as many");
  }
  if (mesh.faces.size() % (3 * batch) != 0) {
    throw UsageError("a mesh of batch " + std::to_string(mesh.batch) + " has " +
                     std::to_string(mesh.faces.size()) + " indices, but needs 3 for every triangle");
  }
  const auto points = static_cast<std::int64_t>(mesh.vertices.size() / 3 / batch);
  for (const std::int32_t index : mesh.faces) {
    if (index >= 0 && index < points) continue;
    throw UsageError("a mesh's face names point " + std::to_string(index) + " of " + std::to_string(points));
  }
}

std::string encode_mesh_content(std::string_view name, int content_type, std::span<const std::int64_t> shape,
                                int components, std::string_view config) {
  return Message()
      .text(2, name)
      .integer(3, content_type)
      .text(5, config)
      .packed(6, shape)
      .integer(7, components)
      .take();
}

// HParamsPluginData has one member of a oneof; its version 0 is the default and not written.

std::string encode_session_start(const HParams& hparams, double start_time) {
  Message session;
  std::set<std::string_view> names;
  for (const auto& [name, value] : hparams) {
    if (name.empty()) throw UsageError("a hyperparameter has no name");
    if (!names.insert(name).second) throw UsageError("the hyperparameter " + name + " is given twice");
    if (!is_shown(value)) continue;
    session.message(1, Message().message(1, valid_utf8(name)).message(2, encode_value(value)).take());
  }
  return Message().message(3, session.real(5, start_time).take()).take();
}

std::string encode_session_end(SessionStatus status, double end_time) {
  return Message().message(4, Message().integer(1, static_cast<int>(status)).real(2, end_time).take()).take();
}

std::string encode_experiment(const HParamsExperiment& experiment, double created) {
  Message message;
  message.text(1, experiment.description)
      .text(2, experiment.user)
      .real(3, created)
      .repeated(4, experiment.hparams, encode_info)
      .repeated(5, experiment.metrics, encode_metric)
      .text(6, experiment.name);
  return Message().message(2, message.take()).take();
}

std::string encode_layout(const CustomScalarsLayout& layout) {
  return Message().repeated(2, layout, encode_category).take();
}

}  // namespace sweep::tbwriter
