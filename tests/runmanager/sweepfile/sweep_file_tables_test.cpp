// Which runs a sweep file gives, with which settings; and every mistake in one is reported with its location,
// what was found and what is allowed, before anything trains.

#include <fmt/format.h>

#include "core/base/file.h"
#include "runmanager/records/run_record_json.h"
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
      return text.replace(text.find('@'), 1, row.at(name).get<std::string>());
    }
    throw std::runtime_error("no frame for " + row.dump());
  }
};
using BadSweepFile = SweepFileTable;
using GoodSweepFile = SweepFileTable;

// What a sweep has, as a row of good_sweeps.json names it. A run is read from its config, as
// LoadSweep.EveryKeyReachesTheRun proves.
json described(const Sweep& sweep) {
  json all = {{"name", sweep.name},
              {"resolved", sweep.resolved},
              {"runs", json::array()},
              {"excluded", json::array()}};
  for (const RunConfig& run : sweep.runs)
    all["runs"].push_back({{"name", run.name},
                           {"params", to_json(run.params)},
                           {"not_swept", to_json(run.not_swept)},
                           {"config", run.resolved.json()}});
  for (const ExcludedRun& run : sweep.excluded)
    all["excluded"].push_back({{"params", to_json(run.params)}, {"reason", run.reason}});
  return all;
}

// A row of good_sweeps.json: a sweep file, the other files and overrides; the "names" of the runs or their
// number, the swept "keys", and "values" at JSON pointers: null if there is none.
TEST_F(GoodSweepFile, GivesTheseRunsWithTheseSettings) {
  const json rows = table_of("good_sweeps.json").at("rows");
  EXPECT_GE(rows.size(), 98u);
  for (const json& row : rows) {
    SCOPED_TRACE(row);
    const Sweep sweep = folder.load(sweep_file_of(row), row.value("overrides", std::vector<std::string>()));
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
  }
}

// A row of bad_sweeps.json: a sweep file, the other files, overrides and --slurm, and the whole "message" or
// parts that it "has".
TEST_F(BadSweepFile, EveryMistakeIsReportedWithItsPlaceAndWhatIsAllowed) {
  EXPECT_GE(bad.at("rows").size(), 324u);
  for (const json& row : bad.at("rows")) {
    LoadOptions options;
    options.slurm = row.value("slurm", std::vector<std::string>());
    const std::string message =
        folder.error(sweep_file_of(row), row.value("overrides", std::vector<std::string>()), options);
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
}

TEST_F(BadSweepFile, CudaDevicesAreCountedFromZero) {
  const std::string one = SweepFolder::with("\"device\": \"cuda:1\"");
  LoadOptions machine;
  machine.cuda_device_count = 1;
  EXPECT_THAT(folder.error(one, {}, machine),
              HasSubstr("but this machine has one CUDA device, want cuda or cuda:0"));
  machine.cuda_device_count = 2;
  EXPECT_EQ(folder.load(one, {}, machine).runs[0].device, "cuda:1");
  machine.cuda_device_count = 0;  // A file from another machine: its run is skipped, which is no mistake.
  EXPECT_EQ(folder.load(SweepFolder::with("\"device\": \"cuda:0\""), {}, machine).runs[0].device, "cuda:0");
  EXPECT_EQ(folder.load(one, {}, machine).runs[0].device, "cuda:1");
  EXPECT_EQ(folder.load(SweepFolder::with("\"device\": \"cuda\""), {}, machine).runs[0].device, "cuda");
}

}  // namespace sweep::sweep_file_tables_test
