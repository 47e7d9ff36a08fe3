// Which GPUs programs see, and which of them each run has.
#include "runmanager/kinds/gpu_pool.h"

#include "tests/support/test.h"

namespace sweep::gpu_pool_test {

using ::testing::Optional;

TEST(VisibleGpus, AreThoseOfTheVariableUpToTheFirstThatIsNone) {
  EXPECT_THAT(visible_gpus("3,1"), ElementsAre("3", "1"));
  EXPECT_THAT(visible_gpus("GPU-8f, MIG-1/2"), ElementsAre("GPU-8f", "MIG-1/2"));
  EXPECT_THAT(visible_gpus("0,-1,2"), ElementsAre("0"));
  EXPECT_THAT(visible_gpus("2,2"), ElementsAre("2"));
  for (const char* none : {"", "-1", "NoDevFiles", ","}) EXPECT_THAT(visible_gpus(none), IsEmpty()) << none;
}

TEST(VisibleGpus, AreCountedByTheDriversFilesWithoutTheVariable) {
  const test::TemporaryDirectory root;
  EXPECT_THAT(visible_gpus(nullptr, root.path()), IsEmpty());
  fs::create_directories(root.path() / "dev");
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"})
    std::ofstream(root.path() / "dev" / name) << "";
  EXPECT_THAT(visible_gpus(nullptr, root.path()), ElementsAre("0", "1"));
  for (const char* name : {"0000:01:00.0", "0000:41:00.0", "0000:81:00.0"})
    fs::create_directories(root.path() / "proc/driver/nvidia/gpus" / name);
  EXPECT_THAT(visible_gpus(nullptr, root.path()), ElementsAre("0", "1", "2"));
}

TEST(GpuPool, GivesNoGpuToTwoRunsUnlessAsked) {
  GpuPool pool({"a", "b", "c"}, {.per_run = 2});
  EXPECT_THAT(pool.max_runs(), Optional(1U));
  ASSERT_TRUE(pool.has_free());
  const auto first = pool.take();
  EXPECT_THAT(first, ElementsAre("a", "b"));
  EXPECT_FALSE(pool.has_free());
  pool.give_back(first);
  ASSERT_TRUE(pool.has_free());
  EXPECT_THAT(pool.take(), ElementsAre("a", "b"));
}

TEST(GpuPool, FillsAllGpusBeforeRunsShareOne) {
  GpuPool pool({"a", "b"}, {.per_run = 1, .runs_per_gpu = 2});
  EXPECT_THAT(pool.max_runs(), Optional(4U));
  for (const char* gpu : {"a", "b", "a", "b"}) {
    ASSERT_TRUE(pool.has_free());
    EXPECT_THAT(pool.take(), ElementsAre(gpu));
  }
  EXPECT_FALSE(pool.has_free());
}

TEST(GpuPool, SaysWhatIsMissing) {
  EXPECT_EQ(GpuPool({"a", "b"}, {.per_run = 2}).problem(), std::nullopt);
  EXPECT_EQ(GpuPool().problem(), std::nullopt);
  EXPECT_THAT(GpuPool({"a"}, {.per_run = 2}).problem(),
              Optional(HasSubstr("2, but programs see only 1 here (a)")));
  EXPECT_THAT(GpuPool({}, {.per_run = 1}).problem(), Optional(HasSubstr("programs see none here")));
}

}  // namespace sweep::gpu_pool_test
