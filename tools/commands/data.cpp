// `sweep data`: gets known data sets, and says what would be read from a sweep file or a path.
#include <fmt/format.h>

#include <fmt/ranges.h>
#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <set>
#include <span>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/data/dataset_summary.h"
#include "core/data/fetch_dataset.h"
#include "core/data/known_datasets.h"
#include "runmanager/config/run_config.h"
#include "runmanager/plan/plan.h"
#include "runmanager/records/provenance.h"
#include "runmanager/sweepfile/settings/settings.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "runmanager/text/json_document.h"
#include "runmanager/training/stop_signals.h"
#include "tools/commands/run_options.h"
#include "tools/output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxSkippedShown = 20, kMaxFeaturesShown = 12;

struct DataOptions {
  std::vector<std::string> words;  // "get NAME", or FILE and overrides
  TableFormat format = TableFormat::kText;
};

const KnownDataset& require_known(const std::string& name) {
  if (const KnownDataset* known = find_known_dataset(name)) return *known;
  const std::span<const std::string> names = known_dataset_names();
  throw ConfigError(
      fmt::format("data get: got \"{}\", want {}{}", name, listed(names), suggestion(name, names)));
}

// The data set in the user's own place, if all of it is there.
bool is_there_already(const KnownDataset& known, const fs::path& place) {
  std::error_code ignored;
  if (!fs::exists(place, ignored)) return false;
  try {
    load_dataset({.name = std::string(known.name), .path = place});
    return true;
  } catch (const DataError&) {
    return false;
  }
}

const char* sample_type(const Dataset& dataset) { return dataset.bytes ? "uint8" : "float32"; }

std::string sample_text(const Dataset& dataset) {
  return fmt::format("[{}] of {}", fmt::join(dataset.shape, ", "), sample_type(dataset));
}

// Downloads the known data set `name` into the user's cache, unless it is there, and says so on `out`.
// Returns the exit code: 0, or 128 + signal.
int get_dataset(const std::string& name, std::ostream& out) {
  const KnownDataset& known = require_known(name);
  const fs::path place = user_dataset_place(name);
  if (place.empty())
    throw ConfigError("data get: neither XDG_CACHE_HOME nor HOME says where the user's cache is");
  if (is_there_already(known, place)) {
    out << fmt::format("{} is there already: {}\n", name, printable(place.string()));
    return kExitDone;
  }
  const Terminal terminal = Terminal::of_process();
  LiveRegion region(terminal);
  const StopSignals signals;
  FetchOptions options;
  if (const char* mirror = std::getenv("SWEEP_DATA_MIRROR")) options.mirror = mirror;
  options.progress = [&](const std::string& file, std::uint64_t done) {
    if (terminal.interactive)
      region.draw({fmt::format("{}: {}: {:.1f} MB", name, file, 1e-6 * static_cast<double>(done))});
    return StopSignals::requested() == 0;
  };
  const bool is_done = fetch_dataset(known, place, options);
  region.clear();
  if (!is_done) {
    terminal.write(
        fmt::format("sweep: stopped by {}; nothing was kept\n", signal_name(StopSignals::requested())));
    return 128 + StopSignals::requested();
  }
  const Dataset dataset = load_dataset({.name = name, .path = place});
  out << fmt::format("{} is in {}: {} samples {}, {} to test\n", name, printable(place.string()),
                     dataset.train.count, sample_text(dataset), dataset.test.count);
  return kExitDone;
}

Json to_json(const Dataset& dataset, const Json& settings) {
  Json json = {{"name", dataset.name},
               {"source", dataset.source.string()},
               {"format", dataset.format},
               {"shape", dataset.shape},
               {"type", sample_type(dataset)},
               {"memory_bytes", memory_bytes(dataset)},
               {"parts", dataset_balance(dataset)},
               {"dataset", settings}};
  const Json provenance = dataset_provenance(dataset);
  for (const auto& [key, value] : provenance.items()) {
    if (key == "features" || key == "normalize" || key == "files") json[key] = value;
  }
  json["skipped"] = Json::array();
  for (const SkippedFile& file : dataset.skipped)
    json["skipped"].push_back({{"path", file.path.string()}, {"reason", file.reason}});
  json["remarks"] = dataset.notes;
  return json;
}

