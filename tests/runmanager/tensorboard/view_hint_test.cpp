#include "runmanager/tensorboard/view_hint.h"

#include <fmt/format.h>

#include <regex>

#include "tests/support/test.h"

namespace sweep::view_hint_test {

std::vector<RunRecord> runs_of(const std::vector<std::string>& names,
                               RunStatus status = RunStatus::kCompleted) {
  std::vector<RunRecord> runs;
  for (const std::string& name : names) {
    runs.emplace_back();
    runs.back().name = name;
    runs.back().status = status;
  }
  return runs;
}

std::vector<std::string> grid(int lrs, int batches, int repeats) {
  std::vector<std::string> names;
  for (int lr = 1; lr <= lrs; ++lr) {
    for (int batch = 1; batch <= batches; ++batch) {
      for (int repeat = 0; repeat < repeats; ++repeat) {
        names.push_back(fmt::format("lr=0.{},batch_size={}{}", lr, 10 * batch,
                                    repeats > 1 ? fmt::format(",repeat={}", repeat) : ""));
      }
    }
  }
  return names;
}

std::string same(const std::string& path) { return path; }

std::ptrdiff_t matches(const std::vector<std::string>& names, const std::string& filter) {
  const std::regex regex(filter);
  return std::count_if(names.begin(), names.end(),
                       [&](const std::string& name) { return std::regex_search(name, regex); });
}

TEST(RunFilter, LeavesAsManyRunsAsTensorBoardTicks) {
  EXPECT_EQ(run_filter(grid(5, 8, 1)), "") << "40 runs need none";
  EXPECT_EQ(run_filter(grid(2, 21, 1)), "lr=0.1");
  for (const auto& names :
       {grid(3, 14, 1), grid(40, 1, 3), grid(12, 12, 1), grid(9, 50, 3), grid(45, 1, 1)}) {
    const std::string filter = run_filter(names);
    EXPECT_GE(matches(names, filter), 1) << filter;
    EXPECT_LE(matches(names, filter), 40) << filter;
  }
  EXPECT_EQ(run_filter(grid(40, 1, 3)), "repeat=0");
}

TEST(RunFilter, DoesNotTakeTheBeginningOfAValueForTheValue) {
  std::vector<std::string> names;
  for (int i = 0; i < 30; ++i) names.push_back(fmt::format("lr=0.1,seed={}", i));
  for (int i = 0; i < 30; ++i) names.push_back(fmt::format("lr=0.15,seed={}", i));
  EXPECT_EQ(matches(names, run_filter(names)), 30);
}

TEST(ViewHint, NamesTheSweepsDirectory) {
  EXPECT_EQ(view_hint("runs/s", runs_of(grid(2, 2, 1)), {}, same),
            "To look at it: tensorboard --logdir runs/s\n");
}

TEST(ViewHint, TellsWhatToTypeWhereAPageWouldBeEmpty) {
  std::vector<RunRecord> runs = runs_of(grid(2, 21, 1));
  EXPECT_THAT(view_hint("runs/s", runs, {}, same),
              AllOf(HasSubstr("--logdir runs/s\n"), HasSubstr("42"), HasSubstr("type lr=0.1 for")));
  runs[0].status = runs[1].status = RunStatus::kSkipped;
  EXPECT_THAT(view_hint("runs/s", runs, {}, same), Not(HasSubstr("type"))) << "skipped runs have no events";
}

TEST(ViewHint, BeginsWithTheMeansWhereTheyAreFewEnough) {
  const std::string few = view_hint("runs/s", runs_of(grid(2, 3, 3)), grid(2, 3, 1), same);
  EXPECT_THAT(few, AllOf(StartsWith("To look at it: tensorboard --logdir runs/s\n"),
                         HasSubstr("--logdir runs/s.mean\n"), Not(HasSubstr("type"))));
  const std::string many = view_hint("runs/s", runs_of(grid(5, 8, 3)), grid(5, 8, 1), same);
  EXPECT_THAT(many,
              AllOf(StartsWith("To look at the means of the repeats: tensorboard --logdir runs/s.mean\n"),
                    HasSubstr("--logdir runs/s\n"), HasSubstr("type repeat=0 for")));
}

}  // namespace sweep::view_hint_test
