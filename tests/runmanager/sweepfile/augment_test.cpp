// "dataset.augment": what is refused, and how a run's settings have it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sweep_folder.h"

namespace sweep::testing {
namespace {

using ::testing::HasSubstr;

TEST(AugmentKey, MistakesAreReported) {
  const SweepFolder folder;
  const auto error = [&](const std::string& dataset) {
    return folder.error("{\"network\": \"net.json\", \"dataset\": " + dataset + "}");
  };
  EXPECT_THAT(error(R"({"name": "mnist", "augment": "horizontal_flip"})"),
              HasSubstr("dataset.augment: got \"horizontal_flip\", want a list such as [{\"random_crop\""));
  EXPECT_THAT(
      error(R"({"name": "mnist", "augment": ["horizontal_flop"]})"),
      HasSubstr("dataset.augment.0: got \"horizontal_flop\", want {\"random_crop\": {\"padding\": N}}, "
                "\"horizontal_flip\" or {\"cutout\": {\"size\": N}}, did you mean \"horizontal_flip\"?"));
  EXPECT_THAT(error(R"({"name": "mnist", "augment": ["cutout"]})"),
              HasSubstr("dataset.augment.0: got \"cutout\", want {\"cutout\": {\"size\": N}}"));
  EXPECT_THAT(error(R"({"name": "mnist", "augment": [{"cutout": {"sise": 3}}]})"),
              HasSubstr("got an object, want {\"cutout\": {\"size\": N}}"));
  EXPECT_THAT(error(R"({"name": "mnist", "augment": [{"cutout": {"size": 0}}]})"),
              HasSubstr("dataset.augment.0.cutout.size: got 0, want an integer from 1 to 8192"));
  EXPECT_THAT(error(R"({"name": "mnist", "augment": [{"random_crop": {"padding": 29}}]})"),
              HasSubstr("dataset.augment: got 29 pixels, want at most 28, the side of the images"));
}

TEST(AugmentKey, IsInTheSettingsOnlyIfItChangesSomething) {
  const SweepFolder folder;
  const auto settings = [&](const std::string& augment) {
    const Sweep sweep =
        folder.load(R"({"network": "net.json", "dataset": {"name": "mnist", "augment": )" + augment + "}}");
    return sweep.runs.at(0).resolved.at("dataset");
  };
  // Runs of earlier versions stay the same runs.
  EXPECT_FALSE(settings("[]").contains("augment"));
  EXPECT_EQ(settings("[]").at("placement"), "auto");
  EXPECT_EQ(settings(R"([{"horizontal_flip": {}}])"), settings(R"(["horizontal_flip"])"));
}

}  // namespace
}  // namespace sweep::testing
