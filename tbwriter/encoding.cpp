#include "tbwriter/encoding.h"

#include <algorithm>
#include <limits>
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

std::string encode_layout(const CustomScalarsLayout& layout) {
  return Message().repeated(2, layout, encode_category).take();
}

}  // namespace sweep::tbwriter
