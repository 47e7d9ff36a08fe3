#include "core/base/suggest.h"

#include "tests/support/test.h"

namespace sweep::suggest_test {

const std::vector<std::string> kNames = {"batch_size", "num_workers", "shuffle", "device", "lr"};

TEST(NearestName, FindsWhatATypingMistakeMeant) {
  EXPECT_EQ(nearest_name("batchsize", kNames), "batch_size");
  EXPECT_EQ(nearest_name("suffle", kNames), "shuffle");
  EXPECT_EQ(nearest_name("DEVICE", kNames), "device");
  EXPECT_EQ(nearest_name("num_wrokers", kNames), "num_workers");
  EXPECT_EQ(nearest_name("rl", kNames), "lr");
}

TEST(NearestName, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest_name("temperature", kNames), "");
  EXPECT_EQ(nearest_name("", kNames), "");
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'a'), kNames), "");
}

TEST(DidYouMean, EndsASentenceOrBeginsOne) {
  EXPECT_EQ(did_you_mean("lr"), ", did you mean \"lr\"?");
  EXPECT_EQ(did_you_mean("lr", ". Did"), ". Did you mean \"lr\"?");
  EXPECT_EQ(did_you_mean(""), "");
}

}  // namespace sweep::suggest_test
