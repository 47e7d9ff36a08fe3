// The program, given data of every kind of damage: `data`, `plan` and a start each refuse it with one line
// that names the file, or skip it, or read it as documented, all within a second and in bounded memory. What
// the readers make of such files is tested in tests/core/data/readers; this asks what the person sees.

#include "tests/support/program_folder.h"
#include "tests/tools/damaged_data_kinds.h"

#include "tests/support/test.h"

namespace sweep::testing::damaged_data_test {

using nlohmann::json;

// A picture of the largest size that is decoded has 201 MB, and is turned from rows into channels.
constexpr std::uint64_t kMaxBytes = std::uint64_t{512} << 20;

class DamagedData : public ProgramFolder, public ::testing::WithParamInterface<Kind> {
 protected:
  void write_sweep_file() const {
    const Kind& kind = GetParam();
    folder_.write("s.json", R"({"dataset": {"name": ")" + kind.dataset + R"(", "path": ")" + kind.path +
                                R"("}, "network": {"layers": [{"type": "flatten"},
      {"type": "linear", "out_features": 10}]}, "batch_size": 2, "device": "cpu"})");
  }

  // The message without the folder's name.
  Finished run(const std::vector<std::string>& words) const {
    Finished finished =
        run_program(words, folder_.path(), {.obeys_permissions = GetParam().obeys_permissions});
    finished.err = folder_.without_folder(finished.err);
    finished.out = folder_.without_folder(finished.out);
#ifndef __SANITIZE_ADDRESS__
    EXPECT_LT(finished.cpu_seconds, 2.0);
    EXPECT_LT(finished.peak_bytes, kMaxBytes);
#endif
    return finished;
  }

  void expect_refused(const std::vector<std::string>& words) const {
    SCOPED_TRACE(words.front());
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 2) << finished.err;
    EXPECT_THAT(finished.err, StartsWith("sweep: " + GetParam().says));
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_FALSE(exists("runs"));
  }
};

TEST_P(DamagedData, IsRefusedOrSkippedOrReadWithinTwoSecondsInBoundedMemory) {
  const Kind& kind = GetParam();
  if (kind.dataset != "own" && !fs::exists(kDebiansFashion))
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  kind.write(folder_);
  write_sweep_file();
  const std::vector<std::string> data = {"data", "s.json"}, plan = {"plan", "s.json"},
                                 start = {"s.json", "--logdir", "runs"};
  if (kind.obeys_permissions && run(data).code == kCannotDrop)
    GTEST_SKIP() << "root may read everything, and cannot give that up";
  if (kind.fate == Fate::kRefused) {
    for (const auto& words : {data, plan, start}) expect_refused(words);
    return;
  }
  const json set = output({"data", "s.json"}).at("datasets").at(0);
  EXPECT_EQ(set.at("parts").at(0).at("samples"), kind.samples);
  EXPECT_EQ(set.at("skipped").size(), kind.fate == Fate::kSkipped ? 1u : 0u);
  const std::string shown = run(data).out;
  EXPECT_THAT(shown, HasSubstr(kind.fate == Fate::kSkipped ? "\nskipped: " + kind.says : kind.says));
  run(plan);
  const Finished trained = run(start);
  if (kind.fate == Fate::kSkipped) {
    const std::string name = kind.says.substr(0, kind.says.find(": ")),
                      reason = kind.says.substr(name.size() + 2);
    EXPECT_THAT(trained.err, HasSubstr("data set \"own\": 1 file was skipped: " + name + " (" + reason));
  } else {
    EXPECT_THAT(trained.err, Not(HasSubstr("skipped")));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DamagedData, ::testing::ValuesIn(kinds_of_damage()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace sweep::testing::damaged_data_test
