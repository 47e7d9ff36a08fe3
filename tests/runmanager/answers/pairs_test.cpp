#include "runmanager/answers/comparison.h"
#include "tests/runmanager/answers/made_runs.h"

namespace sweep::pairs_test {

// Two learning rates on a device that the run asks for, and names as it was found.
std::vector<SourceRun> devices_and_rates(const std::vector<std::string>& sources = {"runs/s", "runs/s"}) {
  std::vector<SourceRun> runs;
  for (const double lr : {0.1, 0.01}) {
    runs.push_back(made_run({{"lr", lr}, {"device", "cpu"}}, "cpu", 2, {1.0}, sources[0]));
    runs.push_back(made_run({{"lr", lr}, {"device", "cuda"}}, "cuda:0", 1, {1.0}, sources[1]));
  }
  return runs;
}

// A run for each value of the only setting.
std::vector<SourceRun> optimizers(const std::vector<std::string>& names) {
  std::vector<SourceRun> runs;
  for (const std::string& name : names) runs.push_back(made_run({{"optimizer", name}}, "cpu", 1));
  return runs;
}

TEST(Pairs, AreOfRunsThatDifferOnlyInTheKey) {
  const Comparison pairs = compare_runs(devices_and_rates(), "", "");
  EXPECT_EQ(pairs.key, "device");
  ASSERT_THAT(pairs.values, SizeIs(1));
  EXPECT_EQ(pairs.values[0].base, "cpu");
  EXPECT_EQ(pairs.values[0].other, "cuda:0");
  ASSERT_THAT(pairs.values[0].pairs, SizeIs(2));
  EXPECT_THAT(pairs.values[0].pairs[0].settings, ElementsAre(Pair("lr", "0.1")));
  EXPECT_EQ(pairs.values[0].pairs[1].runs.base, "runs/s/lr;device;cpu");
  EXPECT_EQ(pairs.values[0].pairs[1].runs.other, "runs/s/lr;device;cuda:0");
  EXPECT_THAT(pairs.alone, IsEmpty());
}

TEST(Pairs, AreOfEveryValueWithTheFirst) {
  const Comparison pairs = compare_runs(optimizers({"sgd", "adam", "rmsprop"}), "optimizer", "");
  ASSERT_THAT(pairs.values, SizeIs(2));
  EXPECT_EQ(pairs.values[1].base, "sgd");
  EXPECT_EQ(pairs.values[1].other, "rmsprop");
}

TEST(Pairs, LeaveOutUnfinishedRunsAndThoseWithoutAPartnerByName) {
  std::vector<SourceRun> runs = devices_and_rates();
  runs[3].record.status = RunStatus::kSkipped;
  const Comparison pairs = compare_runs(runs, "device", "");
  EXPECT_THAT(pairs.values[0].pairs, SizeIs(1));
  EXPECT_THAT(pairs.alone, ElementsAre("runs/s/lr;device;cpu"));
  EXPECT_THAT(pairs.unfinished, ElementsAre("runs/s/lr;device;cuda:0: skipped"));
}

TEST(Pairs, OfSweepsWithPartsOfTheComparisonAreAcross) {
  EXPECT_THAT(compare_runs(devices_and_rates({"runs/here", "runs/there"}), "device", "").values[0].pairs,
              SizeIs(2));
}

TEST(Pairs, OfSweepsWithAllOfTheComparisonAreWithin) {
  std::vector<SourceRun> runs = devices_and_rates();
  std::ranges::copy(devices_and_rates({"runs/again", "runs/again"}), std::back_inserter(runs));
  const std::vector<ComparedPair> pairs = compare_runs(runs, "device", "").values[0].pairs;
  ASSERT_THAT(pairs, SizeIs(4));
  for (const ComparedPair& pair : pairs)
    EXPECT_EQ(pair.runs.base.starts_with("runs/again/"), pair.runs.other.starts_with("runs/again/"));
  EXPECT_THAT(compare_runs(runs, "sweep", "").values[0].pairs, SizeIs(4));
}

TEST(Pairs, AreAlsoOfImportedRunsWhichHaveNoDevice) {
  std::vector<SourceRun> runs;
  for (const double lr : {0.1, 0.2}) {
    runs.push_back(made_run({{"lr", lr}}, "cpu", 1));
    runs.back().record.config["repeat"] = 0;
    runs.push_back(made_run({{"lr", lr}}, "", 1, {1.0}, "runs/imported"));
  }
  const Comparison pairs = compare_runs(runs, std::string(kSweepKey), "");
  ASSERT_THAT(pairs.values, SizeIs(1));
  EXPECT_THAT(pairs.values[0].pairs, SizeIs(2));
  EXPECT_THAT(pairs.alone, IsEmpty());
}

TEST(Pairs, ReadAConstantFromTheConfigurationOfASweepThatDoesNotVaryIt) {
  std::vector<SourceRun> runs = {made_run({{"momentum", 0.5}}, "cpu", 1, {1.0}, "runs/a"),
                                 made_run({}, "cpu", 1, {1.0}, "runs/b")};
  runs[1].record.config = {{"optimizer", {{"name", "sgd"}, {"momentum", 0.9}}}};
  EXPECT_EQ(setting_text(runs[1], "optimizer"), "sgd");
  const Comparison pairs = compare_runs(runs, "momentum", "");
  ASSERT_THAT(pairs.values, SizeIs(1));
  EXPECT_EQ(pairs.values[0].other, "0.9");
  EXPECT_THAT(pairs.values[0].pairs, SizeIs(1));
}

TEST(Pairs, TellWhichSettingsOnlyOneValueHas) {
  std::vector<SourceRun> runs = optimizers({"sgd", "sgd", "adam"});
  for (const std::size_t i : {0, 1})
    runs[i].record.params.emplace_back("momentum", 0.9 * static_cast<double>(i));
  const Comparison pairs = compare_runs(runs, "optimizer", "");
  EXPECT_THAT(pairs.values.at(0).pairs, IsEmpty());
  EXPECT_THAT(pairs.values.at(0).of_one, ElementsAre("momentum"));
}

TEST(Pairs, NeedTheKeyIfSeveralVary) {
  std::vector<SourceRun> runs = {made_run({{"lr", 0.1}, {"shuffle", true}}, "cpu", 1),
                                 made_run({{"lr", 0.2}, {"shuffle", false}}, "cpu", 1)};
  const auto message = [&](const char* key) {
    return message_of<ConfigError>([&] { compare_runs(runs, key, ""); });
  };
  EXPECT_THAT(message(""), HasSubstr("--by: lr, shuffle"));
  EXPECT_THAT(message("shufle"), HasSubstr("Did you mean \"shuffle\"?"));
  runs.pop_back();
  EXPECT_THAT(message(""), HasSubstr("nothing to compare"));
}

}  // namespace sweep::pairs_test
