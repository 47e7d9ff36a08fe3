#include "core/data/readers/named_arrays.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/npy.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostClasses = 65536;
constexpr float kLargestWhole = 1 << 24;  // all whole numbers up to this are exact as floats

enum Part { kTrain, kValidation, kTest };
constexpr std::array<const char*, 3> kPartNames = {"training", "validation", "test"};

constexpr std::pair<std::string_view, Part> kPartWords[] = {{"train", kTrain},
                                                            {"validation", kValidation},
                                                            {"valid", kValidation},
                                                            {"val", kValidation},
                                                            {"test", kTest}};
constexpr std::string_view kSampleNames[] = {"features", "x", "data", "images", "inputs"};
constexpr std::string_view kTargetNames[] = {"labels", "y", "targets", "classes"};

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// "x_train" or "train_x" -> ("x", kTrain); "x" -> ("x", no part).
std::pair<std::string, std::optional<Part>> split_name(const std::string& name) {
  for (const auto& [word, part] : kPartWords) {
    const std::string suffix = "_" + std::string(word), prefix = std::string(word) + "_";
    if (name.size() > suffix.size() && name.ends_with(suffix)) {
      return {name.substr(0, name.size() - suffix.size()), part};
    }
    if (name.size() > prefix.size() && name.starts_with(prefix)) return {name.substr(prefix.size()), part};
  }
  return {name, std::nullopt};
}

struct ArrayPair {
  NamedArray* samples = nullptr;
  NamedArray* targets = nullptr;
};

