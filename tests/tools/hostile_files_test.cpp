// The program, given files that are not what they seem: pipes, links, deep and oversized content. It refuses
// them at once, names the file, and changes nothing that it did not write.
#include <sys/stat.h>

#include "tests/support/program_folder.h"
#include "tests/support/test.h"

namespace sweep::testing::hostile_files_test {

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

}  // namespace sweep::testing::hostile_files_test
