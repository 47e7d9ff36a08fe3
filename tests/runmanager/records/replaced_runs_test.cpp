#include "runmanager/records/earlier_starts/replaced_runs.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/event_files.h"

namespace {

// Called with the path of each file and directory that this program syncs.
std::function<void(const std::string&)> on_sync;

}  // namespace

// In place of the C library's.
extern "C" int fsync(int fd) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  if (on_sync && ::readlink(link.c_str(), path.data(), path.size() - 1) > 0) on_sync(path.data());
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace sweep::replaced_runs_test {

TEST(MakeRoom, RemovesAReplacedRunOnlyWhenTheNewOneIsOnTheDisk) {
  const test::TemporaryDirectory directory;
  const fs::path sweep = fs::canonical(directory.path());
  for (const char* run : {"lr=0.1", "lr=0.1.replaced-1"}) {
    fs::create_directories(sweep / run);
    for (const char* file : {"run.json", "checkpoint.safetensors", "events.out.tfevents.1.host.2.000000"})
      tbwriter::spill(sweep / run / file, "content");
  }
  tbwriter::spill(sweep / "lr=0.1/run.json.17-00000001-2.tmp", "half");
  std::vector<RunConfig> runs(1);
  runs[0].name = "lr=0.1";
  std::vector<ExistingRun> existing(1);
  existing[0].fate = RunFate::kKept;
  existing[0].directory = "lr=0.1";
  std::vector<std::string> synced;
  on_sync = [&](const std::string& path) {
    EXPECT_TRUE(fs::exists(sweep / "lr=0.1.replaced-1/checkpoint.safetensors")) << path;
    synced.push_back(path);
  };
  make_room(sweep, runs, existing);
  on_sync = nullptr;
  for (const char* file : {"run.json", "checkpoint.safetensors", "events.out.tfevents.1.host.2.000000"})
    EXPECT_THAT(synced, Contains((sweep / "lr=0.1" / file).string()));
  EXPECT_THAT(synced, Contains((sweep / "lr=0.1").string()));
  EXPECT_THAT(synced, Contains(sweep.string()));
  EXPECT_FALSE(fs::exists(sweep / "lr=0.1.replaced-1"));
  EXPECT_FALSE(fs::exists(sweep / "lr=0.1/run.json.17-00000001-2.tmp"));
}

}  // namespace sweep::replaced_runs_test