// Puts the channels of [count, height, width, channels] before the height.
template <typename T>
void move_channels(std::vector<T>& values, const Shape& shape) {
  const auto pixels = static_cast<std::size_t>(shape[1] * shape[2]);
  const auto channels = static_cast<std::size_t>(shape[3]);
  std::vector<T> sample(pixels * channels);
  for (std::size_t at = 0; at < values.size(); at += sample.size()) {
    for (std::size_t p = 0; p < pixels; ++p) {
      for (std::size_t c = 0; c < channels; ++c) sample[c * pixels + p] = values[at + p * channels + c];
    }
    std::copy(sample.begin(), sample.end(), values.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

// Whether the channels of [count, a, b, c] come last, and have to be moved.
bool channels_are_last(const NamedArray& array, ChannelOrder order, const std::string& name) {
  const Shape& shape = array.shape;
  if (shape.size() != 4 || order == ChannelOrder::kFirst) return false;
  const std::int64_t a = shape[1], b = shape[2], c = shape[3];
  if (order == ChannelOrder::kLast || ((c == 1 || c == 3) && a > 3 && b > 3)) return true;
  // Few channels in front, or a square image after them, are channels first.
  const bool looks_last = a > 4 && (c < std::min(a, b) || (a == b && b != c));
  if (!looks_last) return false;
  throw DataError(name + ": array " + quoted_name(array.name) + " has shape " + to_string(shape) +
                  ": it does not say where the channels are; \"channels\": \"first\" means " +
                  to_string(Shape{a, b, c}) + ", \"last\" " + to_string(Shape{c, a, b}));
}

Shape sample_shape(const NamedArray& array, bool channels_last, const std::string& name) {
  const Shape& s = array.shape;
  switch (s.size()) {
    case 1:
      return {1};
    case 2:
      return {s[1]};
    case 3:
      return {1, s[1], s[2]};
    case 4:
      return channels_last ? Shape{s[3], s[1], s[2]} : Shape{s[1], s[2], s[3]};
    default:
      throw DataError(name + ": array " + quoted_name(array.name) + " has shape " + to_string(s) +
                      "; samples have 1 to 3 dimensions beside their number");
  }
}

SampleValues take_samples(NamedArray& array, const ReadOptions& options, bool channels_last,
                          const std::string& name) {
  if (auto* integers = std::get_if<std::vector<std::int64_t>>(&array.values)) {
    return std::vector<float>(integers->begin(), integers->end());
  }
  if (auto* bytes = std::get_if<std::vector<std::uint8_t>>(&array.values)) {
    if (channels_last) move_channels(*bytes, array.shape);
    return std::move(*bytes);
  }
  auto& floats = std::get<std::vector<float>>(array.values);
  const auto wrong = std::find_if(floats.begin(), floats.end(), [&](float value) {
    return std::isinf(value) || (std::isnan(value) && options.missing == MissingValues::kError);
  });
  if (wrong != floats.end()) {
    const std::size_t per_sample = floats.size() / static_cast<std::size_t>(array.shape.front());
    const bool infinite = std::isinf(*wrong);
    throw DataError(
        name + ": array " + quoted_name(array.name) + " holds " + (infinite ? "infinity" : "NaN") +
        " in sample " + std::to_string(static_cast<std::size_t>(wrong - floats.begin()) / per_sample) +
        " (from 0)" + (infinite ? "" : "; with \"missing\": \"mean\" NaN becomes the mean of its feature"));
  }
  if (channels_last) move_channels(floats, array.shape);
  return std::move(floats);
}

bool are_floats(const NamedArray& array) { return std::holds_alternative<std::vector<float>>(array.values); }

// True if the targets are classes: integers, one per sample, unless the options say what they are.
bool holds_classes(const NamedArray& array, const ReadOptions& options, const std::string& name) {
  if (!options.targets.empty()) return false;
  const bool one_value = element_count(array.shape) == static_cast<std::size_t>(array.shape[0]);
  if (!options.label.empty() && !one_value) {
    throw DataError(name + ": array " + quoted_name(array.name) + " has shape " + to_string(array.shape) +
                    ", but classes are one number per sample; numbers are named by \"target\"");
  }
  return one_value && (!options.label.empty() || !are_floats(array));
}

std::vector<std::int32_t> take_classes(const NamedArray& array, const std::string& name) {
  std::vector<std::int32_t> classes;
  const auto add = [&](auto value) {
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      if (!(std::abs(value) <= kLargestWhole) || value != std::trunc(value)) {
        throw DataError(name + ": array " + quoted_name(array.name) + ": the label " + std::to_string(value) +
                        " of sample " + std::to_string(classes.size()) +
                        " (from 0) is not a whole number; numbers to be predicted are named by \"target\"");
      }
    }
    if (value < 0 || static_cast<std::int64_t>(value) >= kMostClasses) {
      throw DataError(name + ": array " + quoted_name(array.name) + ": label " +
                      std::to_string(static_cast<std::int64_t>(value)) + " of sample " +
                      std::to_string(classes.size()) + " (from 0) is out of range: 0 to " +
                      std::to_string(kMostClasses - 1));
    }
    classes.push_back(static_cast<std::int32_t>(value));
  };
  std::visit([&](const auto& values) { std::for_each(values.begin(), values.end(), add); }, array.values);
  return classes;
}

std::vector<float> take_values(NamedArray& array, const std::string& name) {
  std::vector<float> floats = std::visit(
      [](const auto& values) { return std::vector<float>(values.begin(), values.end()); }, array.values);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    if (std::isfinite(floats[i])) continue;
    const std::size_t per_sample = floats.size() / static_cast<std::size_t>(array.shape.front());
    throw DataError(name + ": array " + quoted_name(array.name) + ": the target of sample " +
                    std::to_string(i / per_sample) + " (from 0) is not a finite number");
  }
  return floats;
}

std::string names_of(const std::vector<NamedArray>& arrays) {
  std::string text;
  for (const NamedArray& array : arrays) text += (text.empty() ? "" : ", ") + quoted_name(array.name);
  return text;
}

RawPart make_part(const ArrayPair& pair, bool classes, bool channels_last, const ReadOptions& options,
                  const std::string& name) {
  RawPart part;
  part.count = static_cast<std::size_t>(pair.samples->shape.front());
  if (pair.targets->shape.front() != pair.samples->shape.front()) {
    throw DataError(name + ": array " + quoted_name(pair.samples->name) + " holds " +
                    std::to_string(part.count) + " samples, but " + quoted_name(pair.targets->name) +
                    " holds " + std::to_string(pair.targets->shape.front()) + " targets");
  }
  if (classes) {
    part.classes = take_classes(*pair.targets, name);
  } else {
    part.values = take_values(*pair.targets, name);
  }
  part.samples = take_samples(*pair.samples, options, channels_last, name);
  return part;
}

void check_same_form(const ArrayPair& train, const ArrayPair& other, const ReadOptions& options,
                     const std::string& name) {
  const auto same = [](const NamedArray& a, const NamedArray& b) {
    return std::equal(a.shape.begin() + 1, a.shape.end(), b.shape.begin() + 1, b.shape.end());
  };
  for (const auto& [a, b] :
       {std::pair(train.samples, other.samples), std::pair(train.targets, other.targets)}) {
    if (!same(*a, *b)) {
      throw DataError(name + ": array " + quoted_name(b->name) + " has shape " + to_string(b->shape) +
                      ", but " + quoted_name(a->name) + " has " + to_string(a->shape));
    }
  }
  const bool type_decides = options.label.empty() && options.targets.empty();
  if (type_decides && are_floats(*train.targets) != are_floats(*other.targets)) {
    const bool floats = are_floats(*other.targets);
    throw DataError(name + ": array " + quoted_name(other.targets->name) + " holds " +
                    (floats ? "floats" : "integers") + ", but " + quoted_name(train.targets->name) +
                    " holds " + (floats ? "integers" : "floats") +
                    "; \"label\" or \"target\" says whether they are classes or numbers");
  }
}

void set_names(RawData& data, const NamedArray& targets, const std::string& target_name, bool classes) {
  if (classes) {
    const auto& labels = data.train.classes;
    for (std::int32_t c = 0; c <= *std::max_element(labels.begin(), labels.end()); ++c) {
      data.class_names.push_back(std::to_string(c));
    }
    return;
  }
  const std::size_t count = element_count(targets.shape) / static_cast<std::size_t>(targets.shape.front());
  for (std::size_t i = 0; i < count; ++i) {
    data.value_names.push_back(count == 1 ? target_name : target_name + " " + std::to_string(i));
  }
}

}  // namespace

