#include "runmanager/sweepfile/trial_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/text.h"
#include "runmanager/config/run_name.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {

namespace {

// The axes, of ranges with the lowest value, which tells the type of the others.
std::shared_ptr<std::vector<Axis>> with_examples(std::vector<Axis> axes) {
  for (Axis& axis : axes)
    if (axis.range) axis.values.json.push_back(Space::value_at(axis, axis.range->low));
  return std::make_shared<std::vector<Axis>>(std::move(axes));
}

std::vector<const Axis*> pointers_to(const std::vector<Axis>& axes) {
  std::vector<const Axis*> pointers;
  for (const Axis& axis : axes) pointers.push_back(&axis);
  return pointers;
}

}  // namespace

TrialReader::TrialReader(const SearchSpace& space, const JsonView& rule_base, JsonDocument tree,
                         std::vector<Assignment> plain, NetworkFiles files, ReadContext context)
    : space_(std::make_shared<const Space>(space, rule_base)),
      axes_(with_examples(space.grids.at(0).axes)),
      reader_(std::make_shared<CombinationReader>(std::move(tree), std::move(plain), std::move(files),
                                                  std::move(context), axes_)),
      swept_(pointers_to(*axes_)) {}

void TrialReader::check_ranges(Problems& problems) const {
  for (const Axis& axis : *axes_) {
    const std::optional<Setting> setting = setting_at(axis.path);
    if (!axis.range || !setting) continue;
    for (const double end : {axis.range->low, axis.range->high})
      check_value(JsonDocument(Space::value_at(axis, end), axis.place.whole()), *setting, problems);
  }
}

std::vector<std::string> TrialReader::keys() const {
  std::vector<std::string> keys;
  for (const Axis& axis : *axes_) keys.push_back(axis.key);
  if (space_->has_repeats()) keys.emplace_back(kRepeatKey);
  return keys;
}

Combination TrialReader::combination_of(const SearchPoint& point) {
  Combination combination;
  for (std::size_t i = 0; i < axes_->size(); ++i) {
    if (!point[i]) continue;
    Axis& axis = (*axes_)[i];
    std::size_t index = static_cast<std::size_t>(*point[i]);
    if (axis.range) {
      index = axis.values.json.size();
      axis.values.json.push_back(Space::value_at(axis, *point[i]));
    }
    combination.values.push_back({&axis, index});
  }
  return combination;
}

RunConfig TrialReader::read(std::size_t index, const SearchPoint& point, int repeat) {
  Combination combination = combination_of(point);
  combination.repeat = repeat;
  Problems problems;
  RunConfig config = reader_->read(combination, problems);
  problems.throw_if_any();
  config.index = index;
  config.params = swept_.of(combination, space_->has_repeats());
  config.not_swept = swept_.in_force(config);
  config.name = run_name(config.params);
  if (trials_.try_emplace(lower_case(config.name), index).first->second != index)
    config.name += fmt::format("~{}", index + 1);
  return config;
}

void draw_trials(const std::shared_ptr<TrialReader>& reader, const SearchSpec& search, int epochs,
                 Sweep& sweep) {
  auto source = std::make_shared<TrialSource>();
  source->domain = reader->domain();
  const bool is_population = search.method == SearchMethod::kPopulation;
  source->make_run = [reader, is_population](std::size_t index, const SearchPoint& point) {
    RunConfig config = reader->read(index, point);
    if (is_population) config.resolved[kLineageKey] = nlohmann::ordered_json::array();
    return config;
  };
  const std::unique_ptr<Sampler> sampler = make_sampler(search, source->domain);
  std::vector<Observation> earlier;
  for (std::size_t i = 0; i < points_at_start(search, epochs); ++i) {
    std::optional<SearchPoint> point = sampler->suggest(i, earlier);
    if (!point) break;  // There are no more.
    if (reader->repeats() == 1) sweep.runs.push_back(source->make_run(i, *point));
    for (int repeat = 0; reader->repeats() > 1 && repeat < reader->repeats(); ++repeat)
      sweep.runs.push_back(reader->read(sweep.runs.size(), *point, repeat));
    earlier.push_back({.point = *point});
    source->points.push_back(*std::move(point));
  }
  sweep.keys = reader->keys();
  sweep.trials = std::move(source);
}

}  // namespace sweep
