#include "runmanager/answers/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

#include "core/base/error.h"
#include "core/base/suggest.h"
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
  if (!run.provenance.is_object() || !run.provenance.contains("machine")) return "";
  const auto& machine = run.provenance.at("machine");
  if (!machine.is_object()) return "";
  // A record that somebody changed may have any value there.
  const auto text = [&machine](const char* key) {
    const auto found = machine.find(key);
    return found != machine.end() && found->is_string() ? found->get<std::string>() : "";
  };
  return text("host") + ", " + text("processor");
}

std::vector<std::string> notes_on(const RunPair& pair, const std::string& key) {
  const RunRecord &base = pair.base->record, &other = pair.other->record;
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

std::optional<double> first_epoch(const RunRecord& run) {
  return run.epochs.empty() ? std::nullopt : run.epochs.front()["epoch_seconds"];
}

std::string name_of(const SourceRun& run) { return run.source + "/" + run.record.name; }

ComparedPair compare_pair(const RunPair& pair, const std::string& key, const std::string& metric) {
  const RunRecord &base = pair.base->record, &other = pair.other->record;
  ComparedPair compared{.settings = pair.settings,
                        .base_run = name_of(*pair.base),
                        .other_run = name_of(*pair.other),
                        .base = run_metric(base, metric),
                        .other = run_metric(other, metric),
                        .first_epoch_base = first_epoch(base),
                        .first_epoch_other = first_epoch(other),
                        .setup_base = base.setup_seconds,
                        .setup_other = other.setup_seconds,
                        .data_wait_base = run_metric(base, "data_wait_seconds"),
                        .data_wait_other = run_metric(other, "data_wait_seconds"),
                        .curves = compare_curves(base, other),
                        .base_jobs = base.jobs,
                        .other_jobs = other.jobs,
                        .notes = notes_on(pair, key)};
  if (compared.base && compared.other && *compared.other != 0) {
    const double ratio = *compared.base / *compared.other;
    if (std::isfinite(ratio)) compared.ratio = ratio;
  }
  return compared;
}

ComparedValue compare_value(const PairedValue& value, const std::string& key, const std::string& metric) {
  ComparedValue compared{.base = value.base, .other = value.other, .of_one = value.of_one};
  std::vector<double> ratios, differences;
  for (const RunPair& pair : value.pairs) {
    const ComparedPair& added = compared.pairs.emplace_back(compare_pair(pair, key, metric));
    if (added.ratio) ratios.push_back(*added.ratio);
    if (added.base && added.other && std::isfinite(*added.other - *added.base))
      differences.push_back(*added.other - *added.base);
  }
  compared.ratio = geometric_mean_of(ratios);
  compared.difference = mean_of(differences);
  return compared;
}

// What runs are compared by if nobody says: programs need not report epochs.
std::string default_metric(const std::vector<SourceRun>& runs) {
  const bool has_epochs = std::ranges::any_of(
      runs, [](const SourceRun& run) { return run_metric(run.record, kEpochSeconds).has_value(); });
  return std::string(has_epochs ? kEpochSeconds : "run_seconds");
}

void require_metric(const std::vector<SourceRun>& runs, const std::string& metric) {
  std::vector<const RunRecord*> records;
  for (const SourceRun& run : runs) records.push_back(&run.record);
  const std::vector<std::string> names = metric_names(records);
  if (std::find(names.begin(), names.end(), metric) != names.end()) return;
  throw ConfigError(fmt::format("\"{}\": no run has this metric; there are: {}{}", metric,
                                fmt::join(names, ", "), did_you_mean(nearest_key(metric, names), ". Did")));
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

Comparison compare_runs(const std::vector<SourceRun>& runs, const std::string& key,
                        const std::string& metric) {
  const RunPairs pairs = pair_runs(runs, key);
  Comparison comparison{.key = pairs.key, .metric = metric.empty() ? default_metric(runs) : metric};
  require_metric(runs, comparison.metric);
  for (const PairedValue& value : pairs.values)
    comparison.values.push_back(compare_value(value, pairs.key, comparison.metric));
  for (const SourceRun* run : pairs.alone) comparison.alone.push_back(name_of(*run));
  for (const SourceRun* run : pairs.unfinished)
    comparison.unfinished.push_back(fmt::format("{}: {}", name_of(*run), to_string(run->record.status)));
  return comparison;
}

}  // namespace sweep
