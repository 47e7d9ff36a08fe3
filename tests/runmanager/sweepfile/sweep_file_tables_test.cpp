// Which runs a sweep file gives, with which settings; and every mistake in one is reported with its location,
// what was found and what is allowed, before anything trains.

#include <fmt/format.h>

#include "core/base/file.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweepfile/named_files.h"
#include "runmanager/sweepfile/run_reader.h"
#include "tests/support/reference_data.h"
#include "tests/support/sweep_folder.h"

namespace sweep::sweep_file_tables_test {

using json = nlohmann::ordered_json;

json table_of(const char* name) { return json::parse(read_file(test::reference_path(name))); }

struct SweepFileTable : testing::InSweepFolder {
  const json bad = table_of("bad_sweeps.json");

  // Writes the other files of a row of either table. Returns the frame whose name is a key of the row, with
  // the row's text in it.
  std::string sweep_file_of(const json& row) const {
    const json files = row.value("files", json::object());
    for (const auto& [name, text] : files.items()) folder.write(name, text);
    for (const auto& [name, frame] : bad.at("frames").items()) {
      if (!row.contains(name)) continue;
      std::string text = frame;
      return text.replace(text.find('@'), 1, in_folder(row.at(name)));
    }
    throw std::runtime_error("no frame for " + row.dump());
  }

  // FOLDER in texts is the folder.
  std::string in_folder(std::string text) const {
    constexpr std::string_view kFolder = "FOLDER";
    for (std::size_t at; (at = text.find(kFolder)) != std::string::npos;)
      text.replace(at, kFolder.size(), folder.path().string());
    return text;
  }