TextTable classes_table(const Dataset& dataset, const std::vector<PartSummary>& parts) {
  TextTable table({"class"});
  for (const PartSummary& part : parts) table.add_column(std::string(part.name));
  for (std::size_t c = 0; c < dataset.class_names.size(); ++c) {
    std::vector<std::string> row = {dataset.class_names[c]};
    for (const PartSummary& part : parts) row.push_back(std::to_string(part.class_counts[c]));
    table.rows.push_back(std::move(row));
  }
  std::vector<std::string> all = {"all"};
  for (const PartSummary& part : parts) all.push_back(std::to_string(part.samples));
  table.rows.push_back(std::move(all));
  return table;
}

TextTable targets_table(const Dataset& dataset, const std::vector<PartSummary>& parts, TableFormat format) {
  TextTable table({"target", "part", "samples", "mean", "deviation"}, 2);
  table.set_importances({kNeeded, kNeeded, 10, 30, 20});
  const auto text = [format](double value) {
    return format == TableFormat::kCsv ? fmt::format("{}", value) : fmt::format("{:.6g}", value);
  };
  for (std::size_t t = 0; t < dataset.target_names.size(); ++t) {
    for (const PartSummary& part : parts) {
      table.rows.push_back({dataset.target_names[t], std::string(part.name), std::to_string(part.samples),
                            text(part.targets.mean[t]), text(part.targets.deviation[t])});
    }
  }
  return table;
}

TextTable parts_table(const Dataset& dataset, const std::vector<PartSummary>& parts, TableFormat format) {
  return dataset.target_names.empty() ? classes_table(dataset, parts) : targets_table(dataset, parts, format);
}

void print_text(const Dataset& dataset) {
  const std::vector<PartSummary> parts = summarize_parts(dataset);
  std::cout << printable(fmt::format("{}: {} in {}\nsamples {}, {} in memory\n", dataset.name, dataset.format,
                                     dataset.source.string(), sample_text(dataset),
                                     bytes_text(memory_bytes(dataset))));
  if (const auto& names = dataset.feature_names; !names.empty()) {
    const auto shown = std::span(names).first(std::min(names.size(), kMaxFeaturesShown));
    std::cout << printable(fmt::format("{}: {}{}\n", counted(names.size(), "feature"), fmt::join(shown, ", "),
                                       shown.size() < names.size() ? ", …" : ""));
  }
  std::cout << '\n'
            << formatted_table(parts_table(dataset, parts, TableFormat::kText), style_of(TableFormat::kText));
  const std::size_t shown = std::min(dataset.skipped.size(), kMaxSkippedShown);
  for (std::size_t i = 0; i < shown; ++i) {
    const SkippedFile& file = dataset.skipped[i];
    std::cout << printable_line(fmt::format("skipped: {}: {}", file.path.string(), file.reason)) << '\n';
  }
  if (shown < dataset.skipped.size())
    std::cout << fmt::format("skipped: {} more, which --json lists\n", dataset.skipped.size() - shown);
  for (const std::string& note : dataset.notes) std::cout << printable(note) << '\n';
}

// Whether `word` means a sweep file: tables and pictures never end in .json.
bool is_sweep_file(const std::string& word) { return word == "-" || word.ends_with(".json"); }

// Adds "label=bought", or "dataset.label=bought": a value is JSON if it can be read so, else a string.
void add_key(Json& dataset, const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0)
    throw ConfigError(fmt::format("data: got {}, want KEY=VALUE with a key of \"dataset\"", word));
  std::string key = word.substr(0, equals);
  constexpr std::string_view kPrefix = "dataset.";
  if (key.starts_with(kPrefix)) key.erase(0, kPrefix.size());
  const std::string text = word.substr(equals + 1);
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  dataset[key] = value.is_discarded() ? Json(text) : std::move(value);
}

