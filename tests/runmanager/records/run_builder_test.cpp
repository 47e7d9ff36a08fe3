#include "runmanager/records/run_builder.h"

#include "tests/support/test.h"

namespace sweep::run_builder_test {

// Python: [dict(zip(p, v)) for v in itertools.product(*p.values())] with
// p = {"lr": [.01, .001], "batch_size": [100, 1000], "device": ["cuda", "cpu"]}
TEST(RunBuilder, OrdersRunsAsItertoolsProductDoes) {
  std::vector<std::string> names;
  for (const sweep::Run& run : RunBuilder::get_runs(
           {{"lr", {0.01, 0.001}}, {"batch_size", {100, 1000}}, {"device", {"cuda", "cpu"}}})) {
    names.push_back(run.name);
  }
  EXPECT_THAT(names,
              ElementsAre("lr=0.01,batch_size=100,device=cuda", "lr=0.01,batch_size=100,device=cpu",
                          "lr=0.01,batch_size=1000,device=cuda", "lr=0.01,batch_size=1000,device=cpu",
                          "lr=0.001,batch_size=100,device=cuda", "lr=0.001,batch_size=100,device=cpu",
                          "lr=0.001,batch_size=1000,device=cuda", "lr=0.001,batch_size=1000,device=cpu"));
}

TEST(RunBuilder, KeepsTheTypesOfValues) {
  const sweep::Run run =
      RunBuilder::get_runs({{"lr", {0.5}}, {"n", {3}}, {"shuffle", {true}}, {"device", {"cuda"}}}).at(0);
  EXPECT_EQ(run.get<double>("lr"), 0.5);
  EXPECT_EQ(run.get<std::int64_t>("n"), 3);
  EXPECT_EQ(run.get<double>("n"), 3.0);
  EXPECT_EQ(run.get<bool>("shuffle"), true);
  EXPECT_EQ(run.get<std::string>("device"), "cuda");
  EXPECT_EQ(run.device, "cuda");
  EXPECT_THROW(run.get<bool>("n"), ConfigError);
  EXPECT_THROW(run.get<std::int64_t>("lr"), ConfigError);
}

TEST(RunBuilder, GivesOneRunWithoutAxes) {
  const auto runs = RunBuilder::get_runs({});
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_TRUE(runs[0].params.empty());
  EXPECT_FALSE(runs[0].name.empty());
}

TEST(RunBuilder, RefusesAnAxisWithoutValuesOrTwice) {
  EXPECT_THROW(RunBuilder::get_runs({{"lr", {}}}), ConfigError);
  EXPECT_THROW(RunBuilder::get_runs({{"lr", {1}}, {"lr", {2}}}), ConfigError);
}

TEST(RunBuilder, NamesRunsWithRepeatedValuesApart) {
  const auto runs = RunBuilder::get_runs({{"lr", {0.5, 0.5}}});
  EXPECT_NE(runs[0].name, runs[1].name);
}

TEST(Run, SaysWhichKeysThereAre) {
  const sweep::Run run = RunBuilder::get_runs({{"lr", {0.5}}, {"n", {3}}}).at(0);
  EXPECT_THAT(test::message_of<ConfigError>([&] { run.at("rate"); }),
              AllOf(HasSubstr("rate"), HasSubstr("lr, n")));
}

}  // namespace sweep::run_builder_test
