#include "runmanager/sweepfile/search_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "runmanager/config/metrics.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SearchSpec, trials, seed, at_once, min_epochs, reduction,
                                                interval)

namespace {

const Axis* find_axis(const Space& space, const std::function<bool(const Axis&)>& wanted) {
  const std::vector<const Axis*> axes = space.axes();
  const auto found = std::ranges::find_if(axes, [&](const Axis* axis) { return wanted(*axis); });
  return found == axes.end() ? nullptr : *found;
}

const Axis* find_range(const Space& space) {
  return find_axis(space, [](const Axis& axis) { return axis.range.has_value(); });
}

// How it chooses trials.
SearchSpec method_of(const nlohmann::ordered_json& json) {
  SearchSpec search = json.get<SearchSpec>();
  search.method = search_method_names().parse(json.value("method", "grid"));
  search.samples_tpe = json.value("sampler", "") == "tpe";
  return search;
}

SearchSpec search_of(const nlohmann::ordered_json& json) {
  SearchSpec search = method_of(json);
  search.goals = goals_in(json, {});
  if (json.contains("target")) search.target = json.at("target");
  if (json.contains("seconds")) search.seconds = json.at("seconds");
  return search;
}

// Whether a network whose training has begun can go on with another value.
bool can_change(const KeyPath& path) {
  static const std::set<std::string> fixed = {"name", "nesterov", "centered"};
  if (path[0] == "optimizer" || path[0] == "loss") return path.size() == 2 && !fixed.contains(path[1]);
  if (path[0] == "network") return path.back() == "p";
  return path == KeyPath{"lr"} || path == KeyPath{"clip_norm"};
}

// 0 is no momentum, for which nothing is kept. A range has its lowest number for a value.
bool has_momentum_zero(const Axis& axis) {
  return axis.path == KeyPath{"optimizer", "momentum"} &&
         std::ranges::any_of(axis.values.json, [](const auto& value) { return value == 0; });
}

// Checks a search against the rest of its file.
struct SearchChecks {
  const JsonView root, node;
  const SearchSpec& search;
  const Space& space;
  Problems& problems;
  const std::string& method = search_method_names().of(search.method);
  const bool draws = draws_points(search, space);

  // Reports `value`, if there is any: "METHOD …".
  void refuse(const JsonView& value, std::string_view text) const {
    if (value) problems.add(value, fmt::format("\"{}\" {}", method, text));
  }
  void refuse_axis(std::string_view key, const std::string& message) const {
    if (const Axis* found = find_axis(space, [key](const Axis& axis) { return axis.path[0] == key; }))
      problems.add(found->place, message);
  }

  void check_population() const {
    if (search.trials == 1) refuse(node.find("trials"), "compares its members, want at least 2");
    refuse(root.find("stop"), "trains its members equally long, want no \"stop\"");
    if (const JsonView checkpoint = root.find("checkpoint"); checkpoint && *checkpoint != kKeepLast)
      refuse(checkpoint, "copies the weights of the last epoch, want last");
    if (is_command_file(root)) return;
    for (const Axis& axis : space.grids().at(0).axes) {
      if (!can_change(axis.path))
        problems.add(
            axis.place,
            "cannot change while a network is trained, as \"population\" does; want lr, clip_norm, p of "
            "a dropout, or an argument of the optimizer (momentum, weight_decay, …) or of the loss");
      else if (has_momentum_zero(axis))
        problems.add(axis.place,
                     "\"population\" cannot add a momentum while a network is trained, want values > 0");
    }
  }

  // What does not go together: where, and what is wrong.
  void check_space() const {
    if (!draws) refuse(node.find("points"), "has every combination, want a method that draws points");
    if (search.goals.size() > 1) {
      if (compares_on_the_way(search.method))
        refuse(node.find("metric"),
               "compares trials by one number, want one metric, or the method grid, random or tpe");
      for (const char* key : {"target", "learn_from"}) {
        if (const JsonView member = node.find(key))
          problems.add(member,
                       fmt::format("\"{}\" is of one metric, but there are {}", key, search.goals.size()));
      }
    }
    if (!chooses_points(search))
      refuse(node.find("learn_from"), "does not learn, want the method or \"sampler\" tpe");
    if (search.method == SearchMethod::kGrid) {
      if (search.trials > 0)
        problems.add(node.find("trials"),
                     "a grid has all of its combinations, want another \"method\", or no \"trials\"");
      return;
    }
    if (search.trials == 0 &&
        (search.method == SearchMethod::kTpe || search.method == SearchMethod::kPopulation ||
         (draws && search.method != SearchMethod::kHyperband)))
      refuse(node, "has to know how many, want \"trials\"");
    for (const char* key : {"grids", "zip"}) {
      if (draws)
        refuse(root.find(key),
               fmt::format("draws points of one space, want \"params\" alone, or the method grid{}",
                           has_range(space) ? "" : ", or halving without \"trials\""));
    }
    if (space.has_repeats() && search.method != SearchMethod::kRandom)
      refuse(root.find("repeats"), "compares single trainings, want 1, or the method grid or random");
    if (compares_on_the_way(search.method))
      refuse_axis("epochs", fmt::format("\"{}\" decides how long each trial is trained, want one number of "
                                        "epochs for all",
                                        method));
    if (!has_rungs(search.method) || !draws)
      refuse(node.find("sampler"),
             fmt::format("{}, want halving, hyperband or asha with \"trials\"",
                         has_rungs(search.method) ? "has every combination" : "has its own points"));
    if (chooses_points(search))
      refuse_axis("dataset", fmt::format("\"tpe\" trains on one data set, want another {}, or a sweep for "
                                         "each data set",
                                         search.samples_tpe ? "sampler" : "method"));
    if (search.method == SearchMethod::kPopulation) check_population();
    if (space.axes().empty()) problems.add(node, "there is nothing to search, want \"params\"");
  }

