#include "runmanager/inspect/event_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/text/json_output.h"
#include "runmanager/text/table_text.h"
#include "tbwriter/event_files.h"
#include "tbwriter/event_reader.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using tbwriter::ReadEnd;

// Selects tags; without any, all of them.
using TagFilter = std::vector<std::regex>;

TagFilter filter_of(const std::vector<std::string>& patterns) {
  TagFilter filter;
  for (const std::string& pattern : patterns) {
    try {
      filter.emplace_back(pattern, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error& error) {
      throw ConfigError(fmt::format("--tag \"{}\": is no regular expression: {}; \\( means a bracket itself",
                                    pattern, error.what()));
    }
  }
  return filter;
}

bool accepts(const TagFilter& filter, const std::string& tag) {
  return filter.empty() || std::ranges::any_of(filter, [&tag](const std::regex& pattern) {
           return std::regex_search(tag, pattern, std::regex_constants::match_continuous);
         });
}

// Reads the events files of one directory, in their order, as one run.
class RunReader {
 public:
  RunReader(std::string name, const TagFilter& filter) : filter_(filter) { run_.name = std::move(name); }

  // Adds a message to `damage` for records that cannot be read. All those after a damaged length are lost.
  void read(const fs::path& path, std::vector<std::string>& damage) {
    tbwriter::EventReader reader(path);
    std::uint64_t lost = 0;
    for (;;) {
      const auto payload = reader.next();
      if (payload) {
        lost += add(*payload) ? 0 : 1;
      } else if (reader.skip_record()) {
        ++lost;
      } else {
        break;
      }
    }
    if (lost > 0) damage.push_back(fmt::format("{}: {} damaged records left out", path.string(), lost));
    if (reader.end() == ReadEnd::kBadLength)
      damage.push_back(fmt::format("{}: left out from byte {} on: {}", path.string(), reader.position(),
                                   describe(reader.end())));
  }

  // The run, without scalars that have no points left. Call it last.
  ExportedRun finish() {
    std::erase_if(run_.scalars, [](const ExportedScalar& scalar) { return scalar.points.empty(); });
    return std::move(run_);
  }

 private:
  // Returns false if `payload` is not an event.
  bool add(std::string_view payload) try {
    const tbwriter::DecodedEvent event = tbwriter::decode_event(payload);
    if (event.session_start) drop_from(event.step);
    for (const tbwriter::DecodedValue& value : event.values) {
      if (value.plugin == "hparams") {
        tbwriter::decode_session(value.plugin_content, run_.session);
      } else if (const auto index = index_of(value); value.scalar && index) {
        run_.scalars[*index].points.push_back({event.step, event.wall_time, *value.scalar});
      }
    }
    return true;
  } catch (const DataError&) {
    return false;
  }

  // Where the scalar of the value's tag is, which is added if the tag is new; none for tags that are not
  // exported. Only a tag's first value names its plugin. A value with a single number need not be a scalar:
  // it may belong to a text or a curve.
  std::optional<std::size_t> index_of(const tbwriter::DecodedValue& value) {
    const auto [at, is_new] = tags_.try_emplace(std::string(value.tag));
    const bool scalar = value.scalar && (value.plugin.empty() || value.plugin == "scalars");
    if (is_new && scalar && accepts(filter_, at->first)) {
      at->second = run_.scalars.size();
      run_.scalars.push_back({at->first, {}});
    }
    return at->second;
  }

  // A resumed run starts its new file at `step`. TensorBoard then drops what older files have from there on,
  // and so does this.
  void drop_from(std::int64_t step) {
    for (ExportedScalar& scalar : run_.scalars)
      std::erase_if(scalar.points, [step](const ExportedPoint& point) { return point.step >= step; });
  }

  const TagFilter& filter_;
  ExportedRun run_;
  std::unordered_map<std::string, std::optional<std::size_t>> tags_;  // places in run_.scalars
};

// Adds the runs in `directory` and below it: every directory with events files is one.
void add_runs(const fs::path& directory, const TagFilter& filter, ExportedLogdir& logdir) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (!it->is_symlink() && it->is_directory()) add_runs(it->path(), filter, logdir);
  }
  if (error) {
    logdir.damage.push_back(fmt::format("{}: cannot be read: {}", directory.string(), error.message()));
    return;
  }
  const std::vector<std::string> files = tbwriter::list_event_files(directory);
  if (files.empty()) return;
  RunReader run(directory.lexically_relative(logdir.directory).string(), filter);
  for (const std::string& file : files) {
    try {
      run.read(directory / file, logdir.damage);
    } catch (const DataError& unreadable) {
      logdir.damage.emplace_back(unreadable.what());
    }
  }
  logdir.runs.push_back(run.finish());
}

