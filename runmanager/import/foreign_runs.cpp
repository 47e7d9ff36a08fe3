#include "runmanager/import/import_sweep.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "runmanager/config/metrics.h"
#include "runmanager/inspect/event_export.h"
#include "runmanager/kinds/command/metric_sources.h"
#include "tbwriter/event_files.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// As runs are called.
std::string normal(const fs::path& path) { return path.lexically_normal().string(); }

std::string parent_of(const fs::path& run) { return normal((fs::path(".") / run).parent_path()); }

// The value that a text means: true or false, a number, or the text itself.
ParamValue param_of_text(std::string_view text) {
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  if (const auto integer = number_in<std::int64_t>(text)) return *integer;
  // "nan" and "inf" may be names.
  if (const auto number = number_in<double>(text); number && std::isfinite(*number)) return *number;
  return std::string(text);
}

// Finds "key=value" in the name of a run: "lr=0.1 batch_size=100", also with commas, hyphens, underscores or
// semicolons between them, and inside of other text, as in "Nov24_host-Run(lr=0.1, batch_size=100)". A minus,
// an underscore and a dot may belong to a value, unless a key follows.
Params params_of_name(std::string_view name) {
  static const std::regex setting(
      R"((?:^|[^A-Za-z0-9])([A-Za-z][\w.]*)=((?:(?![ ,;)/]|[-_.][A-Za-z][\w.]*=)[\s\S])*))");
  Params params;
  for (std::cregex_iterator found(name.data(), name.data() + name.size(), setting), end; found != end;
       ++found) {
    const std::string key = found->str(1);
    std::erase_if(params, [&key](const auto& param) { return param.first == key; });
    params.emplace_back(key, param_of_text(found->str(2)));
  }
  return params;
}

// Gives each key one type in all runs, where whole numbers are integers if all of its values are.
void unify_foreign_types(std::vector<ForeignRun>& runs) {
  constexpr double kLimit = 1e15;
  std::vector<Params*> all;
  for (ForeignRun& run : runs) {
    for (auto& [key, value] : run.params) {
      const auto* const number = std::get_if<double>(&value);
      if (number != nullptr && std::trunc(*number) == *number && std::abs(*number) < kLimit)
        value = static_cast<std::int64_t>(*number);
    }
    all.push_back(&run.params);
  }
  unify_types(all);
}

// The metric of a tag in a directory that add_scalars() has made; the tag if it has not.
std::string metric_of_series(const ExportedRun& run, const std::string& tag) {
  return metric_in(fs::path(".") / run.name, tag);
}

// Puts the directories of one run together.
class RunMaker {
 public:
  explicit RunMaker(fs::path top) : top_(std::move(top)) {}

  void add(const ExportedRun& exported, EventsPart part) {
    for (const std::string& file : tbwriter::list_event_files(top_ / exported.name))
      run_.files.push_back((fs::path(exported.name) / file).lexically_normal());
    for (const auto& [name, value] : exported.session.hparams) {
      if (std::holds_alternative<std::nullptr_t>(value)) continue;
      std::erase_if(run_.params, [&name = name](const auto& param) { return param.first == name; });
      run_.params.emplace_back(name, to_param(value));
    }
    run_.has_session = run_.has_session || !exported.session.hparams.empty();
    if (exported.session.status) run_.status = exported.session.status;
    for (const ExportedScalar& scalar : exported.scalars)
      add(scalar, part,
          part == EventsPart::kSeries ? metric_of_series(exported, scalar.tag) : metric_of(scalar.tag, part));
  }

  ForeignRun finish(std::string name, std::vector<std::string>& remarks) {
    run_.name = std::move(name);
    if (run_.params.empty()) read_settings(remarks);
    if (run_.params.empty()) run_.params = params_of_name(run_.name);
    for (auto& [at, report] : steps_) run_.reports.push_back(std::move(report));
    return std::move(run_);
  }

 private:
  void add(const ExportedScalar& scalar, EventsPart part, std::string name) {
    if (name.empty()) return;
    // Two tags may mean the same metric: the first one counts.
    if (part != EventsPart::kSession && !names_.insert(name).second) names_.insert(name = scalar.tag);
    if (part == EventsPart::kSession) {
      run_.metrics.emplace_back(name, scalar.points.back().value);
      return;
    }
    for (const ExportedPoint& point : scalar.points) {
      MetricReport& report = steps_[{point.step, part == EventsPart::kRun}];
      report.step = point.step;
      report.in_events = part == EventsPart::kRun;
      // A metric may be logged late, such as one of epochs among those of batches.
      report.wall_time =
          report.values.empty() ? point.wall_time : std::min(report.wall_time, point.wall_time);
      report.values.emplace_back(&metric_called(name), point.value);
    }
  }

  // From the run's directory, or one above it, up to the one that was given.
  void read_settings(std::vector<std::string>& remarks) {
    for (fs::path at = run_.files.front().parent_path();; at = at.parent_path()) {
      for (const char* name : {"hparams.yaml", "config.yaml"}) {
        const fs::path file = top_ / at / name;
        std::error_code error;
        if (!fs::is_regular_file(file, error)) continue;
        try {
          read_settings(file, remarks);
        } catch (const YAML::Exception& problem) {
          remarks.push_back(fmt::format("{}: left out: {}", file.string(), problem.what()));
        }
        if (!run_.params.empty()) return;
      }
      if (at.empty()) return;
    }
  }

