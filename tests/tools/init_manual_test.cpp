// The first file of a new user.

#include "tests/support/fashion_mnist.h"
#include "tests/support/program_folder.h"

#include "tests/support/test.h"

namespace sweep::testing::init_manual_test {

using Init = ProgramFolder;

TEST_F(Init, WritesASweepThatTrainsAndReplacesNothing) {
  SKIP_WITHOUT_FASHION_MNIST();
  run({"init", "my \"first\".json"});
  const Finished trained = run({"my \"first\".json", "lr=0.01", "epochs=1", "dataset.limit=300",
                                "dataset.validation=50", "name=first"});
  EXPECT_THAT(trained.out, HasSubstr("completed"));
  for (const char* taken : {"my \"first\".json", "my \"first\"-network.json"}) {
    const std::string before = content(taken);
    EXPECT_THAT(run({"init", "my \"first\".json"}, 2).err,
                HasSubstr(std::string(taken) + ": is there already and is not replaced"));
    EXPECT_EQ(content(taken), before);
    std::filesystem::remove(path(taken));  // The other one alone is also in the way.
  }
  EXPECT_THAT(run({"init", "sweep.txt"}, 2).err, HasSubstr("want a name that ends in .json"));
  EXPECT_THAT(run({"init", "none/s.json"}, 3).err, HasSubstr("none/s.json: there is no directory none"));
}

}  // namespace sweep::testing::init_manual_test
