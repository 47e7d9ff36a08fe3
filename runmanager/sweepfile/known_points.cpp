// A search's prior knowledge: points to try first, and results of other sweeps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/config/metrics.h"
#include "runmanager/config/params.h"
#include "runmanager/sweepfile/run_reader.h"
#include "runmanager/sweepfile/search_reader.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Whether `given` is the name of a value that is an object, or what results have of it.
bool is_called(const JsonView& value, const KeyPath& path, const Json& given) {
  const JsonView name = value.find("name");
  return same_value(compared_value(*value, path), given) || (name && same_value(*name, given)) ||
         (given.is_string() && value->is_structured() && given == param_text(param_of(value, path)));
}

// Reads points and results by the axes that their parameters are of.
struct KnownPointReader {
  const std::vector<Axis>& axes;
  const SearchDomain& domain;
  const JsonView base;
  const SearchSpec& search;
  Problems& problems;

  // A point to try. Reports values outside of the space.
  SearchPoint point(const JsonView& given) {
    SearchPoint point(axes.size());
    if (!given->is_object() || given->empty()) {
      problems.add_value(given, "an object with values of axes, such as {\"lr\": 0.01}");
      return point;
    }
    const std::size_t before = problems.size();
    for (const JsonView& member : given.children()) {
      const std::optional<std::size_t> axis = axis_of(member);
      if (!axis) {
        std::vector<std::string> keys;
        for (const Axis& known : axes) keys.push_back(known.key);
        problems.add_unknown_key(member, keys);
        continue;
      }
      point[*axis] = number_of(axes[*axis], member);
      if (!point[*axis]) problems.add_value(member, allowed(axes[*axis]));
    }
    if (problems.size() > before) return point;
    const bool is_whole = std::ranges::all_of(point, [](const auto& value) { return value.has_value(); });
    if (is_whole && domain.is_allowed && !domain.is_allowed(without_inactive(domain, point)))
      problems.add(given, "is excluded, want a point that the search may try");
    return point;
  }

  // A result: {"params": {…}, "value": 0.3}. Nothing if its parameters do not lie in the space.
  std::optional<Observation> result(const JsonView& given) {
    const JsonView params = given.find("params"), value = given.find("value");
    if (!params->is_object() || !value->is_number()) {
      problems.add_value(given, "the directory of a sweep, or {\"params\": {\"lr\": 0.01}, \"value\": 0.5}");
      return std::nullopt;
    }
    Observation result{.point = SearchPoint(axes.size()), .value = search.goals[0].cost(value.number())};
    bool has_any = false;
    for (const JsonView& member : params.children()) {
      const std::optional<std::size_t> axis = axis_of(member);
      if (!axis && !agrees(member)) return std::nullopt;
      if (!axis) continue;
      result.point[*axis] = number_of(axes[*axis], member);
      if (!result.point[*axis]) return std::nullopt;
      has_any = true;
    }
    result.point = without_inactive(domain, std::move(result.point));
    if (!has_any || (domain.is_allowed && !domain.is_allowed(result.point))) return std::nullopt;
    return result;
  }

  std::optional<KeyPath> path_of(const JsonView& member) const {
    Problems ignored;
    return resolve_key(member.key(), member.key_place(),
                       is_command_file(base) ? KeyUse::kParameter : KeyUse::kValue, ignored);
  }

  std::optional<std::size_t> axis_of(const JsonView& member) const {
    const std::optional<KeyPath> path = path_of(member);
    const auto axis = std::ranges::find_if(axes, [&](const Axis& one) { return path && one.path == *path; });
    if (axis == axes.end()) return std::nullopt;
    return static_cast<std::size_t>(axis - axes.begin());
  }

  // The number of a value in a point; none if the axis does not have it.
  static std::optional<double> number_of(const Axis& axis, const JsonView& value) {
    if (axis.range) {
      const double number = value.number();
      const bool is_in = value->is_number() && number >= axis.range->low && number <= axis.range->high &&
                         (!has_integers(axis.range->kind) || number == std::floor(number));
      return is_in ? std::optional(number) : std::nullopt;
    }
    const auto& values = axis.values.json;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (same_value(values[i], *value)) return static_cast<double>(i);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (is_called(JsonView(axis.values).at(i), axis.path, *value)) return static_cast<double>(i);
    return std::nullopt;
  }

  static std::string allowed(const Axis& axis) {
    if (axis.range)
      return fmt::format("{} from {} to {}", has_integers(axis.range->kind) ? "an integer" : "a number",
                         axis.range->low, axis.range->high);
    std::vector<std::string> values;
    for (const JsonView& value : JsonView(axis.values).children())
      values.push_back(value->is_structured() ? in_quotes(param_text(param_of(value, axis.path)))
                                              : describe(value));
    return listed(values);
  }

