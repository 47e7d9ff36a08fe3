#include "core/data/data_from_arrays.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/readers/input_file.h"
#include "core/data/sample_format.h"

namespace sweep {
namespace {

constexpr std::int64_t kMaxClasses = 65536;
constexpr float kLargestWhole = 1 << 24;  // all integers up to this are exact as floats

constexpr std::array<const char*, 3> kPartsInWords = {"training", "validation", "test"};

constexpr std::string_view kSampleNames[] = {"features", "x", "data", "images", "inputs"};
constexpr std::string_view kTargetNames[] = {"labels", "y", "targets", "classes"};

// "x_train" or "train_x" -> ("x", kTrainPart); "x" -> ("x", no part).
std::pair<std::string, std::optional<DataPart>> split_name(const std::string& name) {
  for (const auto& [word, part] : kPartWords) {
    const std::string suffix = "_" + std::string(word), prefix = std::string(word) + "_";
    if (name.size() > suffix.size() && name.ends_with(suffix)) {
      return {name.substr(0, name.size() - suffix.size()), part};
    }
    if (name.size() > prefix.size() && name.starts_with(prefix)) return {name.substr(prefix.size()), part};
  }
  return {name, std::nullopt};
}

// Sets what messages about an array begin with, before a verb: "PATH:" or "SOURCE: array "x"".
void set_where(NamedArray& array, const std::string& name) {
  array.where = array.where.empty() ? name + ": array " + quoted_name(array.name) : array.where + ":";
}
// The same before a colon, and how others mention the array.
std::string place(const NamedArray& array) {
  return array.where.substr(0, array.where.size() - (array.where.ends_with(':') ? 1 : 0));
}
std::string mention(const NamedArray& array) {
  return array.where.ends_with(':') ? place(array) : quoted_name(array.name);
}

// Throws DataError, "ARRAY PROBLEM".
template <typename... Args>
[[noreturn]] void refuse_array(const NamedArray& array, fmt::format_string<Args...> problem, Args&&... args) {
  throw DataError(fmt::format("{} {}", array.where, fmt::format(problem, std::forward<Args>(args)...)));
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
bool channels_are_last(const NamedArray& array, ChannelOrder order) {
  const Shape& shape = array.shape;
  if (shape.size() != 4 || order == ChannelOrder::kFirst) return false;
  const std::int64_t a = shape[1], b = shape[2], c = shape[3];
  if (order == ChannelOrder::kLast || ((c == 1 || c == 3) && a > 3 && b > 3)) return true;
  // Few channels in front, or a square image after them, are channels first, unless there are 3 at the end.
  const bool looks_last = (c == 3 && b > 3) || (a > 4 && (c < std::min(a, b) || (a == b && b != c)));
  if (!looks_last) return false;
  refuse_array(
      array,
      "has shape {}: it does not say where the channels are; \"channels\": \"first\" means {}, \"last\" {}",
      to_string(shape), to_string(Shape{a, b, c}), to_string(Shape{c, a, b}));
}

Shape sample_shape(const NamedArray& array, bool channels_last) {
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
      refuse_array(array, "has shape {}; samples have 1 to 3 dimensions after their number", to_string(s));
  }
}

SampleArray take_samples(NamedArray& array, MissingValues missing, bool channels_last) {
  if (auto* integers = std::get_if<std::vector<std::int64_t>>(&array.values))
    return std::vector<float>(integers->begin(), integers->end());
  if (auto* bytes = std::get_if<MaybeOwnedArray<std::uint8_t>>(&array.values)) {
    if (channels_last) move_channels(bytes->edit(), array.shape);
    return std::move(*bytes);
  }
  auto& floats = std::get<std::vector<float>>(array.values);
  const auto wrong = std::find_if(floats.begin(), floats.end(), [&](float value) {
    return std::isinf(value) || (std::isnan(value) && missing == MissingValues::kError);
  });
  if (wrong != floats.end()) {
    const std::size_t per_sample = floats.size() / static_cast<std::size_t>(array.shape.front());
    const bool infinite = std::isinf(*wrong);
    refuse_array(array, "holds {} in sample {} (from 0){}", infinite ? "infinity" : "NaN",
                 static_cast<std::size_t>(wrong - floats.begin()) / per_sample,
                 infinite ? "" : "; with \"missing\": \"mean\" NaN becomes the mean of its feature");
  }
  if (channels_last) move_channels(floats, array.shape);
  return std::move(floats);
}

bool are_bytes(const NamedArray& array) { return array.values.index() == 0; }
bool are_floats(const NamedArray& array) { return std::holds_alternative<std::vector<float>>(array.values); }

// True if the targets are classes: integers, one per sample, unless the options say what they are.
bool holds_classes(const NamedArray& array, const DatasetSpec& spec) {
  if (!spec.targets.empty()) return false;
  const bool one_value = element_count(array.shape) == static_cast<std::size_t>(array.shape[0]);
  if (!spec.label.empty() && !one_value) {
    refuse_array(array,
                 "has shape {}, but classes are one number per sample; numbers are named by \"target\"",
                 to_string(array.shape));
  }
  return one_value && (!spec.label.empty() || !are_floats(array));
}

// Classes from 0 to `count` - 1.
std::vector<std::int32_t> take_classes(const NamedArray& array, std::int64_t count) {
  std::vector<std::int32_t> classes;
  const auto add = [&](auto value) {
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      if (!(std::abs(value) <= kLargestWhole) || value != std::trunc(value)) {
        refuse(place(array),
               "the label {} of sample {} (from 0) is not a whole number; numbers to be predicted are named "
               "by \"target\"",
               value, classes.size());
      }
    }
    if (value < 0 || static_cast<std::int64_t>(value) >= count) {
      refuse(place(array), "label {} of sample {} (from 0) is out of range: 0 to {}",
             static_cast<std::int64_t>(value), classes.size(), count - 1);
    }
    classes.push_back(static_cast<std::int32_t>(value));
  };
  std::visit([&](const auto& values) { std::for_each(values.begin(), values.end(), add); }, array.values);
  return classes;
}

std::vector<float> take_values(NamedArray& array) {
  std::vector<float> floats = std::visit(
      [](const auto& values) { return std::vector<float>(values.begin(), values.end()); }, array.values);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    if (std::isfinite(floats[i])) continue;
    const std::size_t per_sample = floats.size() / static_cast<std::size_t>(array.shape.front());
    refuse(place(array), "the target of sample {} (from 0) is not a finite number", i / per_sample);
  }
  return floats;
}