  std::vector<std::string> overrides_of(const json& row) const {
    std::vector<std::string> overrides;
    for (const json& text : row.value("overrides", json::array())) overrides.push_back(in_folder(text));
    return overrides;
  }
};
using BadSweepFile = SweepFileTable;
using GoodSweepFile = SweepFileTable;

// Reads a row's "slurm", words of --slurm; "epochs" and "seed", those of options; "deterministic"; "cuda",
// devices.
LoadOptions options_of(const json& row) {
  LoadOptions options;
  options.slurm = row.value("slurm", std::vector<std::string>());
  if (row.contains("epochs")) options.epochs = row.at("epochs");
  if (row.contains("seed")) options.seed = row.at("seed");
  if (row.contains("deterministic")) options.deterministic = row.at("deterministic");
  options.cuda_device_count = row.value("cuda", 0);
  return options;
}

json described(const SearchSpec& search, int epochs) {
  json goals = json::array(), learned = json::array();
  for (const Goal& goal : search.goals)
    goals.push_back(goal.asked + (goal.largest_is_best ? " max" : " min"));
  for (const Observation& one : search.learned) {
    json point = json::array();
    for (const auto& value : one.point) point.push_back(value ? json(*value) : json());
    learned.push_back({point, *one.value});
  }
  return {{"method", search_method_names().of(search.method)},
          {"goals", goals},
          {"learned", learned},
          {"total", total_trials(search, epochs)}};
}

// What a sweep has, as a row of good_sweeps.json names it. A run is read from its config, as
// LoadSweep.EveryKeyReachesTheRun proves.
json described(const Sweep& sweep) {
  json all = {{"name", sweep.name},
              {"resolved", sweep.resolved},
              {"runs", json::array()},
              {"excluded", json::array()},
              {"draws", sweep.trials != nullptr}};
  if (sweep.search) all["search"] = described(*sweep.search, sweep.runs.at(0).epochs);
  for (const RunConfig& run : sweep.runs)
    all["runs"].push_back({{"name", run.name},
                           {"params", to_json(run.params)},
                           {"not_swept", to_json(run.not_swept)},
                           {"device", run.device},
                           {"config", run.resolved.json()}});
  for (const ExcludedRun& run : sweep.excluded)
    all["excluded"].push_back({{"params", to_json(run.params)}, {"reason", run.reason}});
  return all;
}

// What a sweep leaves as sweep.json gives the same runs again, wherever that file lies.
void expect_same_runs_again(const Sweep& sweep, const LoadOptions& options) {
  json file = sweep.resolved;
  file["runs"] = names_of(sweep);
  file["excluded"] = json::array();
  file["file"] = sweep.file.string();
  file["provenance"] = {{"version", "1"}};
  LoadOptions only_devices;
  only_devices.cuda_device_count = options.cuda_device_count;
  const SweepFolder elsewhere;
  const Sweep again = load_sweep(elsewhere.write("deep/below/sweep.json", file.dump(2)), {}, only_devices);
  json before = described(sweep), now = described(again);
  for (json* one : {&before, &now})
    for (json& excluded : one->at("excluded")) excluded.erase("reason");  // which names the file
  EXPECT_EQ(now, before);
  EXPECT_EQ(again.keys, sweep.keys);
}

// The complete settings of a run are a sweep file of that run.
void expect_same_run_again(const RunConfig& run, const LoadOptions& options) {
  if (run.command) return;
  json settings = run.resolved;
  for (const char* key : {"repeat", kLineageKey}) settings.erase(key);  // no keys of a sweep file
  const JsonDocument document = document_of(settings, "settings");
  Problems problems;
  json again = read_run_config(document, {"", *options.cuda_device_count}, problems).resolved;
  EXPECT_NO_THROW(problems.throw_if_any());
  again.erase("repeat");
  EXPECT_EQ(again, settings);
}

// A row of good_sweeps.json: a sweep file, the other files and overrides; the "names" of the runs or their
// number, the swept "keys", and "values" at JSON pointers: null if there is none.
TEST_F(GoodSweepFile, GivesTheseRunsWithTheseSettingsAndAgainFromWhatItLeaves) {
  const json table = table_of("good_sweeps.json");
  for (const auto& [name, text] : table.at("files").items()) folder.write(name, text);
  EXPECT_GE(table.at("rows").size(), 156u);
  for (const json& row : table.at("rows")) {
    SCOPED_TRACE(row);
    const LoadOptions options = options_of(row);
    const Sweep sweep = folder.load(sweep_file_of(row), overrides_of(row), options);
    EXPECT_EQ(names_of(sweep), row.value("names", names_of(sweep)));
    EXPECT_EQ(sweep.runs.size(), row.value("runs", sweep.runs.size()));
    EXPECT_EQ(sweep.keys, row.value("keys", sweep.keys));
    for (std::size_t i = 0; i < sweep.runs.size(); ++i) EXPECT_EQ(sweep.runs[i].index, i);
    const json found = described(sweep), values = row.value("values", json::object());
    for (const auto& [pointer, value] : values.items()) {
      const json::json_pointer at(pointer);
      const std::string text = found.contains(at) ? found.at(at).dump() : "null";
      EXPECT_EQ(folder.without_folder(text), value.dump()) << pointer;
    }
    expect_same_runs_again(sweep, options);
    expect_same_run_again(sweep.runs.front(), options);
    expect_same_run_again(sweep.runs.back(), options);
  }
}

TEST(ShippedSweep, GivesTheSameRunsAgainFromWhatItLeaves) {
  LoadOptions options;
  options.cuda_device_count = 1;
  int sweeps = 0;
  for (const auto& file : std::filesystem::directory_iterator(SWEEP_SOURCE_DIR "/sweeps")) {
    if (file.path().extension() != ".json") continue;
    SCOPED_TRACE(file.path());
    expect_same_runs_again(load_sweep(file.path(), {}, options), options);
    ++sweeps;
  }
  EXPECT_GE(sweeps, 6);
}

// Paths of the command line are those of the current directory.
TEST_F(GoodSweepFile, PathsOfTheCommandLineAreThoseOfTheCurrentDirectory) {
  const Sweep sweep = folder.load(R"({"dataset": {"name": "mine", "path": "data"}, "network": "net.json"})",
                                  {"init=w.safetensors", "dataset.path=a/x,b/x"});
  EXPECT_EQ(sweep.runs[0].init, std::filesystem::current_path() / "w.safetensors");
  EXPECT_EQ(sweep.runs[1].dataset.path, std::filesystem::current_path() / "b/x");
  EXPECT_THAT(names_of(sweep), ElementsAre("dataset.path=a%2Fx", "dataset.path=b%2Fx"));
  expect_same_runs_again(sweep, options_of(json::object()));
  EXPECT_THAT(folder.error(SweepFolder::with("\"lr\": 1"), {"network=net.json"}),
              HasSubstr("got \"net.json\", want a network file; net.json: cannot open"));
  const Sweep program = folder.load(R"({"command": ["true"], "cwd": "data", "inputs": ["a"]})", {"cwd=b"});
  EXPECT_EQ(program.resolved["cwd"], (std::filesystem::current_path() / "b").string());
}

TEST(ShortPaths, AreAsManyPartsAsTellThemApart) {
  using Names = std::map<std::string, std::string>;
  const Names cases[] = {{{"/a/b/w.st", "w.st"}},
                         {{"/a/b/w.st", "w.st"}, {"/a/b/v.st", "v.st"}},
                         {{"/a/b/w.st", "b/w.st"}, {"/a/c/w.st", "c/w.st"}},
                         {{"/w.st", "w.st"}, {"/a/w.st", "a/w.st"}, {"/", ""}}};
  for (const Names& names : cases) {
    std::vector<std::string> paths;
    for (const auto& [path, name] : names) paths.insert(paths.end(), 2, path);
    EXPECT_EQ(short_paths(paths), names);
  }
}

// A row of bad_sweeps.json: a sweep file, the other files, overrides and options, and the whole "message" or
// parts that it "has".
TEST_F(BadSweepFile, EveryMistakeIsReportedWithItsPlaceAndWhatIsAllowed) {
  EXPECT_GE(bad.at("rows").size(), 328u);
  for (const json& row : bad.at("rows")) {
    const std::string message = folder.error(sweep_file_of(row), overrides_of(row), options_of(row));
    ASSERT_NE(row.contains("message"), row.contains("has")) << row;
    EXPECT_EQ(message, row.value("message", message)) << row;
    for (const json& part : row.value("has", json::array()))
      EXPECT_THAT(message, HasSubstr(part.get<std::string>())) << row;
  }
}

TEST_F(BadSweepFile, AnOverrideThatIsNoTextIsRefused) {
  EXPECT_EQ(SweepFolder().error(SweepFolder::with("\"lr\": 1"), {"lr=\xFF"}),
            "override \"lr=\xFF\": not UTF-8 text");
}

TEST_F(BadSweepFile, HundredsOfMistakesAreCounted) {
  std::string settings;
  for (int i = 0; i < 300; ++i)
    settings += (i ? ", " : "") + std::string("\"key") + std::to_string(i) + "\": 1";
  const std::string error = folder.error(SweepFolder::with(settings));
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 20);
  EXPECT_THAT(error, HasSubstr("… and 280 more"));
}

