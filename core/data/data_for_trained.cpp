#include "core/data/data_for_trained.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/readers/input_file.h"

namespace sweep {

void check_trained_shape(const Shape& shape, const Shape& trained, const std::string& name) {
  if (shape == trained) return;
  throw DataError(name + ": its samples are " + to_string(shape) +
                  ", those that the network was trained on " + to_string(trained));
}

void check_fits(const Dataset& dataset, const SampleFormat& trained, const std::string& name) {
  check_trained_shape(dataset.shape, trained.shape, name);
  if (dataset.bytes != trained.bytes) {
    const char *bytes = "bytes (uint8)", *floats = "numbers that are not uint8";
    throw DataError(name + ": its samples are " + (dataset.bytes ? bytes : floats) +
                    ", those that the network was trained on " + (trained.bytes ? bytes : floats));
  }
  const std::size_t numbers = dataset.target_names.size(), wanted = trained.target_names.size();
  if (numbers == wanted) return;
  const auto targets = [](std::size_t count) {
    return count == 0 ? "classes" : counted(count, "number") + " per sample";
  };
  throw DataError(name + ": its targets are " + targets(numbers) + ", but the network was trained on " +
                  targets(wanted));
}

void renumber_classes(TensorDataset& set, const std::vector<std::string>& names,
                      const std::vector<std::string>& trained, const std::string& name) {
  if (names == trained) return;
  std::vector<std::int32_t> numbers;
  for (const std::string& class_name : names) {
    const auto found = std::ranges::find(trained, class_name);
    if (found == trained.end()) {
      throw DataError(name + ": class " + quoted_name(class_name) +
                      " was not there in training; the network knows: " + listed_names(trained, 20) +
                      ". Leave out its samples, or train on all classes");
    }
    numbers.push_back(static_cast<std::int32_t>(found - trained.begin()));
  }
  for (std::int32_t& label : std::get<0>(set.targets).edit())
    label = numbers[static_cast<std::size_t>(label)];
}

}  // namespace sweep
