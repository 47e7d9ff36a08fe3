// Samples and their targets, shared by all runs of a sweep: in memory, or in a mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>

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

/// A span of the array's type over all of its values.
inline SampleSpan view(const SampleArray& samples) {
  return std::visit([](const auto& typed) { return SampleSpan(std::span(typed.data(), typed.size())); },
                    samples);
}
inline TargetSpan view(const TargetArray& targets) {
  return std::visit([](const auto& typed) { return TargetSpan(std::span(typed.data(), typed.size())); },
                    targets);
}

/// Whether the targets are numbers instead of classes.
template <typename Variant>
bool are_numbers(const Variant& targets) {
  return targets.index() == 1;
}

/// Samples with targets. Immutable once built; may be shared between threads.
struct SampleSet {
  Shape shape;          // of one sample: [channels, height, width] or [features]
  SampleArray samples;  // [count, *shape], as they are stored; sample i is number stored_row(i)
  TargetArray targets;  // [count] classes, each in [0, classes), or [count, numbers per sample]

  // The samples in a file, which has another order than a split has drawn; empty if both orders are the same.
  MaybeOwnedArray<std::uint32_t> order = {};         // [count]: where sample i is stored
  TargetArray ordered_targets = {};                  // `targets` in the order of `samples`
  std::shared_ptr<const MappedFile> file = nullptr;  // that the samples lie in, if they do

  std::size_t sample_values() const { return element_count(shape); }
  std::size_t size() const {
    const std::size_t values = sample_values();
    return values == 0 ? 0 : value_count(samples) / values;
  }
  std::size_t stored_row(std::size_t i) const { return order.empty() ? i : order[i]; }
  /// The targets in the order of `samples`.
  const TargetArray& stored_targets() const { return order.empty() ? targets : ordered_targets; }
  /// The values of sample i, *shape; i < size().
  SampleSpan sample(std::size_t i) const {
    return std::visit(
        [&](const auto& values) {
          return SampleSpan(std::span(values.data() + stored_row(i) * sample_values(), sample_values()));
        },
        samples);
  }

  /// The arrays by type. Throw std::bad_variant_access if they hold the other one. Of samples in the order
  /// in which they are stored, of targets in that of the set.
  std::span<const std::uint8_t> pixels() const { return std::get<0>(samples); }
  std::span<const float> floats() const { return std::get<1>(samples); }
  std::span<const std::int32_t> labels() const { return std::get<0>(targets); }
  std::span<const float> numbers() const { return std::get<1>(targets); }
};

/// Samples first … first + count − 1 of a set: a training or validation part, without copying.
struct Samples {
  std::shared_ptr<const SampleSet> set;
  std::size_t first = 0;
  std::size_t count = 0;
};

}  // namespace sweep