void note_rounded_integers(const NamedArray& array, std::vector<std::string>& notes) {
  // Bytes may be more than fit into memory.
  if (are_bytes(array) || (are_floats(array) && !array.were_integers)) return;
  const bool are_rounded = std::visit(
      [&](const auto& values) {
        return std::any_of(values.begin(), values.end(),
                           [](auto value) { return std::abs(static_cast<float>(value)) >= kLargestWhole; });
      },
      array.values);
  if (!are_rounded) return;
  notes.push_back(array.where +
                  " holds integers of more than 24 bits, which are rounded to float32; subtract a "
                  "constant from them if the last digits matter");
}

std::string names_of(const std::vector<NamedArray>& arrays) {
  std::vector<std::string> names;
  for (const NamedArray& array : arrays) names.push_back(array.name);
  return names.empty() ? "none" : listed_names(names, 20);
}

void check_same_form(const ArrayPair& train, const ArrayPair& other, const DatasetSpec& spec) {
  const auto same = [](const NamedArray& a, const NamedArray& b) {
    return std::equal(a.shape.begin() + 1, a.shape.end(), b.shape.begin() + 1, b.shape.end());
  };
  for (const auto& [a, b] :
       {std::pair(train.samples, other.samples), std::pair(train.targets, other.targets)}) {
    if (!same(*a, *b)) {
      refuse_array(*b, "has shape {}, but {} has {}", to_string(b->shape), mention(*a), to_string(a->shape));
    }
  }
  if (are_bytes(*train.samples) != are_bytes(*other.samples)) {
    refuse_array(*other.samples, "and {}: one part holds bytes, another floats", mention(*train.samples));
  }
  const bool type_decides = spec.label.empty() && spec.targets.empty();
  if (type_decides && are_floats(*train.targets) != are_floats(*other.targets)) {
    const char *theirs = "floats", *ours = "integers";
    if (are_floats(*train.targets)) std::swap(theirs, ours);
    refuse_array(
        *other.targets,
        "holds {}, but {} holds {}; \"label\" or \"target\" says whether they are classes or numbers", theirs,
        mention(*train.targets), ours);
  }
}

