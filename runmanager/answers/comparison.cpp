#include "runmanager/answers/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "core/json/json_text.h"
#include "runmanager/records/run_identity.h"
#include "runmanager/records/run_metric.h"

namespace sweep {
namespace {

// Tells NaN equal to itself.
bool same(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

bool same(const std::optional<double>& a, const std::optional<double>& b) {
  return a.has_value() == b.has_value() && (!a || same(*a, *b));
}

bool same_numbers(const EpochRecord& a, const EpochRecord& b) {
  const auto are_in = [](const EpochRecord& other) {
    return [&other](const auto& value) {
      return !is_quality(*value.first) || same(value.second, other[*value.first]);
    };
  };
  return std::ranges::all_of(a.values, are_in(b)) && std::ranges::all_of(b.values, are_in(a));
}

double loss_difference(double a, double b) {
  if (same(a, b)) return 0;
  const double difference = std::abs(a - b);
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::quiet_NaN();
}

CurveParity compare_curves(const RunRecord& base, const RunRecord& other) {
  CurveParity parity;
  std::map<std::int64_t, const EpochRecord*> others;
  for (const EpochRecord& epoch : other.epochs) others[position_of(epoch)] = &epoch;
  parity.same_bits = base.epochs.size() == other.epochs.size() && !base.epochs.empty();
  for (const EpochRecord& a : base.epochs) {
    const auto found = others.find(position_of(a));
    parity.same_bits &= found != others.end() && same_numbers(a, *found->second);
    if (found == others.end()) continue;
    ++parity.epochs;
    const std::optional<double> loss = a["loss"], other_loss = (*found->second)["loss"];
    if (!loss || !other_loss || std::isnan(parity.largest_loss_difference.value_or(0))) continue;
    const double difference = loss_difference(*loss, *other_loss);
    // A NaN stays: nothing is larger than it.
    if (!parity.largest_loss_difference || !(difference <= *parity.largest_loss_difference)) {
      parity.largest_loss_difference = difference;
      parity.epoch = found->first;
      parity.is_step = parity.epoch != a.epoch || parity.epoch != found->second->epoch;
    }
  }
  return parity;
}

// Whether `setting`, a name in a RunIdentity, is the key's or follows from it, as the arguments of an
// optimizer from its name.
bool belongs_to(const std::string& setting, const std::string& key) {
  return setting == key || setting.starts_with(key + ".") || setting.ends_with("." + key);
}

std::string machine_of(const RunRecord& run) {
  const nlohmann::ordered_json* const machine = find_at(run.provenance, "machine");
  if (machine == nullptr || !machine->is_object()) return "";
  // A record that somebody changed may have any value there.
  const auto text = [machine](const char* key) {
    const auto* const found = find_at(*machine, key);
    return found != nullptr && found->is_string() ? found->get<std::string>() : "";
  };
  return text("host") + ", " + text("processor");
}

std::vector<std::string> notes_on(const RunRecord& base, const RunRecord& other, const std::string& key) {
  std::vector<std::string> notes;
  const auto is_program = [](const RunRecord& run) {
    return run.config.is_object() && run.config.contains("command");
  };
  if (is_program(base) != is_program(other)) {
    notes.emplace_back(is_program(base) ? "a program against a network" : "a network against a program");
  } else if (base.config.is_object() && other.config.is_object()) {
    std::vector<SettingDifference> differ = differences(identity_of(base), identity_of(other));
    std::erase_if(differ,
                  [&key](const SettingDifference& difference) { return belongs_to(difference.key, key); });
    if (!differ.empty()) notes.push_back(to_string(differ));
  }
  if (base.epochs.size() != other.epochs.size() && key != "epochs")
    notes.push_back(fmt::format("{} and {} epochs", base.epochs.size(), other.epochs.size()));
  if (machine_of(base) != machine_of(other))
    notes.push_back(fmt::format("on other machines: {}; {}", machine_of(base), machine_of(other)));
  return notes;
}

std::string name_of(const SourceRun& run) { return run.source + "/" + run.record.name; }

ComparedPair compare_pair(const SourceRun& base_run, const SourceRun& other_run,
                          const Comparison& comparison) {
  const RunRecord &base = base_run.record, &other = other_run.record;
  const auto metric = [&](const Metric& of) {
    return Sides<std::optional<double>>{run_metric(base, of), run_metric(other, of)};
  };
  const auto first_epoch = [](const RunRecord& run) {
    return run.epochs.empty() ? std::nullopt : run.epochs.front()[kEpochSeconds];
  };
  ComparedPair pair{.settings = {},
                    .runs = {name_of(base_run), name_of(other_run)},
                    .metric = metric(*comparison.metric),
                    .first_epoch = {first_epoch(base), first_epoch(other)},
                    .setup = {base.setup_seconds, other.setup_seconds},
                    .data_wait = metric(metric_named("data_wait_seconds")),
                    .jobs = {base.jobs, other.jobs},
                    .curves = compare_curves(base, other),
                    .notes = notes_on(base, other, comparison.key)};
  if (pair.metric.base && pair.metric.other && *pair.metric.other != 0) {
    const double ratio = *pair.metric.base / *pair.metric.other;
    if (std::isfinite(ratio)) pair.ratio = ratio;
  }
  return pair;
}

// Estimates what the pairs of the value have in common.
void estimate(ComparedValue& value) {
  std::vector<double> ratios, differences;
  for (const ComparedPair& pair : value.pairs) {
    if (pair.ratio) ratios.push_back(*pair.ratio);
    const auto& [base, other] = pair.metric;
    if (base && other && std::isfinite(*other - *base)) differences.push_back(*other - *base);
  }
  value.ratio = geometric_mean_of(ratios);
  value.difference = mean_of(differences);
}

// If nobody says which, the time of epochs, which programs need not report.
const Metric& chosen_metric(const std::vector<SourceRun>& runs, const std::string& asked) {
  std::vector<const RunRecord*> records;
  for (const SourceRun& run : runs) records.push_back(&run.record);
  const std::vector<std::string> names = metric_names(records);
  const auto has = [&names](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  const std::string name =
      !asked.empty() ? asked : std::string(has(kEpochSeconds) ? kEpochSeconds : "run_seconds");
  if (has(name)) return metric_named(name);
  throw ConfigError(fmt::format("\"{}\": no run has this metric; there are: {}{}", name,
                                fmt::join(names, ", "), did_you_mean(nearest_key(name, names), ". Did")));
}

// In the order of the runs, without repeats.
std::vector<std::string> values_of(const std::vector<SourceRun>& runs, const std::string& key) {
  std::vector<std::string> values;
  std::unordered_set<std::string> seen;
  for (const SourceRun& run : runs) {
    if (!is_completed(run)) continue;
    std::string text = setting_text(run, key);
    if (seen.insert(text).second) values.push_back(std::move(text));
  }
  return values;
}

std::string chosen_key(const std::vector<SourceRun>& runs, const std::string& asked) {
  const std::vector<std::string> varying = varying_keys(runs);
  if (varying.empty())
    throw ConfigError("there is nothing to compare: no setting has two values among the completed runs");
  if (!asked.empty()) {
    if (std::find(varying.begin(), varying.end(), asked) != varying.end() ||
        values_of(runs, asked).size() > 1)
      return asked;
    throw ConfigError(fmt::format("\"{}\": has one value in all completed runs; these have several: {}{}",
                                  asked, fmt::join(varying, ", "),
                                  did_you_mean(nearest_name(asked, varying), ". Did")));
  }
  if (varying.size() == 1 || varying.front() == "device") return varying.front();
  throw ConfigError(
      fmt::format("several settings vary; say which to compare, with --by: {}", fmt::join(varying, ", ")));
}

using Settings = std::vector<std::pair<std::string, std::string>>;

// The completed runs with one value of the key, by their other settings.
using RunsBySettings = std::map<Settings, const SourceRun*>;

Settings other_settings(const SourceRun& run, const std::vector<std::string>& keys, const std::string& key) {
  Settings settings;
  for (const std::string& name : keys) {
    if (name != key) settings.emplace_back(name, setting_text(run, name));
  }
  return settings;
}

// Whether two completed runs would have the same place.
bool are_ambiguous(const std::vector<SourceRun>& runs, const std::vector<std::string>& keys,
                   const std::string& key) {
  std::set<std::pair<std::string, Settings>> seen;
  return std::any_of(runs.begin(), runs.end(), [&](const SourceRun& run) {
    return is_completed(run) && !seen.insert({setting_text(run, key), other_settings(run, keys, key)}).second;
  });
}

// The keys that pairs agree in. Sweeps that are parts of one comparison, such as one on each machine, are
// paired across; sweeps that each have all of it, within.
std::vector<std::string> agreeing_keys(const std::vector<SourceRun>& runs, const std::string& key) {
  std::vector<std::string> keys = varying_keys(runs);
  std::vector<std::string> without_sweep = keys;
  std::erase(without_sweep, kSweepKey);
  return key != kSweepKey && !are_ambiguous(runs, without_sweep, key) ? without_sweep : keys;
}

}  // namespace

std::int64_t position_of(const EpochRecord& epoch) {
  const double step = epoch["step"].value_or(epoch.epoch);
  return std::abs(step) < 1e15 ? static_cast<std::int64_t>(step) : epoch.epoch;
}

Faster faster_of(const ComparedValue& value, double ratio) {
  if (ratio >= 1) return {value.other, value.base, ratio};
  return {value.base, value.other, 1 / ratio};
}

Comparison compare_runs(const std::vector<SourceRun>& runs, const std::string& asked,
                        const std::string& metric) {
  const std::string key = chosen_key(runs, asked);
  Comparison comparison{.key = key, .metric = &chosen_metric(runs, metric)};
  const std::vector<std::string> keys = agreeing_keys(runs, key);
  const std::vector<std::string> values = values_of(runs, key);
  std::vector<std::pair<const SourceRun*, Settings>> bases;  // in the order of the sweep
  std::map<std::string, RunsBySettings> by_value;
  std::map<std::string, std::set<std::string>> known;  // of each value the other settings that its runs have
  for (const SourceRun& run : runs) {
    if (is_completed(run)) {
      const std::string value = setting_text(run, key);
      Settings settings = other_settings(run, keys, key);
      for (const auto& [name, text] : settings) {
        if (!text.empty()) known[value].insert(name);
      }
      if (value == values[0]) bases.emplace_back(&run, settings);
      by_value[value].emplace(std::move(settings), &run);
    } else {
      comparison.unfinished.push_back(fmt::format("{}: {}", name_of(run), to_string(run.record.status)));
    }
  }
  std::set<const SourceRun*> paired;
  for (std::size_t v = 1; v < values.size(); ++v) {
    ComparedValue& value = comparison.values.emplace_back(ComparedValue{values[0], values[v]});
    std::ranges::copy_if(keys, std::back_inserter(value.of_one), [&](const std::string& name) {
      return known[values[0]].contains(name) != known[values[v]].contains(name);
    });
    const RunsBySettings& others = by_value[values[v]];
    for (const auto& [base, settings] : bases) {
      const auto other = others.find(settings);
      if (other == others.end()) continue;
      value.pairs.push_back(compare_pair(*base, *other->second, comparison));
      value.pairs.back().settings = settings;
      paired.insert({base, other->second});
    }
    estimate(value);
  }
  for (const SourceRun& run : runs) {
    if (is_completed(run) && !paired.contains(&run)) comparison.alone.push_back(name_of(run));
  }
  return comparison;
}

}  // namespace sweep
