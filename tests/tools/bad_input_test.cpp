// The program, given bad input: one clear message on stderr and the right exit code, within a second, and no
// file is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "core/base/file.h"
#include "core/engine/device.h"

#include "tests/support/environment.h"
#include "tests/support/idx_files.h"
#include "tests/support/program.h"
#include "tests/support/sweep_folder.h"

namespace sweep::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kMnistSamples = 60;

// `type`: the third byte of the file, 8 for unsigned bytes.
std::string mnist_images(char type = 8) {
  std::string bytes = test::idx({kMnistSamples, 28, 28}, std::string(kMnistSamples * 28 * 28, '\x40'));
  bytes[2] = type;
  return bytes;
}
std::string mnist_labels(char last = 9) {
  std::string values;
  for (std::uint32_t i = 0; i + 1 < kMnistSamples; ++i) values += static_cast<char>(i % 10);
  return test::idx({kMnistSamples}, values + last);
}

class BadInput : public ::testing::Test {
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
    const Finished finished = run_program(words, folder_.path());
    EXPECT_EQ(finished.code, code) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(message));
    // One line, and for a command line another with where help is.
    const std::string hint = finished.err.substr(std::min(finished.err.size(), finished.err.find('\n') + 1));
    EXPECT_TRUE(hint.empty() || (hint.rfind("Try \"sweep", 0) == 0 && hint.find('\n') == hint.size() - 1))
        << finished.err;
    EXPECT_THAT(finished.err, ::testing::StartsWith("sweep: "));
    EXPECT_EQ(finished.out, "");
    EXPECT_LT(finished.cpu_seconds, 1.0);
    EXPECT_EQ(files(), before) << "something was written";
  }

  // Data of the test's own, and a sweep that trains on it.
  std::string sweep_on(const std::string& image_bytes, const std::string& label_bytes,
                       const std::string& extension = "") {
    folder_.write("data/train-images-idx3-ubyte" + extension, image_bytes);
    folder_.write("data/train-labels-idx1-ubyte" + extension, label_bytes);
    return R"({"dataset": {"name": "own", "path": "data"}, "network": "net.json", "batch_size": 20})";
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
      names.push_back(entry.path().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  SweepFolder folder_;
};

TEST_F(BadInput, MissingFile) {
  expect_words_refused({"nothing.json"}, "nothing.json: no such file");
  folder_.write("sweeps/fashion.json", "{}");
  expect_words_refused({"sweeps/fashon.json"},
                       "sweeps/fashon.json: no such file, did you mean \"sweeps/fashion.json\"?");
}
TEST_F(BadInput, ALogDirectoryWhoseNameIsTooLong) {
  expect_refused(sweep_on(mnist_images(), mnist_labels()),
                 "…: File name too long, want a path whose parts have at most 255 bytes each",
                 {"--logdir", std::string(300, 'x')}, 3);
}
TEST_F(BadInput, EmptyFile) { expect_refused("", "s.json:1:1: the file is empty"); }
TEST_F(BadInput, Directory) {
  expect_words_refused({folder_.path().string()}, "has no sweep.json; want the directory of a sweep");
}
TEST_F(BadInput, CutFile) {
  expect_refused("{\"name\": \"x\"", "s.json:1:13: the file ends inside the object");
}
TEST_F(BadInput, TypoInAKey) {
  expect_refused(SweepFolder::with("\"epoch\": 3"),
                 "s.json:2:1: epoch: unknown key \"epoch\", allowed: name, dataset,");
  expect_refused(SweepFolder::with("\"epoch\": 3"), "did you mean \"epochs\"?");
}
TEST_F(BadInput, WrongType) {
  expect_refused(SweepFolder::with("\"epochs\": \"3\""),
                 "s.json:2:11: epochs: got \"3\", want an integer >= 1");
}
TEST_F(BadInput, EmptyList) {
  expect_refused(SweepFolder::with("\"params\": {\"lr\": []}"),
                 "s.json:2:18: params.lr: got an empty list, want at least one value");
}
TEST_F(BadInput, NegativeLearningRate) {
  expect_refused(SweepFolder::with("\"params\": {\"lr\": [-1]}"),
                 "s.json:2:19: params.lr.0: got -1, want a number > 0");
  expect_refused(SweepFolder::with("\"lr\": 1"), "override \"lr=-1\": lr: got -1, want a number > 0",
                 {"lr=-1"});
}
TEST_F(BadInput, BatchSizeZero) {
  expect_refused(SweepFolder::with("\"params\": {\"batch_size\": [0]}"),
                 "s.json:2:27: params.batch_size.0: got 0, want an integer >= 1");
}
TEST_F(BadInput, BatchLargerThanAKnownDataSet) {
  expect_refused(SweepFolder::with("\"batch_size\": 60001"),
                 "s.json:2:15: batch_size: got 60001, want at most 60000");
}
TEST_F(BadInput, BatchLargerThanADataSetOfOnesOwn) {
  expect_refused(
      sweep_on(mnist_images(), mnist_labels()),
      "override \"batch_size=61\": batch_size: got 61, want at most 60, the number of training samples",
      {"batch_size=61"});
}
TEST_F(BadInput, UnknownDevice) {
  expect_refused(SweepFolder::with("\"device\": \"gpu\""),
                 "s.json:2:11: device: got \"gpu\", want cpu, cuda,");
}
TEST_F(BadInput, UnknownLayer) {
  expect_refused(R"({"dataset": "mnist", "network": {"layers": [{"type": "conv3d"}]}})",
                 "s.json:1:54: network.layers.0.type: got \"conv3d\", want conv2d, linear,");
}
TEST_F(BadInput, ShapesThatDoNotFit) {
  expect_refused(R"({"dataset": "mnist", "network": {"layers": [{"type": "linear", "out_features": 10}]}})",
                 "s.json:1:45: network.layers.0: layer \"0\" (linear): needs an input of shape [features], "
                 "but gets [1, 28, 28]");
}
TEST_F(BadInput, CutGzip) {
  const std::string whole = test::gzip(mnist_images());
  expect_refused(sweep_on(whole.substr(0, whole.size() / 2), test::gzip(mnist_labels()), ".gz"),
                 "train-images-idx3-ubyte.gz");
}
TEST_F(BadInput, WrongMagic) {
  expect_refused(sweep_on(mnist_images(9), mnist_labels()), "train-images-idx3-ubyte");
}
TEST_F(BadInput, CutImages) {
  expect_refused(sweep_on(mnist_images().substr(0, 1000), mnist_labels()), "train-images-idx3-ubyte");
}
TEST_F(BadInput, LabelOutOfRange) {
  // A set of one's own has as many classes as its labels say; mnist has ten.
  std::string sweep = sweep_on(mnist_images(), mnist_labels('\xFF'));
  sweep.replace(sweep.find("own"), 3, "mnist");
  expect_refused(sweep, "label 255");
}
TEST_F(BadInput, MissingData) {
  expect_refused(R"({"dataset": {"name": "own", "path": "nowhere"}, "network": "net.json"})", "nowhere");
}
TEST_F(BadInput, KnownDataThatIsNotThereIsReportedByPlanAsByARun) {
  const test::Environment data("SWEEP_DATA", folder_.path().string());
  const test::Environment cache("XDG_CACHE_HOME", (folder_.path() / "cache").string());
  folder_.write("s.json", R"({"dataset": "cifar10", "network": "net.json"})");
  for (const char* command : {"run", "plan"}) {
    const Finished finished = run_program({command, "s.json"}, folder_.path());
    EXPECT_EQ(finished.code, 2) << command;
    EXPECT_THAT(finished.err, ::testing::StartsWith("sweep: data set \"cifar10\" not found. Looked in:\n"));
    EXPECT_THAT(finished.err,
                HasSubstr("/cache/sweep/cifar10: no such directory\nTo get it, run `sweep data get "
                          "cifar10`, or train with --yes; or "));
    EXPECT_THAT(finished.err, HasSubstr("\n  data_batch_5.bin\n"));
    EXPECT_EQ(finished.out, "");
  }
}
TEST_F(BadInput, NameThatLeavesTheLogDirectory) {
  expect_refused(SweepFolder::with("\"name\": \"..\""),
                 "s.json:2:9: name: got \"..\", want a name that does not start with a dot");
  expect_refused(SweepFolder::with("\"name\": \"../../up\""),
                 "s.json:2:9: name: got \"../../up\", want a directory name without /");
}

// Root may write anywhere, so a file in the way and a file system of the kernel stand for missing permission.
TEST_F(BadInput, LogDirectoryThatCannotBeWritten) {
  const std::string sweep = sweep_on(mnist_images(), mnist_labels());
  folder_.write("in-the-way", "");
  expect_refused(sweep, "in-the-way", {"--logdir", "in-the-way/runs"}, 3);
  expect_refused(sweep, "/proc/runs", {"--logdir", "/proc/runs"}, 3);
}

TEST_F(BadInput, CommandLines) {
  folder_.write("s.json", sweep_on(mnist_images(), mnist_labels()));
  expect_words_refused({"plna", "s.json"}, "did you mean \"plan\"?");
  expect_words_refused({"s.json", "--cluster", "slurm"}, "unknown option --cluster, allowed: --help,");
  expect_words_refused({"s.json", "--epoch", "3"}, "did you mean \"--epochs\"?");
  expect_words_refused({"s.json", "--epochs", "0"}, "--epochs 0: epochs: got 0, want an integer >= 1");
  expect_words_refused({"s.json", "oops"}, "override \"oops\": want KEY=VALUE");
  expect_words_refused({"show", "runs"}, "runs: is not there");
}

TEST_F(BadInput, PlanRefusesTheSame) {
  folder_.write("s.json", sweep_on(mnist_images(), mnist_labels()));
  expect_words_refused({"plan", "s.json", "batch_size=61"}, "batch_size: got 61, want at most 60");
  expect_words_refused({"plan", "s.json", "lr=0"}, "override \"lr=0\": lr: got 0, want a number > 0");
}

TEST_F(BadInput, GoodInputIsNotRefused) {  // Otherwise the tests above would prove nothing.
  folder_.write("s.json", sweep_on(mnist_images(), mnist_labels()));
  const Finished planned = run_program({"plan", "s.json", "--json"}, folder_.path());
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_EQ(planned.err, "");
  EXPECT_EQ(nlohmann::json::parse(planned.out)["runs"][0]["steps_per_epoch"], 3);
  const Finished trained = run_program({"s.json", "--quiet"}, folder_.path());
  EXPECT_EQ(trained.code, 0) << trained.err;
  const Finished shown = run_program({"show", "runs/s", "--json"}, folder_.path());
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(nlohmann::json::parse(shown.out)["runs"][0]["status"], "completed");
  EXPECT_EQ(run_program({"show", "runs/s/run"}, folder_.path()).code, 0);
  EXPECT_THAT(run_program({"show", "runs/s"}, folder_.path()).out, HasSubstr("completed"));
}

TEST_F(BadInput, ADeviceThatThisMachineLacksIsSkippedWhateverItsNumber) {
  if (cuda_unavailable_reason() == std::nullopt) GTEST_SKIP() << "this machine has CUDA";
  folder_.write("s.json", sweep_on(mnist_images(), mnist_labels()));
  const Finished finished = run_program({"s.json", "device=cuda,cuda:0,cuda:7", "--json"}, folder_.path());
  EXPECT_EQ(finished.code, 0) << finished.err;
  const auto results = nlohmann::json::parse(finished.out);
  for (const auto& run : results["runs"]) EXPECT_EQ(run["status"], "skipped");
}

TEST_F(BadInput, ALimitBelowTheBatchSizeGivesShortBatches) {
  folder_.write("s.json", sweep_on(mnist_images(), mnist_labels()));
  const Finished finished = run_program({"s.json", "dataset.limit=7", "epochs=2", "--json"}, folder_.path());
  EXPECT_EQ(finished.code, 0) << finished.err;
  const auto run = nlohmann::json::parse(finished.out)["runs"][0];
  EXPECT_EQ(run["status"], "completed");
  EXPECT_EQ(run["epochs"].size(), 2u);
}

TEST_F(BadInput, ANulByteAfterTheSweepFile) {
  std::string text = SweepFolder::with("\"lr\": 1");
  text += '\0';
  expect_refused(text, "s.json:2:9: the file holds a NUL byte");
}

TEST_F(BadInput, StandardOutputThatIsClosedEarlyCostsTheTableOnly) {
  folder_.write("s.json", sweep_on(mnist_images(), mnist_labels()));
  const std::string program = program_path(SWEEP_PROGRAM);
  const Finished finished = run_program(
      "/bin/sh", {"-c", "{ " + program + " s.json epochs=50; echo $? > code; } | true"}, folder_.path());
  EXPECT_EQ(read_file(folder_.path() / "code"), "3\n") << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("standard output cannot be written"));
  const Finished shown = run_program({"show", "runs/s", "--json"}, folder_.path());
  EXPECT_EQ(nlohmann::json::parse(shown.out)["runs"][0]["status"], "completed");
}

TEST_F(BadInput, StandardOutputThatIsFullIsAnError) {
  EXPECT_EQ(run_program({"schema"}, folder_.path(), {.standard_output = "/dev/full"}).code, 3);
}

}  // namespace
}  // namespace sweep::testing