ExportedLogdir read_filtered(const fs::path& directory, const TagFilter& filter) {
  ExportedLogdir logdir{.directory = directory, .runs = {}, .damage = {}};
  add_runs(directory, filter, logdir);
  std::ranges::sort(logdir.runs, {}, &ExportedRun::name);
  return logdir;
}

bool has_points(const ExportedLogdir& logdir) {
  return std::any_of(logdir.runs.begin(), logdir.runs.end(),
                     [](const ExportedRun& run) { return !run.scalars.empty(); });
}

// The names of what list_of(run) has, over all runs, each once, in the order they first appear.
template <typename ListOf, typename NameOf>
std::vector<std::string> all_names(const ExportedLogdir& logdir, ListOf list_of, NameOf name_of) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const ExportedRun& run : logdir.runs) {
    for (const auto& item : std::invoke(list_of, run))
      if (seen.insert(std::invoke(name_of, item)).second) names.push_back(std::invoke(name_of, item));
  }
  return names;
}

std::vector<std::string> hparam_names(const ExportedLogdir& logdir) {
  const auto hparams_of = [](const ExportedRun& run) -> const auto& { return run.session.hparams; };
  return all_names(logdir, hparams_of, [](const auto& hparam) { return hparam.first; });
}

std::vector<std::string> tag_names(const ExportedLogdir& logdir) {
  return all_names(logdir, &ExportedRun::scalars, &ExportedScalar::tag);
}

// The run's values of the hyperparameters `names`, "" for those that it lacks. A resumed run has written them
// again; the last value counts.
std::vector<std::string> hparam_cells(const ExportedRun& run, const std::vector<std::string>& names) {
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : run.session.hparams) values[name] = param_text(to_param(value));
  std::vector<std::string> cells;
  for (const std::string& name : names) cells.push_back(values[name]);
  return cells;
}

// Bytes that are not UTF-8 are replaced.
std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json status_json(const std::optional<tbwriter::SessionStatus>& status) {
  constexpr const char* kNames[] = {"unknown", "success", "failure", "running"};
  return status ? Json(kNames[static_cast<std::size_t>(*status)]) : Json(nullptr);
}

Json hparams_json(const tbwriter::HParams& hparams) {
  Json json = Json::object();
  for (const auto& [name, value] : hparams) {
    const double* number = std::get_if<double>(&value);
    json[name] = number != nullptr ? json_number(*number) : to_json(to_param(value));
  }
  return json;
}

}  // namespace

ExportedLogdir read_logdir(const fs::path& directory, const std::vector<std::string>& tags) {
  const TagFilter filter = filter_of(tags);
  require_directory(directory, "a directory with events files in it or below");
  ExportedLogdir logdir = read_filtered(directory, filter);
  if (logdir.runs.empty())
    throw DataError(directory.string() + ": no events files (*tfevents*) in it or below");
  if (!tags.empty() && !has_points(logdir)) {
    throw DataError(fmt::format("{}: no scalar's tag begins with {}; there are: {}", directory.string(),
                                fmt::join(tags, " or "),
                                fmt::join(tag_names(read_filtered(directory, {})), ", ")));
  }
  return logdir;
}

