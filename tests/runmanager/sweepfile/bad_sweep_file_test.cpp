// Every mistake in a sweep file is reported with its location, what was found and what is allowed, before
// anything trains.

#include <fmt/format.h>

#include "core/base/file.h"
#include "tests/support/reference_data.h"
#include "tests/support/sweep_folder.h"

namespace sweep::bad_sweep_file_test {

using nlohmann::json;

// The frame whose name is a key of the row, with the row's text in it.
std::string sweep_file_of(const json& row, const json& frames) {
  for (const auto& [name, frame] : frames.items()) {
    if (!row.contains(name)) continue;
    std::string text = frame;
    return text.replace(text.find('@'), 1, row.at(name).get<std::string>());
  }
  throw std::runtime_error("no frame for " + row.dump());
}

using BadSweepFile = testing::InSweepFolder;

// A row of bad_sweeps.json: a sweep file, the other files, overrides and --slurm, and the whole "message" or
// parts that it "has".
TEST_F(BadSweepFile, EveryMistakeIsReportedWithItsPlaceAndWhatIsAllowed) {
  const json table = json::parse(read_file(test::reference_path("bad_sweeps.json")));
  EXPECT_GE(table.at("rows").size(), 299u);
  for (const json& row : table.at("rows")) {
    const json files = row.value("files", json::object());
    for (const auto& [name, text] : files.items()) folder.write(name, text);
    LoadOptions options;
    options.slurm = row.value("slurm", std::vector<std::string>());
    const std::string message = folder.error(sweep_file_of(row, table.at("frames")),
                                             row.value("overrides", std::vector<std::string>()), options);
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
  try {
    load_sweep(file);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(folder.without_folder(error.what()),
              "con.json:1:1: the file's name \"con\" cannot name a directory, want a \"name\"");
  }
}

TEST_F(BadSweepFile, OnlyABatchSizeThatWasGivenIsRefusedForASmallSet) {
  const auto file = [](const std::string& more) {
    return R"({"network": "net.json", "dataset": {"name": "mnist", "validation": 59902})" + more + "}";
  };
  EXPECT_EQ(folder.load(file("")).runs.size(), 1u);
  EXPECT_THAT(folder.error(file(R"(, "batch_size": 100)")),
              HasSubstr("batch_size: got 100, want at most 98"));
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

}  // namespace sweep::bad_sweep_file_test