TEST_F(BadSweepFile, TheFilesOwnNameIsHeldToTheSameRules) {
  const auto file = folder.write("con.json", SweepFolder::with("\"epochs\": 1"));
  EXPECT_EQ(folder.without_folder(message_of<ConfigError>([&] { load_sweep(file); })),
            "con.json:1:1: the file's name \"con\" cannot name a directory, want a \"name\"");
}

TEST_F(BadSweepFile, LongKeysAreCutAndControlCharactersEscapedInMessages) {
  const std::string key(900'000, 'k');
  for (const std::string& settings :
       {fmt::format(R"("{}": 1)", key), fmt::format(R"("params": {{"{}": [1]}})", key),
        fmt::format(R"("log": {{"{}": 1}})", key), fmt::format(R"("optimizer": {{"{}": 1}})", key),
        fmt::format(R"("exclude": [{{"{}": 1}}])", key)}) {
    const std::string message = folder.error(SweepFolder::with(settings));
    EXPECT_LT(message.size(), 2000u);
    EXPECT_THAT(message, HasSubstr("kkk…"));
  }
  EXPECT_LT(folder.error(SweepFolder::with(R"("lr": 1)"), {key + "=1"}).size(), 2000u);
  LoadOptions options;
  options.epochs = key;
  EXPECT_LT(folder.error(SweepFolder::with(R"("lr": 1)"), {}, options).size(), 2000u);
  EXPECT_THAT(folder.error(SweepFolder::with("\"a\\u001b[31m\": 1")),
              HasSubstr("s.json:2:1: a\\u001b[31m: "));
}

TEST_F(BadSweepFile, AFileThatCannotBeReadIsADataError) {
  EXPECT_THROW(load_sweep(folder.path() / "missing.json"), DataError);
  EXPECT_THROW(load_sweep(folder.path()), DataError);
  EXPECT_THROW(load_sweep("/dev/zero"), DataError);
  const std::filesystem::path loop = folder.path() / "loop.json";
  std::filesystem::create_symlink(loop, loop);
  EXPECT_THAT(message_of<DataError>([&] { load_sweep(loop); }), HasSubstr("symbolic links"));
}

}  // namespace sweep::sweep_file_tables_test