RawData data_from_arrays(std::vector<NamedArray> arrays, const ReadOptions& options,
                         const std::string& name) {
  if (options.targets.size() > 1) {
    throw ConfigError("arrays have one target, which may hold several values per sample; " +
                      std::to_string(options.targets.size()) + " are named");
  }
  const std::string wanted = lower(options.targets.empty() ? options.label : options.targets.front());
  RawData data;
  std::array<ArrayPair, 3> parts;
  std::string target_name = wanted;
  for (NamedArray& array : arrays) {
    const std::string full_name = lower(array.name);
    auto [base, part] = split_name(full_name);
    if (full_name == wanted) {
      base = wanted;
      part.reset();
    }
    ArrayPair& pair = parts[part.value_or(kTrain)];
    NamedArray** slot = nullptr;
    const bool is_target = wanted.empty() ? std::ranges::count(kTargetNames, base) > 0 : base == wanted;
    if (is_target) {
      slot = &pair.targets;
      if (target_name.empty()) target_name = base;
    } else if (std::ranges::count(kSampleNames, base) > 0) {
      slot = &pair.samples;
    } else {
      data.notes.push_back(name + ": array " + quoted_name(array.name) + " is not used");
      continue;
    }
    if (*slot != nullptr) {
      throw DataError(name + ": both " + quoted_name((*slot)->name) + " and " + quoted_name(array.name) +
                      " could be the " + (is_target ? "targets" : "samples"));
    }
    *slot = &array;
    if (array.shape.empty() || array.shape.front() < 1) {
      throw DataError(name + ": array " + quoted_name(array.name) + " holds no samples: its shape is " +
                      to_string(array.shape));
    }
  }
  if (parts[kTrain].samples == nullptr || parts[kTrain].targets == nullptr) {
    const bool samples = parts[kTrain].samples == nullptr;
    throw DataError(name + ": has no array of " + (samples ? "samples" : "targets") + ", called " +
                    (samples          ? "\"features\", \"x\" or \"x_train\""
                     : wanted.empty() ? "\"labels\", \"y\" or \"y_train\""
                                      : quoted_name(wanted)) +
                    "; there are: " + (arrays.empty() ? "none" : names_of(arrays)));
  }
  const bool channels_last = channels_are_last(*parts[kTrain].samples, options.channels, name);
  data.shape = sample_shape(*parts[kTrain].samples, channels_last, name);
  const bool classes = holds_classes(*parts[kTrain].targets, options, name);
  if (!classes && options.targets.empty() && (target_name == "labels" || target_name == "classes")) {
    data.notes.push_back(name + ": array " + quoted_name(parts[kTrain].targets->name) +
                         " holds floats, which are numbers to be predicted; \"label\": " +
                         quoted_name(target_name) + " makes whole numbers classes");
  }
  for (const Part p : {kTrain, kValidation, kTest}) {
    const ArrayPair& pair = parts[p];
    if (pair.samples == nullptr && pair.targets == nullptr) continue;
    if (pair.samples == nullptr || pair.targets == nullptr) {
      throw DataError(name + ": has only " + (pair.samples == nullptr ? "targets" : "samples") + " of the " +
                      kPartNames[p] + " part");
    }
    check_same_form(parts[kTrain], pair, options, name);
    RawPart part = make_part(pair, classes, channels_last, options, name);
    if (p == kTrain) data.train = std::move(part);
    if (p == kValidation) data.validation = std::move(part);
    if (p == kTest) data.test = std::move(part);
  }
  set_names(data, *parts[kTrain].targets, target_name, classes);
  check_raw_data(data, name);
  return data;
}