void check_array(const NamedArray& array) {
  if (!array.problem.empty()) throw DataError(array.problem);
  const bool is_positive = std::ranges::all_of(array.shape, [](std::int64_t extent) { return extent >= 1; });
  if (array.shape.empty() || !is_positive)
    refuse_array(array, "holds no samples: its shape is {}", to_string(array.shape));
  const std::size_t values = std::visit([](const auto& of_type) { return of_type.size(); }, array.values);
  if (values == element_count(array.shape)) return;
  refuse_array(array, "has shape {}, but holds {} values", to_string(array.shape), values);
}

// The arrays of the parts, by their names.
struct FoundArrays {
  std::array<ArrayPair, 3> parts;
  std::string target_name;
};

FoundArrays find_arrays(DataArrays& data, const DatasetSpec& spec, const std::string& name) {
  if (spec.targets.size() > 1) {
    throw ConfigError(
        fmt::format("arrays have one target, which may hold several values per sample; {} are named",
                    spec.targets.size()));
  }
  const std::string wanted = lower_case(spec.targets.empty() ? spec.label : spec.targets.front());
  FoundArrays found{{}, wanted};
  for (NamedArray& array : data.arrays) {
    set_where(array, name);
    const std::string full_name = lower_case(array.name);
    auto [base, part] = split_name(full_name);
    if (full_name == wanted) {
      base = wanted;
      part.reset();
    }
    const bool is_target = wanted.empty() ? std::ranges::count(kTargetNames, base) > 0 : base == wanted;
    if (!is_target && std::ranges::count(kSampleNames, base) == 0) {
      data.notes.push_back(array.where + " is not used");
      continue;
    }
    if (is_target && found.target_name.empty()) found.target_name = base;
    ArrayPair& pair = found.parts[part.value_or(kTrainPart)];
    NamedArray*& slot = is_target ? pair.targets : pair.samples;
    if (slot != nullptr) {
      refuse(name, "both \"{}\" and \"{}\" could be the {}", slot->name, array.name,
             is_target ? "targets; name one by \"label\" or \"target\"" : "samples");
    }
    slot = &array;
    check_array(array);
  }
  const ArrayPair& train = found.parts[kTrainPart];
  if (train.samples == nullptr || train.targets == nullptr) {
    const bool samples = train.samples == nullptr;
    refuse(name, "has no array of {}, called {}; there are: {}{}", samples ? "samples" : "targets",
           samples          ? "\"features\", \"x\" or \"x_train\""
           : wanted.empty() ? "\"labels\", \"y\" or \"y_train\""
                            : quoted_name(wanted),
           names_of(data.arrays), samples ? "" : "; name one by \"label\" or \"target\"");
  }
  return found;
}

void name_targets(const ArrayPair& train, const std::string& target_name, bool classes, Dataset& dataset) {
  if (classes) {
    if (!dataset.class_names.empty()) return;
    const std::vector<std::int32_t> labels = take_classes(*train.targets, kMaxClasses);
    for (std::int32_t c = 0; c <= std::ranges::max(labels); ++c)
      dataset.class_names.push_back(std::to_string(c));
    return;
  }
  const Shape& shape = train.targets->shape;
  const std::size_t count = element_count(shape) / static_cast<std::size_t>(shape.front());
  const bool is_named = !dataset.target_names.empty();
  for (std::size_t i = 0; !is_named && i < count; ++i)
    dataset.target_names.push_back(count == 1 ? target_name : target_name + " " + std::to_string(i));
  if (dataset.target_names.size() == count) return;
  refuse_array(*train.targets, "has {} numbers per sample, but {} names", count, dataset.target_names.size());
}

