#include "tbwriter/proto_encoding.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/base/utf8.h"
#include "tbwriter/error.h"
#include "tbwriter/wire.h"

namespace sweep::tbwriter {
namespace {

std::string encode_shape(std::span<const std::int64_t> extents) {
  std::string shape;
  for (const std::int64_t extent : extents) {
    std::string dim;
    wire::integer(dim, 1, extent);
    wire::always_bytes(shape, 2, dim);
  }
  return shape;
}

}  // namespace

std::string encode_metadata(std::string_view plugin, std::string_view content, DataClass data_class,
                            std::string_view display_name, std::string_view description) {
  std::string plugin_data, metadata;
  wire::bytes(plugin_data, 1, plugin);
  wire::bytes(plugin_data, 2, content);
  wire::always_bytes(metadata, 1, plugin_data);
  wire::bytes(metadata, 2, valid_utf8(display_name));
  wire::bytes(metadata, 3, valid_utf8(description));
  wire::integer(metadata, 4, static_cast<int>(data_class));
  return metadata;
}

std::string encode_histogram(const Histogram& histogram) {
  std::string message;
  message.reserve(64 + 16 * histogram.limits.size());
  // TensorBoard converts the buckets to floats. An infinite one would make its distributions NaN.
  constexpr double kMost = std::numeric_limits<float>::max();
  wire::real(message, 1, std::clamp(histogram.min, -kMost, kMost));
  wire::real(message, 2, std::clamp(histogram.max, -kMost, kMost));
  wire::real(message, 3, histogram.number);
  wire::real(message, 4, histogram.sum);
  wire::real(message, 5, histogram.sum_squares);
  const bool fits =
      histogram.limits.empty() || (histogram.limits.front() >= -kMost && histogram.limits.back() <= kMost);
  if (fits) {
    wire::packed(message, 6, histogram.limits);
  } else {
    std::vector<double> limits = histogram.limits;
    for (double& limit : limits) limit = std::clamp(limit, -kMost, kMost);
    wire::packed(message, 6, limits);
  }
  wire::packed(message, 7, histogram.counts);
  return message;
}

std::string encode_image_message(const EncodedImage& image) {
  std::string message;
  message.reserve(32 + image.bytes.size());
  wire::integer(message, 1, image.height);
  wire::integer(message, 2, image.width);
  wire::integer(message, 3, image.channels);
  wire::bytes(message, 4, image.bytes);
  return message;
}

std::string encode_text_tensor(std::string_view text) {
  std::string tensor;
  wire::integer(tensor, 1, kDtString);
  wire::always_bytes(tensor, 2, "");  // rank 0
  wire::always_bytes(tensor, 8, text);
  return tensor;
}

std::string encode_strings_tensor(std::span<const std::string> strings) {
  std::string tensor;
  const std::int64_t shape[] = {static_cast<std::int64_t>(strings.size())};
  wire::integer(tensor, 1, kDtString);
  wire::always_bytes(tensor, 2, encode_shape(shape));
  for (const std::string& text : strings) wire::always_bytes(tensor, 8, text);
  return tensor;
}

std::string encode_tensor(DataType type, std::string_view bytes, std::span<const std::int64_t> shape) {
  std::string tensor;
  wire::integer(tensor, 1, type);
  wire::always_bytes(tensor, 2, encode_shape(shape));
  wire::bytes(tensor, 4, bytes);
  return tensor;
}

std::string encode_float_tensor(std::span<const float> values, std::span<const std::int64_t> shape) {
  return encode_tensor(kDtFloat, {reinterpret_cast<const char*>(values.data()), values.size_bytes()}, shape);
}

std::string encode_audio_message(std::string_view wav, std::int64_t sample_rate, std::int64_t channels,
                                 std::int64_t frames) {
  std::string message;
  message.reserve(64 + wav.size());
  wire::always_float(message, 1, static_cast<float>(sample_rate));
  wire::integer(message, 2, channels);
  wire::integer(message, 3, frames);
  wire::bytes(message, 4, wav);
  wire::bytes(message, 5, "audio/wav");
  return message;
}

std::string encode_mesh_content(std::string_view name, int content_type, std::span<const std::int64_t> shape,
                                int components, std::string_view config) {
  std::string message;
  wire::bytes(message, 2, name);
  wire::integer(message, 3, content_type);
  wire::bytes(message, 5, valid_utf8(config));
  wire::packed(message, 6, shape);
  wire::integer(message, 7, components);
  return message;
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

std::string encode_layout(const CustomScalarsLayout& layout) {
  std::string message;
  for (const ChartCategory& category : layout) {
    std::string category_message;
    wire::bytes(category_message, 1, valid_utf8(category.title));
    for (const Chart& chart : category.charts) {
      std::string chart_message, content;
      wire::bytes(chart_message, 1, valid_utf8(chart.title));
      if (const auto* lines = std::get_if<MultilineChart>(&chart.content)) {
        for (const std::string& tag : lines->tags) wire::always_bytes(content, 1, valid_utf8(tag));
        wire::always_bytes(chart_message, 2, content);
      } else {
        for (const MarginSeries& series : std::get<MarginChart>(chart.content).series) {
          std::string series_message;
          wire::bytes(series_message, 1, valid_utf8(series.value));
          wire::bytes(series_message, 2, valid_utf8(series.lower));
          wire::bytes(series_message, 3, valid_utf8(series.upper));
          wire::always_bytes(content, 1, series_message);
        }
        wire::always_bytes(chart_message, 3, content);
      }
      wire::always_bytes(category_message, 2, chart_message);
    }
    wire::integer(category_message, 3, category.closed ? 1 : 0);
    wire::always_bytes(message, 2, category_message);
  }
  return message;
}

}  // namespace sweep::tbwriter
