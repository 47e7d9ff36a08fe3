// Names of runs: readable, safe as directories, never the same twice.
#include "runmanager/config/params.h"

#include "core/base/text.h"
#include "tests/support/reference_data.h"

namespace sweep::run_name_test {

std::string name_of(const std::string& value) { return run_name({{"k", ParamValue(value)}}); }

TEST(RunName, ListsKeysAndValuesInOrder) {
  EXPECT_EQ(run_name({{"lr", 0.01},
                      {"batch_size", std::int64_t{1000}},
                      {"shuffle", true},
                      {"device", std::string("cpu")}}),
            "lr=0.01,batch_size=1000,shuffle=true,device=cpu");
  EXPECT_EQ(run_name({{"lr", 1e-5}, {"optimizer.momentum", 0.9}}), "lr=1e-05,optimizer.momentum=0.9");
  EXPECT_EQ(run_name({}), "run");
}

// Rows of run_names.json: a value, and what names have of it.
TEST(RunName, EscapesWhatNoFileSystemMayGetAndHasAFewWordsForListsAndObjects) {
  for (const auto& row : test::reference_json("run_names.json"))
    EXPECT_EQ(name_of(row.at(0)), "k=" + row.at(1).get<std::string>());
}

TEST(RunNames, KeepListsWithTheSameWordsApart) {
  const auto names = run_names({{{"k", std::string(R"(["1"])")}}, {{"k", std::string("[1]")}}});
  EXPECT_THAT(names, ElementsAre(StartsWith("k=1~"), StartsWith("k=1~")));
  EXPECT_NE(names[0], names[1]);
}

TEST(RunName, CutsLongValuesAndKeepsThemApart) {
  const std::string a = name_of(std::string(300, 'x') + "a"), b = name_of(std::string(300, 'x') + "b");
  EXPECT_NE(a, b);
  EXPECT_LE(a.size(), 50u);
  EXPECT_THAT(a, StartsWith("k=xxxxxxxx"));
  EXPECT_THAT(a, HasSubstr("~"));
  EXPECT_EQ(name_of(std::string(48, 'x')), "k=" + std::string(48, 'x'));
}

TEST(RunName, NeverCutsInsideAnEscape) {
  for (int letters = 0; letters < 6; ++letters) {
    const std::string name =
        name_of(std::string(static_cast<std::size_t>(letters), 'x') + std::string(60, '/'));
    const std::string escapes = name.substr(2 + static_cast<std::size_t>(letters),
                                            name.find('~') - 2 - static_cast<std::size_t>(letters));
    EXPECT_EQ(escapes.size() % 3, 0u) << name;
  }
}

TEST(RunName, CutsLongNames) {
  Params params;
  for (int i = 0; i < 40; ++i) params.emplace_back("key" + std::to_string(i), 0.125);
  const std::string name = run_name(params);
  params.back().second = 0.25;
  EXPECT_EQ(name.size(), 200u);
  EXPECT_NE(run_name(params), name);
}

TEST(RunNames, LeaveOutKeysWithOneValue) {
  const auto run = [](double lr, const std::string& device, std::int64_t batch) {
    return Params{{"lr", lr}, {"batch_size", batch}, {"device", device}};
  };
  EXPECT_THAT(
      run_names({run(0.1, "cpu", 10), run(0.1, "cuda", 10), run(0.1, "cpu", 20)}),
      ElementsAre("batch_size=10,device=cpu", "batch_size=10,device=cuda", "batch_size=20,device=cpu"));
  EXPECT_THAT(run_names({run(0.1, "cpu", 10)}), ElementsAre("lr=0.1,batch_size=10,device=cpu"));
  EXPECT_THAT(
      run_names({run(0.1, "cpu", 10), run(0.1, "cpu", 10)}),
      ElementsAre(StartsWith("lr=0.1,batch_size=10,device=cpu~"), StartsWith("lr=0.1,batch_size=10,")));
}

TEST(RunNames, KeepKeysThatOnlySomeRunsHave) {
  const auto names = run_names({{{"optimizer", std::string("sgd")}, {"momentum", 0.9}, {"lr", 0.1}},
                                {{"optimizer", std::string("adam")}, {"lr", 0.1}}});
  EXPECT_THAT(names, ElementsAre("optimizer=sgd,momentum=0.9", "optimizer=adam"));
}

TEST(RunNames, AreDifferentWhereAFileSystemIgnoresCase) {
  const auto names =
      run_names({{{"k", std::string("Adam")}}, {{"k", std::string("adam")}}, {{"k", std::string("sgd")}}});
  EXPECT_THAT(names, ElementsAre(StartsWith("k=Adam~"), StartsWith("k=adam~"), "k=sgd"));
  std::set<std::string> lower;
  for (const std::string& name : names) EXPECT_TRUE(lower.insert(lower_case(name)).second) << name;
}

TEST(RunNames, DoNotDependOnTheOrderOfTheRuns) {
  const Params big = {{"k", std::string("A")}}, small = {{"k", std::string("a")}};
  const auto one = run_names({big, small}), other = run_names({small, big});
  EXPECT_EQ(one[0], other[1]);
  EXPECT_EQ(one[1], other[0]);
}

TEST(RunNames, ValuesThatPrintAlikeGetDifferentNames) {
  const auto names = run_names({{{"k", std::string("1")}}, {{"k", std::int64_t{1}}}, {{"k", 1.0}}});
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 3u);
}

}  // namespace sweep::run_name_test
