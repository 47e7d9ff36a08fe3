#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/channel_statistics.h"
#include "core/data/data_from_arrays.h"
#include "core/data/readers/input_file.h"
#include "core/data/shuffled_order.h"

namespace sweep {
namespace {

// Keeps the order of a split apart from the orders of epochs with the same seed.
constexpr std::uint32_t kSplitEpoch = std::numeric_limits<std::uint32_t>::max();

std::size_t part_size(const std::string& key, const std::variant<std::size_t, double>& size,
                      std::size_t total) {
  if (const auto* count = std::get_if<std::size_t>(&size)) return *count;
  const double fraction = std::get<double>(size);
  if (!(fraction >= 0 && fraction < 1)) {
    throw ConfigError(
        fmt::format("{} as a fraction must be at least 0 and less than 1, found {}", key, fraction));
  }
  const auto samples = static_cast<std::size_t>(static_cast<double>(total) * fraction);
  if (samples == 0 && fraction > 0) {
    throw ConfigError(fmt::format(
        "{} as a fraction is less than one of the {}, found {}: give a larger one, or a number of "
        "samples",
        key, counted(total, "training sample"), fraction));
  }
  return samples;
}

using Sizes = std::array<std::size_t, 3>;  // by part

// How many of the training samples become which part.
Sizes split_sizes(const SourceParts& parts, const DatasetSpec& spec) {
  const std::size_t total = parts[kTrainPart]->size();
  Sizes sizes{};
  std::string keys, counts;
  for (const DataPart part : {kValidationPart, kTestPart}) {
    const std::string key = kPartNames[part];
    sizes[part] = part_size(key, part == kTestPart ? spec.test : spec.validation, total);
    if (sizes[part] == 0) continue;
    if (parts[part]) {
      throw ConfigError(fmt::format(
          "{0} takes samples from the training set, but \"{1}\" has a {0} set of its own: leave \"{0}\" out",
          key, spec.name));
    }
    keys += (keys.empty() ? "" : " and ") + key;
    counts += (counts.empty() ? "" : " and ") + std::to_string(sizes[part]);
  }
  const auto& [train, validation, test] = sizes;  // Each may be close to the largest number there is.
  if (validation >= total || test >= total - validation) {
    throw ConfigError(fmt::format(
        "{} {} {} samples, but the training set of \"{}\" has {}: nothing is left to train on; at most {} "
        "are possible",
        keys, validation > 0 && test > 0 ? "take" : "takes", counts, spec.name, total, total - 1));
  }
  sizes[kTrainPart] = total - validation - test;
  return sizes;
}

// Divides `wanted` samples among the classes in proportion to `counts`; what rounding leaves goes to the
// classes with the largest remainders, the first of equal ones. Requires wanted <= the sum of counts.
std::vector<std::size_t> class_shares(const std::vector<std::size_t>& counts, std::size_t wanted) {
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  std::vector<std::size_t> shares(counts.size()), remainders(counts.size()), order(counts.size());
  std::size_t given = 0;
  for (std::size_t c = 0; c < counts.size(); ++c) {  // Samples are fewer than 2^32, so products fit.
    shares[c] = wanted * counts[c] / total;
    remainders[c] = wanted * counts[c] % total;
    given += shares[c];
  }
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  for (std::size_t i = 0; given < wanted; ++i, ++given) ++shares[order[i]];
  return shares;
}

// Returns the training samples, then those for validation, then those for the test.
std::vector<std::uint32_t> stratified_order(std::span<const std::int32_t> labels, std::size_t classes,
                                            const Sizes& sizes,
                                            const std::vector<std::uint32_t>& random_order) {
  std::array<std::vector<std::size_t>, 3> wanted;  // of each class
  std::vector<std::size_t>& rest = wanted[kTrainPart];
  rest.resize(classes);
  for (const std::int32_t c : labels) ++rest[static_cast<std::size_t>(c)];
  for (const DataPart part : {kTestPart, kValidationPart}) {
    wanted[part] = class_shares(rest, sizes[part]);
    for (std::size_t c = 0; c < classes; ++c) rest[c] -= wanted[part][c];
  }
  std::array<std::vector<std::uint32_t>, 3> rows;
  for (const std::uint32_t row : random_order) {
    const auto c = static_cast<std::size_t>(labels[row]);
    const DataPart part = wanted[kTestPart][c] > 0         ? kTestPart
                          : wanted[kValidationPart][c] > 0 ? kValidationPart
                                                           : kTrainPart;
    --wanted[part][c];
    rows[part].push_back(row);
  }
  for (const DataPart part : {kValidationPart, kTestPart})
    rows[kTrainPart].insert(rows[kTrainPart].end(), rows[part].begin(), rows[part].end());
  return std::move(rows[kTrainPart]);
}

std::vector<std::uint32_t> random_order(std::size_t count, const DatasetSpec& spec) {
  return shuffled_order(count, spec.split_seed, 0, kSplitEpoch);
}

using Order = std::shared_ptr<const std::vector<std::uint32_t>>;  // null: that of the source

Order split_order(const TensorDataset& train, std::size_t classes, const Sizes& sizes,
                  const DatasetSpec& spec) {
  if (spec.split == SplitMethod::kAuto || spec.split == SplitMethod::kEnd) return nullptr;
  if (spec.split == SplitMethod::kStratified && is_regression(train.targets)) {
    throw ConfigError(
        fmt::format("split \"stratified\" takes the same part of every class, but the targets of \"{}\" are "
                    "numbers: \"random\" is possible",
                    spec.name));
  }
  std::vector<std::uint32_t> rows = random_order(train.size(), spec);
  if (spec.split == SplitMethod::kStratified) rows = stratified_order(train.labels(), classes, sizes, rows);
  return std::make_shared<const std::vector<std::uint32_t>>(std::move(rows));
}

bool has_missing(const TensorDataset& set) {
  const auto* values = std::get_if<1>(&set.samples);
  return values != nullptr && std::ranges::any_of(*values, [](float value) { return std::isnan(value); });
}

std::string place_of_feature(const Dataset& dataset, std::size_t feature) {
  for (const FeatureColumn& column : dataset.columns) {
    if (feature < column.features()) return fmt::format("column \"{}\"", column.name);
    feature -= column.features();
  }
  return fmt::format("feature {} (from 0)", feature);
}

// Fills missing values with the fill values of `dataset`; if it has none, sets them to the means over samples
// `rows` of the training part, if any may be missing.
void fill_missing_values(SourceParts& parts, MissingValues missing, std::span<const std::uint32_t> rows,
                         Dataset& dataset) {
  std::vector<float>& means = dataset.fill_values;
  const TensorDataset& train = *parts[kTrainPart];
  const bool any = std::ranges::any_of(parts, [](const auto& set) { return set && has_missing(*set); });
  if (!any && (missing == MissingValues::kError || train.file)) return;
  if (means.empty()) {
    const std::vector<double> exact = channel_statistics(train, rows).mean;
    means.assign(exact.begin(), exact.end());
    const auto empty = static_cast<std::size_t>(
        std::ranges::find_if(means, [](float mean) { return std::isnan(mean); }) - means.begin());
    if (empty < means.size()) {
      throw DataError(fmt::format(
          "{} of \"{}\" has no value in the training samples, so there is no mean for missing ones: {}",
          place_of_feature(dataset, empty), dataset.name,
          dataset.columns.empty() ? "leave it out" : "list it under \"ignore\""));
    }
  }
  for (std::optional<TensorDataset>& set : parts)
    if (set && has_missing(*set)) fill_missing(std::get<1>(set->samples).edit(), set->shape, means);
}

InputTransform measured_transform(const TensorDataset& train, std::span<const std::uint32_t> rows,
                                  const std::vector<FeatureColumn>& columns) {
  std::vector<bool> is_indicator;
  for (const FeatureColumn& column : columns)
    is_indicator.insert(is_indicator.end(), column.features(), column.one_hot);
  is_indicator.resize(static_cast<std::size_t>(train.shape.front()));
  const ChannelStatistics statistics = channel_statistics(train, rows);
  InputTransform transform;
  for (std::size_t c = 0; c < statistics.mean.size(); ++c) {
    const auto deviation = static_cast<float>(statistics.deviation[c]);
    transform.mean.push_back(is_indicator[c] ? 0.0f : static_cast<float>(statistics.mean[c]));
    transform.std.push_back(is_indicator[c] || deviation == 0 ? 1.0f : deviation);
  }
  return transform;
}

// Notes the classes without a sample to train on, as of a sorted source whose end is split off.
void note_untrained_classes(const TensorDataset& train, std::span<const std::uint32_t> rows,
                            bool can_stratify, Dataset& dataset) {
  if (is_regression(train.targets)) return;
  std::vector<bool> is_trained(dataset.class_names.size());
  for (const std::uint32_t row : rows) is_trained[static_cast<std::size_t>(train.labels()[row])] = true;
  std::vector<std::string> untrained;
  for (std::size_t c = 0; c < is_trained.size(); ++c)
    if (!is_trained[c]) untrained.push_back(dataset.class_names[c]);
  if (untrained.empty()) return;
  const bool were_there = std::ranges::any_of(
      train.labels(), [&](std::int32_t label) { return !is_trained[static_cast<std::size_t>(label)]; });
  dataset.notes.push_back(fmt::format(
      "\"{}\": {} to train on of the classes {}{}", dataset.name,
      were_there ? "no sample is left" : "there is no sample", listed_names(untrained, 20),
      were_there && can_stratify ? "; \"split\": \"stratified\" takes the same part of every class" : ""));
}

}  // namespace

void split_parts(SourceParts parts, const DatasetSpec& spec, Dataset& dataset) {
  const Sizes sizes = split_sizes(parts, spec);
  const auto limited = [&](std::size_t count) {
    return spec.limit == 0 ? count : std::min(count, spec.limit);
  };
  TensorDataset& train = *parts[kTrainPart];
  const Order order = split_order(train, dataset.class_names.size(), sizes, spec);
  std::vector<std::uint32_t> rows(train.size());
  std::iota(rows.begin(), rows.end(), 0u);
  if (order) rows = *order;
  rows.resize(limited(sizes[kTrainPart]));
  note_untrained_classes(train, rows, !order, dataset);
  fill_missing_values(parts, spec.missing, rows, dataset);
  dataset.transform = spec.transform;
  if (spec.transform == InputTransform{} && spec.normalization == Normalization::kTrain)
    dataset.transform = measured_transform(train, rows, dataset.columns);

  dataset.train = {std::make_shared<const TensorDataset>(std::move(train)), 0, rows.size(), order};
  std::size_t first = sizes[kTrainPart];
  for (const auto& [part, subset] :
       {std::pair(kValidationPart, &dataset.validation), std::pair(kTestPart, &dataset.test)}) {
    if (sizes[part] > 0) *subset = {dataset.train.set, first, limited(sizes[part]), order};
    first += sizes[part];
    if (!parts[part]) continue;
    // A part of the source's own stays in its order unless `limit` would keep only the first classes of it.
    const std::size_t count = parts[part]->size(), kept = limited(count);
    Order own;
    if (order && kept < count)
      own = std::make_shared<const std::vector<std::uint32_t>>(random_order(count, spec));
    *subset = {std::make_shared<const TensorDataset>(std::move(*parts[part])), 0, kept, std::move(own)};
  }
}

}  // namespace sweep
