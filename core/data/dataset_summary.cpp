#include "core/data/dataset_summary.h"

#include <algorithm>
#include <set>
#include <span>

#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/data/readers/input_file.h"

namespace sweep {
namespace {

// Of each number among the targets of `samples`.
ChannelStatistics target_statistics(const Subset& samples) {
  const std::span<const float> numbers = samples.set->numbers();
  const TensorDataset targets{.shape = {static_cast<std::int64_t>(numbers.size() / samples.set->size())},
                              .samples = MaybeOwnedArray<float>(numbers, samples.set),
                              .targets = {}};
  std::vector<std::uint32_t> rows;
  for (std::size_t i = 0; i < samples.count; ++i) rows.push_back(static_cast<std::uint32_t>(samples.row(i)));
  return channel_statistics(targets, rows);
}

}  // namespace

std::vector<PartSummary> summarize_parts(const Dataset& dataset) {
  const std::pair<std::string_view, const Subset*> all[] = {
      {"train", &dataset.train}, {"validation", &dataset.validation}, {"test", &dataset.test}};
  std::vector<PartSummary> parts;
  for (const auto& [name, samples] : all) {
    if (samples->count == 0) continue;
    PartSummary part{.name = name, .samples = samples->count, .class_counts = {}, .targets = {}};
    if (is_regression(samples->set->targets)) {
      part.targets = target_statistics(*samples);
    } else {
      part.class_counts.resize(dataset.class_names.size());
      for (const std::int32_t label : samples->labels())
        ++part.class_counts.at(static_cast<std::size_t>(label));
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

std::size_t memory_bytes(const Dataset& dataset) {
  std::set<const TensorDataset*> counted;
  std::size_t bytes = 0;
  for (const Subset* part : {&dataset.train, &dataset.validation, &dataset.test}) {
    if (part->set == nullptr || !counted.insert(part->set.get()).second) continue;
    bytes += bytes_of(part->set->samples).size() + bytes_of(part->set->targets).size();
  }
  return bytes;
}

std::vector<std::string> dataset_remarks(const Dataset& dataset) {
  constexpr std::size_t kMaxShown = 3;
  std::vector<std::string> remarks;
  if (!dataset.skipped.empty()) {
    const std::size_t count = dataset.skipped.size();
    std::string line = fmt::format("data set \"{}\": {} {} skipped: ", dataset.name, counted(count, "file"),
                                   count == 1 ? "was" : "were");
    for (std::size_t i = 0; i < std::min(count, kMaxShown); ++i) {
      const auto& [path, reason, unread] = dataset.skipped[i];
      line += (i > 0 ? "; " : "") + printable_line(fmt::format("{} ({})", path.string(), reason));
    }
    if (count > kMaxShown) line += "; … run.json lists all of them";
    remarks.push_back(std::move(line));
  }
  remarks.insert(remarks.end(), dataset.notes.begin(), dataset.notes.end());
  return remarks;
}

}  // namespace sweep
