#include "core/data/dataset_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/data/readers/input_file.h"
#include "core/data/shuffled_order.h"

namespace sweep {
namespace {

// Keeps the order of a split apart from the orders of epochs with the same seed.
constexpr std::uint32_t kSplitEpoch = std::numeric_limits<std::uint32_t>::max();

std::size_t part_size(const char* key, const std::variant<std::size_t, double>& size, std::size_t total) {
  if (const auto* count = std::get_if<std::size_t>(&size)) return *count;
  const double fraction = std::get<double>(size);
  if (!(fraction >= 0 && fraction < 1)) {
    throw ConfigError(std::string(key) + " as a fraction must be at least 0 and less than 1, found " +
                      std::to_string(fraction));
  }
  return static_cast<std::size_t>(std::floor(static_cast<double>(total) * fraction));
}

struct SplitSizes {
  std::size_t train, validation, test;
};

SplitSizes split_sizes(const RawData& raw, const DatasetSpec& spec) {
  const std::size_t total = raw.train.count;
  const std::size_t validation = part_size("validation", spec.validation, total);
  const std::size_t test = part_size("test", spec.test, total);
  const auto check_own_part = [&](const char* key, std::size_t count, bool has_part) {
    if (count == 0 || !has_part) return;
    throw ConfigError(std::string(key) + " takes samples from the training set, but " +
                      quoted_name(spec.name) + " has a " + key + " set of its own: leave \"" + key +
                      "\" out");
  };
  check_own_part("validation", validation, raw.validation.has_value());
  check_own_part("test", test, raw.test.has_value());
  if (validation >= total || test >= total - validation) {
    const bool both = validation > 0 && test > 0;
    // Either may be close to the largest number there is.
    const std::string counts = both       ? std::to_string(validation) + " and " + std::to_string(test)
                               : test > 0 ? std::to_string(test)
                                          : std::to_string(validation);
    throw ConfigError(std::string(both       ? "validation and test take "
                                  : test > 0 ? "test takes "
                                             : "validation takes ") +
                      counts + " samples, but the training set of " + quoted_name(spec.name) + " has " +
                      std::to_string(total) + ": nothing is left to train on; at most " +
                      std::to_string(total - 1) + " are possible");
  }
  return {total - validation - test, validation, test};
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
std::vector<std::uint32_t> stratified_order(const RawPart& part, std::size_t classes, const SplitSizes& sizes,
                                            const std::vector<std::uint32_t>& random_order) {
  std::vector<std::size_t> counts(classes);
  for (const std::int32_t c : part.classes) ++counts[static_cast<std::size_t>(c)];
  std::vector<std::size_t> test = class_shares(counts, sizes.test);
  for (std::size_t c = 0; c < classes; ++c) counts[c] -= test[c];
  std::vector<std::size_t> validation = class_shares(counts, sizes.validation);
  std::vector<std::uint32_t> train_rows, validation_rows, test_rows;
  for (const std::uint32_t row : random_order) {
    const auto c = static_cast<std::size_t>(part.classes[row]);
    if (test[c] > 0) {
      --test[c];
      test_rows.push_back(row);
    } else if (validation[c] > 0) {
      --validation[c];
      validation_rows.push_back(row);
    } else {
      train_rows.push_back(row);
    }
  }
  train_rows.insert(train_rows.end(), validation_rows.begin(), validation_rows.end());
  train_rows.insert(train_rows.end(), test_rows.begin(), test_rows.end());
  return train_rows;
}

std::vector<std::uint32_t> random_order(std::size_t count, const DatasetSpec& spec) {
  return shuffled_order(count, spec.split_seed, 0, kSplitEpoch);
}

// Puts `values`, `per_sample` for each sample, into the order of `rows`.
template <typename T>
void reorder(std::vector<T>& values, std::size_t per_sample, const std::vector<std::uint32_t>& rows) {
  std::vector<T> ordered(values.size());
  for (std::size_t i = 0; i < rows.size() && !values.empty(); ++i)
    std::copy_n(values.data() + rows[i] * per_sample, per_sample, ordered.data() + i * per_sample);
  values = std::move(ordered);
}

// A part in another order than its samples have, if they lie in a file: copies of that may be too large.
struct OrderedPart {
  RawPart part;
  std::vector<std::uint32_t> order;  // where sample i is stored; empty: at i
  std::vector<std::int32_t> stored_classes;
};

bool is_in_file(const RawPart& part) {
  return std::holds_alternative<MaybeOwnedArray<std::uint8_t>>(part.samples);
}

// Puts the samples of `ordered`, all of `raw`, into the order of `rows`.
void reorder(OrderedPart& ordered, const RawData& raw, std::vector<std::uint32_t> rows) {
  RawPart& part = ordered.part;
  std::visit(
      [&]<typename Values>(Values& samples) {
        if constexpr (!std::is_same_v<Values, MaybeOwnedArray<std::uint8_t>>)
          reorder(samples, element_count(raw.shape), rows);
      },
      part.samples);
  if (is_in_file(part)) ordered.stored_classes = part.classes;
  reorder(part.classes, 1, rows);
  reorder(part.values, raw.value_names.size(), rows);
  if (is_in_file(part)) ordered.order = std::move(rows);
}

std::shared_ptr<const SampleSet> make_set(OrderedPart ordered, const RawData& raw) {
  auto set = std::make_shared<SampleSet>();
  RawPart& part = ordered.part;
  set->shape = raw.shape;
  if (is_in_file(part)) set->file = raw.mapping;
  std::visit([&](auto& samples) { set->samples = std::move(samples); }, part.samples);
  if (raw.value_names.empty()) {
    set->targets = std::move(part.classes);
  } else {
    set->targets = std::move(part.values);
  }
  set->order = std::move(ordered.order);
  set->ordered_targets = std::move(ordered.stored_classes);
  return set;
}

bool has_missing(const RawPart& part) {
  const auto* values = std::get_if<std::vector<float>>(&part.samples);
  return values != nullptr && std::ranges::any_of(*values, [](float value) { return std::isnan(value); });
}

// Returns the means that stand for missing values, if any may be missing. `count`: of training samples, the
// first of `train`, which was taken out of `raw`.
std::vector<float> fill_missing_values(RawPart& train, RawData& raw, MissingValues missing,
                                       std::size_t count) {
  std::vector<RawPart*> parts = {&train};
  for (std::optional<RawPart>* part : {&raw.validation, &raw.test})
    if (*part) parts.push_back(&**part);
  const bool any = std::ranges::any_of(parts, [](const RawPart* part) { return has_missing(*part); });
  if (!any && (missing == MissingValues::kError || is_in_file(train))) return {};
  const std::vector<double> means = channel_statistics(train, raw.shape, count).mean;
  for (RawPart* part : parts)
    if (has_missing(*part)) fill_missing(*part, raw.shape, means);
  return {means.begin(), means.end()};
}

// By the first `count` samples.
InputTransform measured_transform(const OrderedPart& train, const RawData& raw, std::size_t count) {
  const ChannelStatistics statistics =
      train.order.empty() ? channel_statistics(train.part, raw.shape, count)
                          : channel_statistics(train.part, raw.shape,
                                               {train.order.begin(),
                                                train.order.begin() + static_cast<std::ptrdiff_t>(count)});
  InputTransform transform;
  for (std::size_t c = 0; c < statistics.mean.size(); ++c) {
    const bool indicator = c < raw.is_indicator.size() && raw.is_indicator[c];
    const auto deviation = static_cast<float>(statistics.deviation[c]);
    transform.mean.push_back(indicator ? 0.0f : static_cast<float>(statistics.mean[c]));
    transform.std.push_back(indicator || deviation == 0 ? 1.0f : deviation);
  }
  return transform;
}

}  // namespace

DatasetParts split_samples(RawData raw, const DatasetSpec& spec, SplitMethod method, bool measure) {
  const SplitSizes sizes = split_sizes(raw, spec);
  const auto limited = [&](std::size_t count) {
    return spec.limit == 0 ? count : std::min(count, spec.limit);
  };
  if (method == SplitMethod::kStratified && !raw.value_names.empty()) {
    throw ConfigError("split \"stratified\" takes the same part of every class, but the targets of " +
                      quoted_name(spec.name) + " are numbers: \"random\" is possible");
  }
  std::vector<std::uint32_t> rows;
  if (method != SplitMethod::kEnd) rows = random_order(raw.train.count, spec);
  if (method == SplitMethod::kStratified)
    rows = stratified_order(raw.train, raw.class_names.size(), sizes, rows);
  OrderedPart train{std::move(raw.train), {}, {}};
  if (method != SplitMethod::kEnd) reorder(train, raw, std::move(rows));
  DatasetParts parts;
  parts.fill_values = fill_missing_values(train.part, raw, spec.missing, limited(sizes.train));
  if (measure) parts.transform = measured_transform(train, raw, limited(sizes.train));
  // A part of the source's own stays in its order unless `limit` would keep only the first classes of it.
  const auto whole_part = [&](std::optional<RawPart>& part) -> Samples {
    if (!part) return {};
    OrderedPart whole{std::move(*part), {}, {}};
    const std::size_t count = whole.part.count, kept = limited(count);
    if (method != SplitMethod::kEnd && kept < count) reorder(whole, raw, random_order(count, spec));
    return {make_set(std::move(whole), raw), 0, kept};
  };

  const std::shared_ptr<const SampleSet> set = make_set(std::move(train), raw);
  parts.train = {set, 0, limited(sizes.train)};
  if (sizes.validation > 0) parts.validation = {set, sizes.train, limited(sizes.validation)};
  if (sizes.test > 0) parts.test = {set, sizes.train + sizes.validation, limited(sizes.test)};
  if (raw.validation) parts.validation = whole_part(raw.validation);
  if (raw.test) parts.test = whole_part(raw.test);
  return parts;
}

}  // namespace sweep