// "dataset", complete, of each data set of a sweep file, or of a name or path with keys of "dataset".
std::vector<Json> datasets_of(const std::vector<std::string>& words) {
  const std::string& source = words.front();
  if (is_sweep_file(source)) {
    std::vector<DatasetSpec> specs;
    std::vector<Json> settings;
    const std::vector<std::string> overrides(words.begin() + 1, words.end());
    const Sweep sweep = load_sweep(source, overrides);
    for (const RunConfig& run : sweep.runs) {
      if (run.command) throw ConfigError(source + ": runs a program, so its data is not known");
      if (std::ranges::find(specs, run.dataset) != specs.end()) continue;
      specs.push_back(run.dataset);
      settings.push_back(run.resolved.at("dataset"));
    }
    return settings;
  }
  std::error_code ignored;
  const bool is_name = find_known_dataset(source) != nullptr && !fs::exists(source, ignored);
  Json dataset = {{is_name ? "name" : "path", source}};
  for (const std::string& word : std::span(words).subspan(1)) add_key(dataset, word);
  const JsonDocument tree = document_of({{"dataset", std::move(dataset)}}, "data");
  const Setting& setting = *find_setting(top_level_settings(), "dataset");
  Problems problems;
  const Json complete = complete_value(setting, {JsonView(tree).find(setting.name), tree, {}, {}, problems});
  problems.throw_if_any();
  return {complete};
}

int describe(const DataOptions& options) {
  Json list = Json::array();
  std::vector<TextTable> tables;
  bool is_first = true;
  for (const Json& settings : datasets_of(options.words)) {
    const Dataset dataset = load_dataset(dataset_of(settings));
    if (options.format == TableFormat::kJson) {
      list.push_back(to_json(dataset, settings));
    } else if (options.format != TableFormat::kText) {
      tables.push_back(parts_table(dataset, summarize_parts(dataset), options.format));
    } else {
      if (!is_first) std::cout << '\n';
      print_text(dataset);
    }
    is_first = false;
  }
  if (options.format == TableFormat::kJson) print_json({{"datasets", std::move(list)}});
  std::cout << formatted_tables(tables, style_of(options.format));
  return kExitDone;
}

int clean() {
  const fs::path cache = decoded_folder();
  if (cache.empty()) {
    std::cout << "no decoded images are kept: HOME is not set\n";
    return kExitDone;
  }
  const CleanedCache cleaned = clean_cache(cache);
  std::cout << fmt::format("removed {} with {} of decoded images from {}\n", counted(cleaned.files, "file"),
                           bytes_text(cleaned.bytes), printable(cache.string()));
  return kExitDone;
}

int run_data(const DataOptions& options) {
  const bool cleans = options.words.front() == "clean" && options.words.size() == 1;
  if (!cleans && options.words.front() != "get") return describe(options);
  if (options.format != TableFormat::kText)
    throw ConfigError(
        fmt::format("data {}: prints a line of text, want no --format and no --json", options.words.front()));
  if (cleans) return clean();
  if (options.words.size() != 2)
    throw ConfigError(
        fmt::format("data get: one name is needed: {} data get fashion-mnist", typed_program()));
  return get_dataset(options.words[1], std::cout);
}

}  // namespace

int get_missing_datasets(const Sweep& sweep) {
  std::set<std::string> missing;
  for (const RunConfig& run : sweep.runs) {
    const DatasetSpec& data = run.dataset;
    if (run.command || !data.path.empty() || find_known_dataset(data.name) == nullptr) continue;
    try {
      find_dataset(data.name, data.format);
    } catch (const DataError&) {
      missing.insert(data.name);
    }
  }
  for (const std::string& name : missing) {
    if (const int code = get_dataset(name, std::cerr); code != kExitDone) return code;
  }
  return kExitDone;
}

Command data_command() {
  return {.name = "data",
          .description =
              "get a known data set (get NAME), empty the cache (clean), or print what a sweep file or a "
              "path holds",
          .missing_argument =
              "a file or a name is needed: sweep data SWEEP.json, sweep data PATH, or sweep data "
              "get fashion-mnist",
          .add_to = command_with<DataOptions>(run_data, [](CLI::App& app, DataOptions& options) {
            add_value(app, "what get NAME | clean | SWEEP.json | PATH [key=v ...]", options.words,
                      "get NAME: download a known data set into the user's cache, from $SWEEP_DATA_MIRROR "
                      "if that is set; clean: remove decoded images from that cache; or a sweep file and "
                      "overrides, or a data set's name, a file or a "
                      "folder with keys of \"dataset\" (label=bought): print its samples and classes")
                ->required();
            add_format_option(app, options.format);
          })};
}

}  // namespace sweep