  // A key that the method makes no use of is a mistake, unless the command line tries something else than the
  // file. check_space() says more of others.
  void check_use() const {
    const bool rungs = has_rungs(search.method), members = search.method == SearchMethod::kPopulation;
    const std::pair<const char*, bool> keys[] = {
        {"seed", draws},
        {"at_once", chooses_points(search) || search.method == SearchMethod::kAsha || search.target},
        {"min_epochs", rungs},
        {"reduction", rungs || members},
        {"interval", members}};
    std::vector<std::string> used = {"metric", "mode", "target", "seconds"};
    for (const auto& [key, is_used] : keys) {
      if (is_used) used.emplace_back(key);
    }
    for (const auto& [key, is_used] : keys) {
      const JsonView member = node.find(key);
      const auto decides = [&](const char* other) {
        const JsonView given = node.find(other);
        return given && given.place().source != member.place().source;
      };
      if (member && !is_used && !decides("method") && !decides("sampler") && !decides("trials"))
        problems.add(
            member,
            fmt::format("\"{}\"{} does not use it, want {}", method,
                        rungs && std::string_view(key) == "seed" ? " without \"trials\"" : "", listed(used)));
    }
  }

  // Trials that are ended early have to have epochs left.
  void check_epochs() const {
    if (!compares_on_the_way(search.method)) return;
    const bool is_command = is_command_file(root), has_members = search.method == SearchMethod::kPopulation;
    const JsonView reports = root.find("reports");
    if (is_command && !reports)
      return refuse(node, "has to know how many steps a whole run reports, want \"reports\"");
    const int epochs = epochs_of(root), wanted = has_members ? search.interval : search.min_epochs;
    if (is_command && epochs > kMaxComparedReports)
      refuse(reports,
             fmt::format("compares single reports, want at most {}: report less often", kMaxComparedReports));
    if (has_members ? wanted < epochs : wanted <= epochs) return;
    const char* const key = has_members ? "interval" : "min_epochs";
    problems.add(
        node.find(key) ? node.find(key) : node,
        fmt::format("{} is {}, want {} {}, the {}", key, wanted, has_members ? "less than" : "at most",
                    epochs, is_command ? "\"reports\"" : "epochs of a whole training"));
  }
};

}  // namespace

int epochs_of(const JsonView& file) {
  Problems ignored;
  const Setting& epochs = *find_setting(settings_of(file), is_command_file(file) ? "reports" : "epochs");
  return complete_value(epochs, {file.find(epochs.name), file, {}, {}, ignored}).get<int>();
}

std::size_t trials_to_come(const nlohmann::ordered_json& sweep) {
  if (!sweep.contains("search")) return 0;
  const SearchSpec search = method_of(sweep["search"]);
  return adds_trials(search) ? total_trials(search, epochs_of(document_of(sweep, "sweep.json"))) : 0;
}

bool has_range(const Space& space) { return find_range(space) != nullptr; }

bool draws_points(const SearchSpec& search, const Space& space) {
  if (search.method == SearchMethod::kGrid) return false;
  const bool takes_all = search.trials == 0 && search.method != SearchMethod::kHyperband &&
                         search.method != SearchMethod::kPopulation;
  return has_range(space) || !takes_all;
}

void check_ranges(const Space& space, Problems& problems) {
  for (const Axis& axis : space.grids().at(0).axes) {
    const std::optional<Setting> setting = setting_at(axis.path);
    if (!axis.range || !setting) continue;
    if (setting->kind == ArgumentKind::kInteger && !has_integers(axis.range->kind)) {
      problems.add(axis.place, "a range of numbers with fractions, want int_uniform or log_int_uniform");
      continue;
    }
    for (const double end : {axis.range->low, axis.range->high})
      check_value(axis.value_at(end), *setting, problems);
  }
}

std::optional<SearchSpec> read_search(const JsonView& root, const Space& space, bool is_recorded,
                                      Problems& problems) {
  const JsonView node = root.find("search");
  const std::size_t problems_before = problems.size();
  std::optional<SearchSpec> search;
  if (node) {
    const Setting& setting = *find_setting(settings_of(root), "search");
    const auto json = complete_value(setting, {node, root, {}, {}, problems});
    if (!node->is_object()) return std::nullopt;
    search = search_of(json);
    const JsonView metric = node.find("metric");
    search->metric_given = static_cast<bool>(metric);
    search->origin = to_string((metric ? metric : node).place());
    const SearchChecks checks{root, node, *search, space, problems};
    if (problems.empty()) checks.check_space();
    if (problems.empty() && !is_recorded) checks.check_use();
    checks.check_epochs();
  }
  if (problems.size() == problems_before && (!search || search->method == SearchMethod::kGrid)) {
    if (const Axis* range = find_range(space))
      problems.add(
          range->place,
          "a range of numbers has no combinations to try, want a list of values, linspace or "
          "logspace; or \"search\" with the method random, tpe, halving, hyperband, asha or population");
  }
  const bool is_plain =
      search && search->method == SearchMethod::kGrid && !search->target && !search->seconds;
  return is_plain ? std::nullopt : search;
}

}  // namespace sweep
