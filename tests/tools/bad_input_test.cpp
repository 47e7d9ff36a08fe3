// The program, given bad input: one clear message on stderr and the right exit code, within a second, and no
// file is written.

#include <sys/stat.h>

#include "core/engine/device.h"
#include "tests/support/data_files.h"
#include "tests/support/program_folder.h"
#include "tests/support/reference_data.h"

namespace sweep::testing::bad_input_test {

class BadInput : public ProgramFolder {
 protected:
  void expect_words_refused(const std::vector<std::string>& words, const std::string& message, int code = 2) {
    const std::vector<std::string> before = files();
    const Finished finished = run(words, code);
    EXPECT_THAT(finished.err, HasSubstr(message));
    // One line, and for a command line another with where help is.
    const std::string hint = finished.err.substr(std::min(finished.err.size(), finished.err.find('\n') + 1));
    EXPECT_TRUE(hint.empty() || (hint.rfind("Try \"sweep", 0) == 0 && hint.find('\n') == hint.size() - 1))
        << finished.err;
    EXPECT_THAT(finished.err, StartsWith("sweep: "));
    EXPECT_EQ(finished.out, "");
    EXPECT_LT(finished.cpu_seconds, 1.0);
    EXPECT_EQ(files(), before) << "something was written";
  }

  // A sweep that trains on 60 samples of its own, which are written.
  std::string own_sweep() {
    test::write_idx_set(path("data"), "train", 60, 28);
    return R"({"dataset": {"name": "own", "path": "data"}, "network": "net.json", "batch_size": 20})";
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
      names.push_back(entry.path().string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

// Every way from a mistake to the person: a row of bad_commands.json has the sweep file s.json or its
// settings, else it is a good one, other files, the words, the exit code and a part of the message. All
// messages about sweep files are in bad_sweeps.json, all about data in damaged_data_test.cpp.
TEST_F(BadInput, IsRefusedInOneLineWithItsExitCode) {
  const std::string own = own_sweep();
  for (const json& row : test::reference_json("bad_commands.json")) {
    SCOPED_TRACE(row);
    const std::string file = row.value("file", own);
    folder_.write("s.json", row.contains("settings") ? SweepFolder::with(row.at("settings")) : file);
    const json files = row.value("files", json::object());
    for (const auto& [name, text] : files.items()) folder_.write(name, text);
    expect_words_refused(row.value("words", std::vector<std::string>{"s.json"}), row.at("message"),
                         row.value("code", 2));
  }
}

TEST_F(BadInput, InitialWeightsThatCannotBeReadAreReportedByPlanAsByARun) {
  std::string own = own_sweep();
  folder_.write("s.json", own);
  own.back() = ',';
  folder_.write("with.json", own + "\n\"init\": \"none.safetensors\"}");
  const std::string message = ": init: " + path("none.safetensors").string() + ": cannot open";
  for (const char* command : {"plan", "run"}) {
    expect_words_refused({command, "with.json"}, "with.json:2:9" + message);
    expect_words_refused({command, "s.json", "init=none.safetensors"},
                         "override \"init=none.safetensors\"" + message);
    expect_words_refused(
        {command, "s.json", "init=net.json,none.safetensors"},
        "net.json,none.safetensors\": init: " + path("net.json").string() + ": not a safetensors file");
  }
}

TEST_F(BadInput, KnownDataThatIsNotThereIsReportedByPlanAsByARun) {
  const test::Environment data("SWEEP_DATA", folder_.path().string());
  folder_.write("s.json", R"({"dataset": "cifar10", "network": "net.json"})");
  for (const char* command : {"run", "plan"}) {
    const Finished finished = run({command, "s.json"}, 2);
    EXPECT_THAT(finished.err, StartsWith("sweep: data set \"cifar10\" not found. Looked in:\n"));
    EXPECT_THAT(finished.err,
                HasSubstr("/cache/sweep/cifar10: no such directory\nTo get it, run `sweep data get "
                          "cifar10`, or train with --yes; or "));
    EXPECT_THAT(finished.err, HasSubstr("\n  data_batch_5.bin\n"));
    EXPECT_EQ(finished.out, "");
  }
}

TEST_F(BadInput, GoodInputIsNotRefused) {  // Otherwise the tests above would prove nothing.
  folder_.write("s.json", own_sweep());
  const Finished planned = run({"plan", "s.json", "--json"});
  EXPECT_EQ(planned.err, "");
  EXPECT_EQ(json::parse(planned.out)["runs"][0]["steps_per_epoch"], 3);
  run({"s.json", "--quiet"});
  EXPECT_EQ(output({"show", "runs/s"})["runs"][0]["status"], "completed");
  run({"show", "runs/s/run"});
  EXPECT_THAT(run({"show", "runs/s"}).out, HasSubstr("completed"));
  EXPECT_THAT(run({"plan", "--", "echo", "", "[1,2]", "-x"}).out, HasSubstr("echo '' '[1,2]' -x\n"));
}

TEST_F(BadInput, ADeviceThatThisMachineLacksIsSkippedWhateverItsNumber) {
  if (cuda_unavailable_reason() == std::nullopt) GTEST_SKIP() << "this machine has CUDA";
  folder_.write("s.json", own_sweep());
  const auto results = output({"s.json", "device=cuda,cuda:0,cuda:7"});
  for (const auto& run : results["runs"]) EXPECT_EQ(run["status"], "skipped");
}

TEST_F(BadInput, StandardOutputThatIsClosedEarlyCostsTheTableOnly) {
  folder_.write("s.json", own_sweep());
  const Finished finished = run_shell("{ $SWEEP s.json epochs=50; echo $? > code; } | true");
  EXPECT_EQ(content("code"), "141\n") << finished.err;
  EXPECT_EQ(output({"show", "runs/s"})["runs"][0]["status"], "completed");
}

TEST_F(BadInput, StandardOutputThatIsFullIsAnError) {
  const Finished finished = run_program({"schema"}, folder_.path(), {.standard_output = "/dev/full"});
  EXPECT_EQ(finished.code, 3);
  EXPECT_THAT(finished.err, HasSubstr("standard output cannot be written"));
}

// The program, given files that are not what they seem: pipes, links, deep and oversized content. It refuses
// them at once, names the file, and changes nothing that it did not write.

class HostileFiles : public ProgramFolder {
 protected:
  void expect_refused(const std::vector<std::string>& words, const std::string& file) {
    const Finished finished = run_program(words, folder_.path());
    EXPECT_TRUE(finished.code == 1 || finished.code == 2) << finished.code << finished.err;
    EXPECT_THAT(finished.out + finished.err, HasSubstr(file));
    EXPECT_LT(finished.cpu_seconds, 2.0);
  }
  void make_pipe(const std::string& name) const {
    fs::create_directories(path(name).parent_path());
    ASSERT_EQ(::mkfifo(path(name).c_str(), 0600), 0);
  }
};

TEST_F(HostileFiles, APipeIsReadNowhere) {
  make_pipe("run/run.json");
  expect_refused({"show", "run"}, "run/run.json: is not a regular file");
  expect_refused({"fsck", "run"}, "is not a regular file");
  make_pipe("sweep/sweep.json");
  expect_refused({"show", "sweep"}, "sweep/sweep.json: is not a regular file");
  expect_refused({"verify", "sweep"}, "sweep/sweep.json: is not a regular file");
  expect_refused({"fsck", "sweep"}, "is not a regular file");
  make_pipe("events/events.out.tfevents.1");
  expect_refused({"fsck", "events"}, "is not a regular file");
  expect_refused({"export", "events"}, "is not a regular file");
  make_pipe("weights/checkpoint.safetensors");
  expect_refused({"fsck", "weights"}, "is not a regular file");
  make_pipe("pipe.json");
  expect_refused({"pipe.json"}, "pipe.json: is not a regular file");
  folder_.write("s.json", R"({"dataset": "fashion-mnist", "network": "pipe.json"})");
  expect_refused({"plan", "s.json"}, "pipe.json: is not a regular file");
}

TEST_F(HostileFiles, DeepNestingIsRefusedWithTheFilesName) {
  for (const std::string& deep : {std::string(100'000, '['), "{\"runs\":" + std::string(100'000, '[')}) {
    folder_.write("run/run.json", deep);
    expect_refused({"show", "run"}, "run/run.json: ");
    expect_refused({"fsck", "run"}, "nested too deeply");
    folder_.write("sweep/sweep.json", deep);
    folder_.write("sweep/results.json", deep);
    expect_refused({"show", "sweep"}, "sweep/sweep.json: is nested too deeply");
    expect_refused({"verify", "sweep"}, "sweep/sweep.json: is nested too deeply");
    expect_refused({"fsck", "sweep"}, "nested too deeply");
  }
  folder_.write("sweep/sweep.json", R"({"runs": [7]})");
  expect_refused({"show", "sweep"}, "sweep/sweep.json: ");
  expect_refused({"verify", "sweep"}, "sweep/sweep.json: ");
}

TEST_F(HostileFiles, TextFromFilesNeverControlsTheTerminal) {
  folder_.write("s.json", SweepFolder::with("\"k\\u001b[2J\\u202e\\u009b\": 1"));
  folder_.write("run/run.json",
                "{\"name\":\"\\u001b[2J\\u202e\",\"status\":\"failed\",\"params\":{\"\\u009bk\":\"\\u0007\"},"
                "\"metrics\":{},"
                "\"epochs\":[],\"seconds\":{\"run\":null,\"setup\":null},\"error\":\"\\u001b]0;x\","
                "\"device\":\"\",\"jobs\":1,"
                "\"config\":{},\"provenance\":{}}");
  folder_.write("sweep/sweep.json", R"({"runs": ["run"]})");
  folder_.write("sweep/run/run.json", content("run/run.json"));
  fs::create_directories(path("a\x1b[2J"));
  folder_.write("a\x1b[2J/run.json", "{}");
  const std::vector<std::vector<std::string>> commands = {
      {"s.json"},    {"show", "run"},      {"show", "sweep"},  {"show", "run", "--json"},
      {"fsck", "."}, {"show", "a\x1b[2J"}, {"show", "\x1b[m"}, {"\x1b[2J.json"}};
  for (const auto& words : commands) {
    const Finished finished = run_program(words, folder_.path());
    const std::string text = finished.out + finished.err;
    EXPECT_NE(text, "");
    for (const char* raw : {"\x1b", "\x07", "\xc2\x9b", "\xe2\x80\xae"})
      EXPECT_EQ(text.find(raw), std::string::npos) << text;
  }
}

TEST_F(HostileFiles, ALinkToNothingIsNotSuggestedForItself) {
  fs::create_symlink("nowhere", path("link.json"));
  EXPECT_EQ(run_program({"link.json"}, folder_.path()).err, "sweep: link.json: no such file\n");
}

TEST_F(HostileFiles, ADeviceWithoutEndIsReadNowhere) {
  fs::create_directories(path("events"));
  fs::create_symlink("/dev/zero", path("events/events.out.tfevents.1"));
  expect_refused({"fsck", "events"}, "is not a regular file");
  expect_refused({"export", "events"}, "is not a regular file");
}

}  // namespace sweep::testing::bad_input_test