ParamValue to_param(const tbwriter::HParamValue& value) {
  return std::visit(
      [](const auto& of_type) -> ParamValue {
        if constexpr (std::is_same_v<decltype(of_type), const std::nullptr_t&>)
          return std::string();
        else
          return of_type;
      },
      value);
}

std::string export_csv(const ExportedLogdir& logdir) {
  const std::vector<std::string> names = hparam_names(logdir);
  std::vector<std::string> header = {"run", "tag", "step", "wall_time", "value"};
  for (const std::string& name : names) header.push_back("hparam." + name);
  std::string csv = csv_row(header);
  for (const ExportedRun& run : logdir.runs) {
    // The rows of a tag differ only in the point, so the rest is formatted once.
    const std::vector<std::string> cells = hparam_cells(run, names);
    const std::string tail = cells.empty() ? "\n" : "," + csv_row(cells);
    for (const ExportedScalar& scalar : run.scalars) {
      std::string head = csv_row({run.name, scalar.tag});
      head.back() = ',';
      for (const ExportedPoint& point : scalar.points) {
        csv += head;
        fmt::format_to(std::back_inserter(csv), "{},{},{}", point.step, csv_number(point.wall_time),
                       csv_number(point.value));
        csv += tail;
      }
    }
    if (run.scalars.empty()) {
      csv += csv_row({run.name, "", "", "", ""});
      csv.pop_back();
      csv += tail;
    }
  }
  return csv;
}

std::string export_json(const ExportedLogdir& logdir) {
  // Points are formatted directly: a JSON tree of them would take many times their size.
  std::string json = fmt::format("{{\"logdir\": {},\n \"runs\": [", text_of(logdir.directory.string()));
  const auto out = std::back_inserter(json);
  const char* before_run = "";
  for (const ExportedRun& run : logdir.runs) {
    std::string members = text_of({{"name", run.name},
                                   {"hparams", hparams_json(run.session.hparams)},
                                   {"status", status_json(run.session.status)},
                                   {"start_time", json_number(run.session.start_time)},
                                   {"end_time", json_number(run.session.end_time)}});
    members.pop_back();  // the brace: more follows
    fmt::format_to(out, "{}\n  {},\n   \"scalars\": {{", std::exchange(before_run, ","), members);
    const char* before_scalar = "";
    for (const ExportedScalar& scalar : run.scalars) {
      fmt::format_to(out, "{}\n    {}: [", std::exchange(before_scalar, ","), text_of(scalar.tag));
      const char* before_point = "";
      for (const ExportedPoint& point : scalar.points) {
        fmt::format_to(out, "{}\n     {{\"step\": {}, \"wall_time\": {}, \"value\": {}}}",
                       std::exchange(before_point, ","), point.step, json_number(point.wall_time).dump(),
                       json_number(point.value).dump());
      }
      json += "]";
    }
    json += "}}";
  }
  return json + "]}\n";
}

std::string export_markdown(const ExportedLogdir& logdir) {
  const std::vector<std::string> names = hparam_names(logdir), tags = tag_names(logdir);
  std::vector<std::string> header = {"run"};
  header.insert(header.end(), names.begin(), names.end());
  header.insert(header.end(), tags.begin(), tags.end());
  std::vector<std::vector<std::string>> rows;
  for (const ExportedRun& run : logdir.runs) {
    std::map<std::string, std::string> last;
    for (const ExportedScalar& scalar : run.scalars)
      last[scalar.tag] = fmt::format("{:.6g}", scalar.points.back().value);
    std::vector<std::string>& row = rows.emplace_back(1, run.name);
    for (std::string& cell : hparam_cells(run, names)) row.push_back(std::move(cell));
    for (const std::string& tag : tags) row.push_back(last[tag]);
  }
  return markdown_table(header, rows);
}

}  // namespace sweep
