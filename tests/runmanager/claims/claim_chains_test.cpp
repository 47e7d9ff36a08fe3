// Claims of threads, of processes that are killed or stopped, and of what a power cut leaves.
#include "runmanager/claims/claim_chains.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/lines.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_directory.h"

// In the place of the C library's: a file can have only so many names, as on ext4.
constexpr nlink_t kAnyNumber = std::numeric_limits<nlink_t>::max();
static nlink_t most_links = kAnyNumber;
extern "C" int link(const char* from, const char* to) noexcept {
  struct stat info {};
  if (::stat(from, &info) == 0 && info.st_nlink >= most_links) {
    errno = EMLINK;
    return -1;
  }
  return ::linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

namespace sweep {
namespace {

namespace fs = std::filesystem;
using test::Environment;
using test::TemporaryDirectory;

constexpr std::chrono::seconds kDeadline(20);

// What a process has of its own.
struct Worker {
  explicit Worker(const fs::path& directory)
      : member(directory / "members", this_process()),
        watch(directory / "members", member.identity()),
        chains(directory / "things", member) {
    chains.refresh();
  }
  Member member;
  MemberWatch watch;
  ClaimChains chains;
};

bool becomes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// A process that runs `body`, whose result is its exit code. The destructor kills it.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : pid_(::fork()) {
    if (pid_ == 0) ::_exit(body());
  }
  ~Child() {
    if (pid_ > 0) end(SIGKILL);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void signal(int number) const { ::kill(pid_, number); }
  int end(int signal = 0) {
    if (signal != 0) ::kill(pid_, signal);
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(ClaimChains, GiveEachThingToOneOfManyThreads) {
  constexpr int kThreads = 16, kThings = 200;
  const TemporaryDirectory directory;
  std::array<std::atomic<int>, kThings> owners{};
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Worker worker(directory.path());
      start.arrive_and_wait();
      for (int i = 0; i < kThings; ++i) {
        if (worker.chains.claim(fmt::format("thing {}", i), worker.watch))
          ++owners[static_cast<std::size_t>(i)];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& count : owners) EXPECT_EQ(count, 1);
}

TEST(ClaimChains, GiveEachThingToOneOfManyProcesses) {
  constexpr int kProcesses = 6, kThings = 300;
  const TemporaryDirectory directory;
  std::vector<std::unique_ptr<Child>> children;
  for (int p = 0; p < kProcesses; ++p) {
    children.push_back(std::make_unique<Child>([&directory, p] {
      Worker worker(directory.path());
      std::string mine;
      for (int i = 0; i < kThings; ++i) {
        const std::string name = std::to_string(i);
        const auto claim = worker.chains.claim(name, worker.watch);
        if (claim && worker.chains.end(*claim, "done")) mine += name + "\n";
      }
      write_file_atomically(directory.path() / fmt::format("mine{}", p), mine, Survives::kKill);
      return 0;
    }));
  }
  for (auto& child : children) EXPECT_EQ(child->end(), 0);
  std::multiset<std::string> all;
  for (int p = 0; p < kProcesses; ++p) {
    const std::string mine = read_file(directory.path() / fmt::format("mine{}", p));
    for (const std::string_view name : lines_of(mine)) all.emplace(name);
  }
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kThings));
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
}

TEST(ClaimChains, TakeAThingFromAKilledProcessAtOnce) {
  const TemporaryDirectory directory;
  Child child([&directory] {
    Worker worker(directory.path());
    if (!worker.chains.claim("thing", worker.watch)) return 1;
    for (;;) ::pause();
  });
  Worker worker(directory.path());
  ASSERT_TRUE(becomes_true([&] {
    worker.chains.refresh();
    return worker.chains.state("thing") == ChainState::kOwned;
  }));
  EXPECT_FALSE(worker.chains.claim("thing", worker.watch));
  EXPECT_EQ(worker.chains.owner("thing")->pid, child.pid());
  child.end(SIGKILL);
  const auto claim = worker.chains.claim("thing", worker.watch);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->number, 2);
  EXPECT_TRUE(owns(*claim));
}

TEST(ClaimChains, TakeAThingFromAStoppedProcessAfterTheLeaseAndLetItSeeThat) {
  const Environment lease_seconds("SWEEP_LEASE_SECONDS", "0.4");
  const TemporaryDirectory directory;
  Child child([&directory] {
    Worker worker(directory.path());
    const auto claim = worker.chains.claim("thing", worker.watch);
    if (!claim || !owns(*claim)) return 1;
    write_file_atomically(directory.path() / "claimed", "", Survives::kKill);
    if (!becomes_true([&] { return !owns(*claim); })) return 2;
    // The end of one that was taken over does not count.
    return worker.chains.end(*claim, "of the first") ? 3 : 0;
  });
  Worker worker(directory.path());
  ASSERT_TRUE(becomes_true([&] { return fs::exists(directory.path() / "claimed"); }));
  worker.chains.refresh();
  child.signal(SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  std::optional<Claim> claim;
  ASSERT_TRUE(becomes_true([&] { return (claim = worker.chains.claim("thing", worker.watch)).has_value(); }));
  EXPECT_GT(std::chrono::steady_clock::now() - begin, lease());
  child.signal(SIGCONT);
  EXPECT_EQ(child.end(), 0);
  EXPECT_TRUE(worker.chains.end(*claim, "of the second"));
  worker.chains.refresh();
  EXPECT_EQ(worker.chains.read_end("thing")->content, "of the second");
}

TEST(ClaimChains, KeepAThingWithAProcessThatLives) {
  const Environment lease_seconds("SWEEP_LEASE_SECONDS", "0.3");
  const TemporaryDirectory directory;
  Worker first(directory.path()), second(directory.path());
  const auto claim = first.chains.claim("thing", first.watch);
  ASSERT_TRUE(claim);
  second.chains.refresh();
  const auto end = std::chrono::steady_clock::now() + 4 * lease();
  while (std::chrono::steady_clock::now() < end) {
    ASSERT_FALSE(second.chains.claim("thing", second.watch));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(owns(*claim));
}

TEST(ClaimChains, LetOneOfTheOwnersEndAndAnothersClaimSucceed) {
  const TemporaryDirectory directory;
  for (int round = 0; round < 200; ++round) {
    const std::string name = std::to_string(round);
    Worker second(directory.path());
    auto first = std::make_unique<Worker>(directory.path());
    const auto claim = first->chains.claim(name, first->watch);
    ASSERT_TRUE(claim);
    second.chains.refresh();
    // To others it has ended; it goes on all the same.
    MemberWatch(directory.path() / "members", second.member.identity()).remove(first->member.identity());
    std::barrier start(2);
    bool ended = false;
    std::thread ends([&] {
      start.arrive_and_wait();
      ended = first->chains.end(*claim, "end");
    });
    start.arrive_and_wait();
    const auto taken = second.chains.claim(name, second.watch);
    ends.join();
    EXPECT_NE(ended, taken.has_value()) << round;
    EXPECT_TRUE(!taken || !owns(*claim));
  }
}

TEST(ClaimChains, AreFreeAgainOnceReleased) {
  const TemporaryDirectory directory;
  Worker first(directory.path()), second(directory.path());
  const auto claim = first.chains.claim("a.thing.3", first.watch);
  ASSERT_TRUE(claim);
  first.chains.release(*claim);
  second.chains.refresh();
  EXPECT_EQ(second.chains.state("a.thing.3"), ChainState::kFree);
  EXPECT_EQ(second.chains.claim("a.thing.3", second.watch)->number, 2);
}

TEST(ClaimChains, AreFreeAgainWhenTheOwnerHasEndedInOrder) {
  const TemporaryDirectory directory;
  auto first = std::make_unique<Worker>(directory.path());
  ASSERT_TRUE(first->chains.claim("thing", first->watch));
  first.reset();
  Worker second(directory.path());
  EXPECT_EQ(second.chains.claim("thing", second.watch)->number, 2);
}

TEST(ClaimChains, TellWhatHasEndedAndWhetherItIsSettled) {
  const TemporaryDirectory directory;
  Worker first(directory.path()), second(directory.path());
  const auto claim = first.chains.claim("thing", first.watch);
  ASSERT_TRUE(first.chains.end(*claim, "the\nend"));
  second.chains.refresh();
  EXPECT_FALSE(second.chains.claim("thing", second.watch));
  EXPECT_EQ(second.chains.state("thing"), ChainState::kEnded);
  EXPECT_TRUE(second.chains.is_unsettled("thing"));
  EXPECT_EQ(second.chains.read_end("thing")->content, "the\nend");
  EXPECT_EQ(second.chains.read_end("thing")->attempt, claim->attempt());
  first.chains.settle("thing");
  second.chains.refresh();
  EXPECT_FALSE(second.chains.is_unsettled("thing"));
  EXPECT_TRUE(second.chains.reopen("thing"));
  EXPECT_FALSE(first.chains.reopen("thing")) << "the number that it knows of is taken";
  EXPECT_EQ(second.chains.claim("thing", second.watch)->number, 4);
}

TEST(ClaimChains, TakeALinkWithoutContentForThatOfADeadOwner) {
  const TemporaryDirectory directory;
  Worker worker(directory.path());
  write_file_atomically(directory.path() / "things/owners/thing.1", "", Survives::kKill);
  worker.chains.refresh();
  EXPECT_EQ(worker.chains.claim("thing", worker.watch)->number, 2);
}

TEST(ClaimChains, MakeMoreClaimsThanAFileCanHaveNames) {
  const TemporaryDirectory directory;
  Worker first(directory.path()), second(directory.path());
  most_links = 5;
  std::vector<Claim> claims;
  for (int i = 0; i < 30; ++i) {
    const auto claim = first.chains.claim(std::to_string(i), first.watch);
    ASSERT_TRUE(claim) << i;
    claims.push_back(*claim);
  }
  EXPECT_FALSE(first.chains.claim("0", first.watch));
  second.chains.refresh();
  for (const Claim& claim : claims) {
    EXPECT_TRUE(owns(claim));
    EXPECT_FALSE(second.chains.claim(claim.name, second.watch));
    EXPECT_EQ(second.chains.owner(claim.name)->id, first.member.identity().id);
  }
  EXPECT_TRUE(first.chains.end(claims[3], "end"));
  second.chains.refresh();
  EXPECT_TRUE(second.chains.reopen("3"));
  most_links = kAnyNumber;
  EXPECT_EQ(second.watch.look_at_all().size(), 1u) << "a renewed token is no other process";
}

TEST(ClaimChains, LeaveNothingOfAProcessThatDiedWhileItRenewedItsToken) {
  const TemporaryDirectory directory;
  const fs::path members = directory.path() / "members";
  Worker worker(directory.path());
  auto dead = std::make_unique<Worker>(directory.path());
  const ProcessIdentity identity = dead->member.identity();
  directory.write("members/" + identity.id + ".new", "half of a tok");
  EXPECT_EQ(worker.watch.look_at_all().size(), 1u);
  worker.watch.remove(identity);
  dead.reset();
  EXPECT_EQ(std::distance(fs::directory_iterator(members), fs::directory_iterator()), 2) << "of `worker`";
}

TEST(ClaimChains, ClaimNothingForAProcessThatOthersTookForDead) {
  const Environment lease_seconds("SWEEP_LEASE_SECONDS", "0.1");
  const TemporaryDirectory directory;
  Worker first(directory.path()), second(directory.path());
  second.watch.remove(first.member.identity());
  ASSERT_TRUE(becomes_true([&] { return first.member.was_removed(); }));
  EXPECT_THROW(first.chains.claim("thing", first.watch), IoError);
}

}  // namespace
}  // namespace sweep
