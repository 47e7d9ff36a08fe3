// The first file of a new user, and the page that tells about all commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/file.h"
#include "tests/support/fashion_mnist.h"
#include "tests/support/program.h"
#include "tests/support/temporary_directory.h"
#include "tools/commands.h"
#include "tools/exit_code.h"

namespace sweep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Init, WritesASweepThatTrainsAndReplacesNothing) {
  SKIP_WITHOUT_FASHION_MNIST();
  const test::TemporaryDirectory directory;
  ASSERT_EQ(run_program({"init", "my \"first\".json"}, directory.path()).code, 0);
  const Finished trained = run_program({"my \"first\".json", "lr=0.01", "epochs=1", "dataset.limit=300",
                                        "dataset.validation=50", "name=first"},
                                       directory.path());
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("completed"));
  for (const char* taken : {"my \"first\".json", "my \"first\"-network.json"}) {
    const std::string content = read_file(directory.path() / taken);
    const Finished again = run_program({"init", "my \"first\".json"}, directory.path());
    EXPECT_EQ(again.code, 2);
    EXPECT_THAT(again.err, HasSubstr(std::string(taken) + ": is there already and is not replaced"));
    EXPECT_EQ(read_file(directory.path() / taken), content);
    std::filesystem::remove(directory.path() / taken);  // The other one alone is in the way, too.
  }
  EXPECT_THAT(run_program({"init", "sweep.txt"}, directory.path()).err,
              HasSubstr("want a name that ends in .json"));
}

}  // namespace
}  // namespace sweep::testing
