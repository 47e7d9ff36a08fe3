// Samples and their targets, shared by all runs of a sweep: in memory, or in a mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "core/base/maybe_owned_array.h"
#include "core/base/shape.h"

namespace sweep {

class MappedFile;

/// Values of samples, row-major. Bytes stay bytes, also in the memory of a device; a network gets byte / 255.
using SampleArray = std::variant<MaybeOwnedArray<std::uint8_t>, MaybeOwnedArray<float>>;
using SampleSpan = std::variant<std::span<const std::uint8_t>, std::span<const float>>;

/// Targets: one class per sample, or one or several numbers.
using TargetArray = std::variant<MaybeOwnedArray<std::int32_t>, MaybeOwnedArray<float>>;
using TargetSpan = std::variant<std::span<const std::int32_t>, std::span<const float>>;

/// The number of values of an array or span, whatever their type.
template <typename Variant>
std::size_t value_count(const Variant& values) {
  return std::visit([](const auto& typed) { return typed.size(); }, values);
}

/// Bytes of one value of an array or span.
template <typename Variant>
std::size_t value_bytes(const Variant& values) {
  return std::visit([](const auto& typed) { return sizeof(typed[0]); }, values);
}

/// The bytes of all values of an array or span.
template <typename Variant>
std::span<const std::byte> bytes_of(const Variant& values) {
  return std::visit([](const auto& typed) { return std::as_bytes(std::span(typed.data(), typed.size())); },
                    values);
}

/// A span of the array's type over `count` of its values, or all that are left, from `first` on.
template <typename... T>
std::variant<std::span<const T>...> view(const std::variant<MaybeOwnedArray<T>...>& values,
                                         std::size_t first = 0, std::size_t count = std::dynamic_extent) {
  using Span = std::variant<std::span<const T>...>;
  return std::visit(
      [&](const auto& typed) { return Span(std::span(typed.data(), typed.size()).subspan(first, count)); },
      values);
}

/// Whether the targets are numbers instead of classes.
template <typename Variant>
bool is_regression(const Variant& targets) {
  return targets.index() == 1;
}

/// Samples with targets. Immutable once built; may be shared between threads.
struct TensorDataset {
  Shape shape;          // of one sample: [channels, height, width] or [features]
  SampleArray samples;  // [count, *shape]
  TargetArray targets;  // [count] classes, each in [0, classes), or [count, numbers per sample]
  std::shared_ptr<const MappedFile> file = nullptr;  // that the samples lie in, if they do

  std::size_t sample_values() const { return element_count(shape); }
  std::size_t size() const {
    const std::size_t values = sample_values();
    return values == 0 ? 0 : value_count(samples) / values;
  }
  /// The values of sample `row`, *shape; row < size().
  SampleSpan sample(std::size_t row) const { return view(samples, row * sample_values(), sample_values()); }

  /// The arrays by type. Throw std::bad_variant_access if they hold the other one.
  std::span<const std::uint8_t> pixels() const { return std::get<0>(samples); }
  std::span<const float> floats() const { return std::get<1>(samples); }
  std::span<const std::int32_t> labels() const { return std::get<0>(targets); }
  std::span<const float> numbers() const { return std::get<1>(targets); }
};

/// Rows of a set: a training, validation or test part, without copying. The parts of one split share its
/// order.
struct Subset {
  std::shared_ptr<const TensorDataset> set;
  std::size_t first = 0;  // of the order
  std::size_t count = 0;
  std::shared_ptr<const std::vector<std::uint32_t>> order = nullptr;  // of the rows; null: 0, 1, 2, …

  /// The row of sample i; i < count.
  std::size_t row(std::size_t i) const { return order ? (*order)[first + i] : first + i; }
  /// Samples from … from + size − 1 of these.
  Subset part(std::size_t from, std::size_t size) const { return {set, first + from, size, order}; }

  /// The targets of these samples by type, [count] or [count, numbers]. Throw std::bad_variant_access as
  /// those of the set.
  std::vector<std::int32_t> labels() const { return targets<std::int32_t>(); }
  std::vector<float> numbers() const { return targets<float>(); }

 private:
  template <typename T>
  std::vector<T> targets() const {
    std::vector<T> values;
    if (count == 0) return values;
    const auto& all = std::get<MaybeOwnedArray<T>>(set->targets);
    const std::size_t rows = set->size();
    const std::size_t width = rows == 0 ? 0 : all.size() / rows;
    for (std::size_t i = 0; i < count; ++i)
      values.insert(values.end(), all.data() + row(i) * width, all.data() + (row(i) + 1) * width);
    return values;
  }
};

}  // namespace sweep