  // W&B writes objects, whose "value" counts. Throws YAML::Exception.
  void read_settings(const fs::path& file, std::vector<std::string>& remarks) {
    std::vector<std::string> nested;
    const YAML::Node settings = YAML::Load(read_file(file));
    if (!settings.IsMap()) return;
    for (const auto& setting : settings) {
      const std::string key = setting.first.Scalar();
      if (key.starts_with("wandb") || key.starts_with('_')) continue;
      YAML::Node value = setting.second;
      if (value.IsMap() && value["value"]) value.reset(value["value"]);
      if (value.IsScalar())
        run_.params.emplace_back(key, param_of_text(value.Scalar()));
      else if (value.IsNull())
        run_.params.emplace_back(key, "null");
      else
        nested.push_back(key);
    }
    if (nested.empty()) return;
    remarks.push_back(fmt::format("{}: left out, as only plain values are parameters: {}", file.string(),
                                  fmt::join(nested, ", ")));
  }

  const fs::path top_;
  ForeignRun run_;
  std::set<std::string> names_;
  std::map<std::pair<std::int64_t, bool>, MetricReport>
      steps_;  // by step, and whether in the run's own directory
};

// The run whose add_scalars() has made the directory, called after the tag of all that is in it:
// RUN/TAG_LINE, or RUN/TAG/LINE if it is tensorboardX's. Nothing for any other directory.
std::optional<std::string> run_of_series(const ExportedRun& run, EventsPart part) {
  if (run.scalars.empty() || part == EventsPart::kSession) return std::nullopt;
  const std::string above = (fs::path(".") / run.name).parent_path().string();
  if (const auto owner = above_tag(above, run.scalars[0].tag); owner && run.scalars.size() == 1)
    return normal(*owner);
  const auto is_of_series = [&run](const ExportedScalar& scalar) {
    return metric_of_series(run, scalar.tag) != scalar.tag;
  };
  const bool is_series = part == EventsPart::kRun && std::ranges::all_of(run.scalars, is_of_series);
  return is_series ? std::optional(normal(above)) : std::nullopt;
}

// Names the runs that have the parameters of another one, or none.
void tell_apart(std::vector<ForeignRun>& runs) {
  std::set<std::vector<std::string>> known;
  const bool all_differ = std::ranges::all_of(runs, [&known](const ForeignRun& run) {
    std::vector<std::string> texts;
    for (const auto& [key, value] : run.params) texts.push_back(key + "=" + param_text(value));
    std::ranges::sort(texts);  // Programs write them in any order.
    return !texts.empty() && known.insert(std::move(texts)).second;
  });
  if (all_differ) return;
  for (ForeignRun& run : runs) {
    std::erase_if(run.params, [](const auto& param) { return param.first == "run"; });
    run.params.emplace(run.params.begin(), "run", run.name);
  }
}

}  // namespace

ForeignRuns read_foreign_runs(const fs::path& directory) {
  ExportedLogdir logdir = read_logdir(directory);
  ForeignRuns found{.runs = {}, .remarks = std::move(logdir.damage)};
  std::map<std::string, int> sessions;  // below each directory
  for (const ExportedRun& run : logdir.runs) {
    if (part_of(run.name) == EventsPart::kSession) ++sessions[parent_of(run.name)];
  }
  const auto has = [&logdir](const std::string& name) {
    return std::ranges::binary_search(logdir.runs, name, {}, &ExportedRun::name);
  };
  std::map<std::string, RunMaker> makers;
  for (const ExportedRun& run : logdir.runs) {
    EventsPart part = part_of(run.name);
    std::string parent = parent_of(run.name);
    const std::optional<std::string> of_series = run_of_series(run, part);
    if (of_series && has(*of_series)) {
      parent = *of_series;
      if (part == EventsPart::kRun) part = EventsPart::kSeries;
    } else if (part == EventsPart::kTest && !has(normal(fs::path(parent) / "train"))) {
      part = EventsPart::kRun;  // People also call a run that.
    }
    // Several sessions below a directory are as many runs.
    if (part == EventsPart::kSession && sessions.at(parent) > 1) part = EventsPart::kRun;
    const std::string name = part == EventsPart::kRun ? run.name : parent;
    makers.try_emplace(name, directory).first->second.add(run, part);
  }
  for (auto& [name, maker] : makers) found.runs.push_back(maker.finish(name, found.remarks));
  std::erase_if(found.runs, [&](const ForeignRun& run) {
    const fs::path path = run.name == "." ? directory : directory / run.name;
    const bool is_empty = run.reports.empty() && run.metrics.empty();
    if (is_empty) found.remarks.push_back(fmt::format("{}: left out, as it has no scalars", path.string()));
    return is_empty;
  });
  if (found.runs.empty())
    throw DataError(fmt::format("{}: has events files, but no scalars in them", directory.string()));
  tell_apart(found.runs);
  unify_foreign_types(found.runs);
  return found;
}

}  // namespace sweep