  // Whether a run with this parameter trains what this sweep does: seeds may differ, and what changes only
  // times.
  bool agrees(const JsonView& member) const {
    const std::optional<KeyPath> path = path_of(member);
    if (is_command_file(base) || !path || *path == KeyPath{"seed"} || *path == KeyPath{"device"}) return true;
    const std::optional<Setting> setting = setting_at(*path);
    if (setting && setting->changes == Changes::kTimes) return true;
    const JsonView own = find_path(base, *path);
    return own ? is_called(own, *path, *member) : same_value(value_at(base, *path), *member);
  }
};

// The epoch whose weights a run has kept as the best; infinity: it has kept the last ones. Its record says
// it.
double kept_epoch(const fs::path& run_directory) {
  try {
    return Json::parse(read_file(run_directory / "run.json")).value("best_epoch", HUGE_VAL);
  } catch (const std::exception&) {
    return HUGE_VAL;  // None is there, as of another training loop.
  }
}

// The value of the metric of every run that was completed: that of the epoch it has kept, as for trials, or
// the last before it. None of a run that ended with what is no number.
Json results_in(const fs::path& file, const Goal& goal) {
  const std::string key(goal.metric->key);
  Json results = Json::array();
  const Json sweep = Json::parse(read_file(file));
  for (const Json& run : sweep.at("runs")) {
    if (run.at("status") != "completed") continue;
    const double kept = kept_epoch(file.parent_path() / run.at("name").get<std::string>());
    Json counted;
    for (const Json& epoch : run.at("epochs")) {
      const Json value = epoch.value(key, Json());
      if (!value.is_null() && epoch.value("epoch", 0.0) <= kept) counted = value;
    }
    if (!counted.is_number()) continue;
    Json params = run.at("params");
    params.erase(std::string(kRepeatKey));
    results.push_back({{"params", std::move(params)}, {"value", std::move(counted)}});
  }
  return results;
}

// The results of the sweep whose directory `given` names.
Json results_of(const JsonView& given, const fs::path& directory, const SearchSpec& search,
                Problems& problems) {
  std::error_code error;
  fs::path file = directory / given.text() / "results.json";
  if (!fs::exists(file, error)) file = fs::path(given.text()) / "results.json";
  try {
    return results_in(file, search.goals[0]);
  } catch (const std::exception&) {
    problems.add_value(given, "the directory of a sweep, with a results.json");
    return Json::array();
  }
}

}  // namespace

void learn_as_before(JsonDocument& root, const SearchSpec& search, const fs::path& record, Json& learned,
                     Problems& problems) {
  const JsonView sources = JsonView(root).find("search").find("learn_from");
  if (!sources) return;
  const Json metric = search.goals[0].metric->key;
  if (std::ranges::none_of(*sources, &Json::is_string)) {
    if (learned.is_object() && learned.value("metric", metric) != metric)
      problems.add(sources, fmt::format("has values of {}, want that \"metric\", or the sweep file again",
                                        learned["metric"].dump()));
    return;
  }
  learned = {{"from", *sources}, {"metric", metric}};
  try {
    const Json before = Json::parse(read_file(record));
    if (before.at("learned") != learned) return;
    root.set(root.json["search"]["learn_from"], {"search", "learn_from"},
             JsonDocument(before.at("search").at("learn_from"), sources.place().whole()));
  } catch (const std::exception&) {
    // This is the first start, or its record is damaged and will be written again.
  }
}

void read_known_points(JsonDocument& root, const std::vector<Axis>& axes, const SearchDomain& domain,
                       const JsonView& base, const fs::path& directory, SearchSpec& search,
                       Problems& problems) {
  KnownPointReader reader{axes, domain, base, search, problems};
  const JsonView node = JsonView(root).find("search");
  if (const JsonView points = node.find("points")) {
    for (const JsonView& point : points.children()) search.points.push_back(reader.point(point));
    if (search.trials > 0 && search.points.size() > search.trials)
      problems.add(points, fmt::format("these are {} points, want at most {}, the \"trials\"",
                                       search.points.size(), search.trials));
  }
  const JsonView sources = node.find("learn_from");
  if (!sources) return;
  Json results = Json::array();
  const auto learn = [&](const JsonView& result) {
    results.push_back(*result);
    if (std::optional<Observation> learned = reader.result(result))
      search.learned.push_back(*std::move(learned));
  };
  for (const JsonView& source : sources.children()) {
    if (!source->is_string()) {
      learn(source);
      continue;
    }
    for (Json& result : results_of(source, directory, search, problems))
      learn(JsonDocument(std::move(result), source.place().whole()));
  }
  root.set(root.json["search"]["learn_from"], {"search", "learn_from"},
           JsonDocument(std::move(results), sources.place().whole()));
}

}  // namespace sweep
