// From MemoryData to what readers of files return.
#include "core/data/memory_data.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/data/sample_set.h"

namespace sweep {
namespace {

void check_shape(const Shape& shape, const std::string& name) {
  const bool is_positive = std::ranges::all_of(shape, [](std::int64_t extent) { return extent >= 1; });
  if ((shape.size() != 1 && shape.size() != 3) || !is_positive) {
    throw DataError(name + ": the shape of a sample is " + to_string(shape) +
                    ", want [channels, height, width] or [features], each at least 1");
  }
}

void check_finite(const MemorySamples& part, MissingValues missing, const Shape& shape,
                  const std::string& name) {
  const auto* values = std::get_if<std::vector<float>>(&part.samples);
  if (values == nullptr) return;
  const auto wrong = std::ranges::find_if(*values, [&](float value) {
    return std::isinf(value) || (std::isnan(value) && missing == MissingValues::kError);
  });
  if (wrong == values->end()) return;
  throw DataError(name + ": sample " +
                  std::to_string(static_cast<std::size_t>(wrong - values->begin()) / element_count(shape)) +
                  " (from 0) holds " +
                  (std::isinf(*wrong) ? "infinity"
                                      : "NaN; with missing = MissingValues::kMean it becomes the "
                                        "mean of its channel"));
}

RawPart raw_part(MemorySamples part, const MemoryData& data, MissingValues missing, const std::string& name) {
  const std::size_t values = value_count(part.samples), size = element_count(data.shape);
  if (values == 0 || values % size != 0) {
    throw DataError(name + ": " + std::to_string(values) + " values are no whole samples of shape " +
                    to_string(data.shape) + ", which have " + std::to_string(size) + " values each");
  }
  check_finite(part, missing, data.shape, name);
  RawPart raw;
  raw.count = values / size;
  const bool has_numbers = part.targets.index() == 1;
  if (has_numbers != data.class_names.empty()) {
    throw DataError(name + ": its targets are " + (has_numbers ? "numbers" : "classes") +
                    ", those of the training samples, or the names of them, are " +
                    (has_numbers ? "classes" : "numbers"));
  }
  const std::size_t wanted = raw.count * (has_numbers ? data.target_names.size() : 1);
  if (value_count(part.targets) != wanted) {
    throw DataError(name + ": " + std::to_string(value_count(part.targets)) + " targets for " +
                    std::to_string(raw.count) + " samples, want " + std::to_string(wanted));
  }
  std::visit([&](auto& samples) { raw.samples = std::move(samples); }, part.samples);
  if (has_numbers) {
    raw.values = std::move(std::get<1>(part.targets));
  } else {
    raw.classes = std::move(std::get<0>(part.targets));
  }
  return raw;
}

// Names for targets that have none.
void add_names(MemoryData& data, const std::string& name) {
  if (!data.class_names.empty() && !data.target_names.empty())
    throw DataError(name + ": has names of classes and of numbers; want only one of them");
  if (!data.class_names.empty() || !data.target_names.empty()) return;
  if (const auto* classes = std::get_if<std::vector<std::int32_t>>(&data.train.targets)) {
    if (classes->empty()) throw DataError(name + ": the training samples have no targets");
    for (std::int32_t c = 0; c <= *std::ranges::max_element(*classes); ++c)
      data.class_names.push_back(std::to_string(c));
    if (data.class_names.empty()) throw DataError(name + ": all classes are negative; the first is 0");
    return;
  }
  const std::size_t samples = value_count(data.train.samples) / element_count(data.shape);
  const std::size_t numbers = samples == 0 ? 0 : value_count(data.train.targets) / samples;
  if (numbers == 0) {
    throw DataError(name + ": " + std::to_string(value_count(data.train.targets)) + " targets for " +
                    std::to_string(samples) + " training samples");
  }
  for (std::size_t i = 0; i < numbers; ++i)
    data.target_names.push_back(numbers == 1 ? "target" : "target " + std::to_string(i));
}

}  // namespace

RawData raw_data_of(MemoryData data, MissingValues missing, const std::string& name) {
  check_shape(data.shape, name);
  add_names(data, name);
  RawData raw;
  raw.shape = data.shape;
  raw.train = raw_part(std::move(data.train), data, missing, name + ": train");
  if (data.validation)
    raw.validation = raw_part(std::move(*data.validation), data, missing, name + ": validation");
  if (data.test) raw.test = raw_part(std::move(*data.test), data, missing, name + ": test");
  raw.class_names = std::move(data.class_names);
  raw.value_names = std::move(data.target_names);
  check_raw_data(raw, name);
  return raw;
}

}  // namespace sweep
