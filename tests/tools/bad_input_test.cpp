// The program, given bad input: one clear message on stderr and the right exit code, within a second, and no
// file is written.

#include <sys/stat.h>

#include "core/engine/device.h"
#include "tests/support/data_files.h"
#include "tests/support/program_folder.h"

namespace sweep::testing::bad_input_test {

class BadInput : public ProgramFolder {
 protected:
  // Runs `sweep s.json`, after the file was written with `text`, and expects it to be refused.
  void expect_refused(const std::string& text, const std::string& message,
                      std::vector<std::string> words = {}, int code = 2) {
    folder_.write("s.json", text);
    words.insert(words.begin(), "s.json");
    expect_words_refused(words, message, code);
  }

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

// Every way from a mistake to the person. All messages about sweep files are in bad_sweeps.json, all about
// data in damaged_data_test.cpp.
TEST_F(BadInput, IsRefusedInOneLineWithItsExitCode) {
  const std::string own = own_sweep();
  const struct {
    std::string file, message;
    std::vector<std::string> words = {};
    int code = 2;
  } cases[] = {
      {"", "s.json:1:1: the file is empty"},
      {"{\"name\": \"x\"", "s.json:1:13: the file ends inside the object"},
      {SweepFolder::with("\"lr\": 1") + '\0', "s.json:2:9: the file holds a NUL byte"},
      {SweepFolder::with("\"params\": {\"lr\": [-1]}"),
       "s.json:2:19: params.lr.0: got -1, want a number > 0"},
      {SweepFolder::with("\"batch_size\": 60001"), "s.json:2:15: batch_size: got 60001, want at most 60000"},
      {R"({"dataset": "mnist", "network": {"layers": [{"type": "linear", "out_features": 10}]}})",
       "s.json:1:45: network.layers.0: layer \"0\" (linear): needs an input of shape [features], but gets "
       "[1, 28, "
       "28]"},
      {own, "override \"lr=-1\": lr: got -1, want a number > 0", {"lr=-1"}},
      {own,
       "override \"batch_size=61\": batch_size: got 61, want at most 60, the number of training samples",
       {"batch_size=61"}},
      {own, "override \"oops\": want KEY=VALUE", {"oops"}},
      {own, "unknown option --cluster, allowed: --help,", {"--cluster", "slurm"}},
      {own, "did you mean \"--epochs\"?", {"--epoch", "3"}},
      {own, "--epochs 0: epochs: got 0, want an integer >= 1", {"--epochs", "0"}},
      // Root may write anywhere, so a file in the way and a file system of the kernel replace a missing
      // permission.
      {own, "net.json", {"--logdir", "net.json/runs"}, 3},
      {own, "/proc/runs", {"--logdir", "/proc/runs"}, 3},
      {own,
       "…: File name too long, want a path whose parts have at most 255 bytes each",
       {"--logdir", std::string(300, 'x')},
       3},
  };
  for (const auto& [file, message, words, code] : cases) {
    SCOPED_TRACE(message);
    expect_refused(file, message, words, code);
  }
  folder_.write("s.json", own);
  expect_words_refused({"plan", "s.json", "batch_size=61"}, "batch_size: got 61, want at most 60");
  expect_words_refused({"plna", "s.json"}, "did you mean \"plan\"?");
  expect_words_refused({"show", "runs"}, "runs: is not there");
  expect_words_refused({folder_.path().string()}, "has no sweep.json; want the directory of a sweep");
  folder_.write("data/train-images-idx3-ubyte", "");
  expect_words_refused({"s.json"}, "train-images-idx3-ubyte: is empty");
}

TEST_F(BadInput, MissingFile) {
  expect_words_refused({"nothing.json"}, "nothing.json: no such file");
  folder_.write("sweeps/fashion.json", "{}");
  expect_words_refused({"sweeps/fashon.json"},
                       "sweeps/fashon.json: no such file, did you mean \"sweeps/fashion.json\"?");
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

TEST_F(HostileFiles, ADeviceWithoutEndIsReadNowhere) {
  fs::create_directories(path("events"));
  fs::create_symlink("/dev/zero", path("events/events.out.tfevents.1"));
  expect_refused({"fsck", "events"}, "is not a regular file");
  expect_refused({"export", "events"}, "is not a regular file");
}

}  // namespace sweep::testing::bad_input_test