ArraySamples samples_from_arrays(std::vector<NamedArray> arrays, const ReadOptions& options,
                                 const Shape& wanted, const std::string& name) {
  NamedArray* found = arrays.size() == 1 ? &arrays.front() : nullptr;
  for (NamedArray& array : arrays) {
    if (&array == found || std::ranges::count(kSampleNames, split_name(lower(array.name)).first) == 0)
      continue;
    if (found != nullptr) {
      throw DataError(name + ": both " + quoted_name(found->name) + " and " + quoted_name(array.name) +
                      " could be the samples");
    }
    found = &array;
  }
  if (found == nullptr) {
    throw DataError(name + ": has no array of samples, called \"features\" or \"x\"; there are: " +
                    (arrays.empty() ? "none" : names_of(arrays)));
  }
  if (found->shape.empty() || found->shape.front() < 1) {
    throw DataError(name + ": array " + quoted_name(found->name) + " holds no samples: its shape is " +
                    to_string(found->shape));
  }
  ArraySamples samples;
  // The network's shape says where the channels are.
  samples.shape = sample_shape(*found, false, name);
  const bool channels_last = found->shape.size() == 4 && samples.shape != wanted;
  if (channels_last) samples.shape = sample_shape(*found, true, name);
  if (samples.shape != wanted) {
    throw DataError(name + ": its samples are " + to_string(samples.shape) +
                    ", those that the network was trained on " + to_string(wanted));
  }
  samples.count = static_cast<std::size_t>(found->shape.front());
  samples.values = take_samples(*found, options, channels_last, name);
  return samples;
}

bool is_npy(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return starts_npy(first_bytes(path, 8));
  return !files_with_ending(path, {".npy"}).empty();
}

RawData read_npy_files(std::span<const fs::path> paths, const ReadOptions& options) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      const std::vector<fs::path> inside = files_with_ending(path, {".npy"});
      files.insert(files.end(), inside.begin(), inside.end());
    } else {
      files.push_back(path);
    }
  }
  const std::string name = paths.empty() ? "npy" : paths.front().string();
  std::vector<NamedArray> arrays;
  std::vector<DataFile> sources;
  for (const fs::path& path : files) {
    InputFile file(path);
    const ByteSource source = {[&](std::span<std::uint8_t> out) { return file.read(out); },
                               file.most_content(), file.name()};
    arrays.push_back(read_npy(source, options));
    arrays.back().name = path.stem().string();
    sources.push_back({path, file.sha256()});
  }
  RawData data = data_from_arrays(std::move(arrays), options, name);
  data.files = std::move(sources);
  return data;
}

}  // namespace sweep