// `dataset` has the shape of a sample and the names of its classes.
TensorDataset make_set(const ArrayPair& pair, bool classes, bool channels_last, const DatasetSpec& spec,
                       const Dataset& dataset) {
  if (pair.targets->shape.front() != pair.samples->shape.front()) {
    refuse_array(*pair.samples, "holds {} samples, but {} holds {} targets", pair.samples->shape.front(),
                 mention(*pair.targets), pair.targets->shape.front());
  }
  TensorDataset set;
  set.shape = dataset.shape;
  if (classes) {
    set.targets = take_classes(*pair.targets, static_cast<std::int64_t>(dataset.class_names.size()));
  } else {
    set.targets = take_values(*pair.targets);
  }
  set.samples = take_samples(*pair.samples, spec.missing, channels_last);
  return set;
}

}  // namespace

Dataset data_from_arrays(DataArrays data, const DatasetSpec& spec, const std::string& name,
                         const SampleFormat* trained) {
  const FoundArrays found = find_arrays(data, spec, name);
  const ArrayPair& train = found.parts[kTrainPart];
  const bool channels_last = channels_are_last(*train.samples, spec.channels);
  const bool classes = holds_classes(*train.targets, spec);
  Dataset dataset;
  dataset.name = spec.name;
  dataset.shape = sample_shape(*train.samples, channels_last);
  dataset.bytes = are_bytes(*train.samples);
  (classes ? dataset.class_names : dataset.target_names) =
      std::move(classes ? data.class_names : data.target_names);
  if (trained != nullptr && classes && dataset.class_names.empty())
    dataset.class_names = trained->class_names;
  name_targets(train, found.target_name, classes, dataset);
  if (trained != nullptr) check_fits(dataset, *trained, name);
  if (!classes && spec.targets.empty() && (found.target_name == "labels" || found.target_name == "classes")) {
    data.notes.push_back(train.targets->where +
                         " holds floats, which are numbers to be predicted; \"label\": " +
                         quoted_name(found.target_name) + " makes whole numbers classes");
  }
  dataset.columns = std::move(data.columns);
  for (const FeatureColumn& column : dataset.columns)
    std::ranges::move(column.feature_names(), std::back_inserter(dataset.feature_names));
  dataset.unknown = spec.unknown;
  dataset.files = std::move(data.files);
  dataset.skipped = std::move(data.skipped);
  dataset.notes = std::move(data.notes);

  SourceParts sets;
  for (const DataPart p : {kTrainPart, kValidationPart, kTestPart}) {
    const ArrayPair& pair = found.parts[p];
    if (pair.samples == nullptr && pair.targets == nullptr) continue;
    if (pair.samples == nullptr || pair.targets == nullptr) {
      refuse(name, "has only {} of the {} part", pair.samples == nullptr ? "targets" : "samples",
             kPartsInWords[p]);
    }
    check_same_form(train, pair, spec);
    note_rounded_integers(*pair.samples, dataset.notes);
    if (!classes) note_rounded_integers(*pair.targets, dataset.notes);
    sets[p] = make_set(pair, classes, channels_last, spec, dataset);
    sets[p]->file = data.mapping;
    if (trained != nullptr && classes)
      renumber_classes(*sets[p], dataset.class_names, trained->class_names, name);
  }
  if (trained != nullptr) {
    dataset.class_names = trained->class_names;
    dataset.fill_values = trained->fill_values;
  }
  split_parts(std::move(sets), spec, dataset);
  return dataset;
}

SampleArray samples_from_arrays(std::vector<NamedArray> arrays, MissingValues missing, const Shape& wanted,
                                const std::string& name) {
  NamedArray* found = arrays.size() == 1 ? &arrays.front() : nullptr;
  for (NamedArray& array : arrays) {
    if (&array == found || std::ranges::count(kSampleNames, split_name(lower_case(array.name)).first) == 0)
      continue;
    if (found != nullptr)
      refuse(name, "both \"{}\" and \"{}\" could be the samples", found->name, array.name);
    found = &array;
  }
  if (found == nullptr) {
    refuse(name, "has no array of samples, called \"features\" or \"x\"; there are: {}", names_of(arrays));
  }
  set_where(*found, name);
  check_array(*found);
  // The network's shape says where the channels are.
  const Shape shape = sample_shape(*found, false);
  const bool channels_last = shape != wanted && sample_shape(*found, true) == wanted;
  if (!channels_last) check_trained_shape(shape, wanted, name);
  return take_samples(*found, missing, channels_last);
}

}  // namespace sweep
