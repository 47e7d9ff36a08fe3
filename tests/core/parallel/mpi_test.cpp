// Ranks that are processes: this test starts them with mpirun.
#include <sys/wait.h>

#include <regex>

#include "core/parallel/mpi_session.h"
#include "tests/support/test.h"

namespace sweep::mpi_test {

struct Ended {
  int code = -1;
  std::string output;  // stdout and stderr
};

// On one machine, as any user, with more ranks than cores, and without opening a port. Open MPI leaves memory
// behind when it ends, which LeakSanitizer would count as ours. When ranks end, mpirun continues those that
// are stopped, and would give them a second (sigkill_timeout) in which they miss the others in turn.
Ended run_ranks(int count, const std::string& task, const std::string& options = "",
                const std::string& program = SWEEP_MPI_RANK) {
  const std::string command =
      "ASAN_OPTIONS=detect_leaks=0 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader "
      "OMPI_MCA_btl_vader_single_copy_mechanism=none "
      "OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_odls_base_sigkill_timeout=0 "
      "timeout -k 1 100 mpirun --allow-run-as-root --oversubscribe --bind-to none " +
      options + " -n " + std::to_string(count) + " " + program + " " + task + " 2>&1";
  Ended ended;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> text{};
  for (std::size_t n = 0; pipe != nullptr && (n = std::fread(text.data(), 1, text.size(), pipe)) > 0;)
    ended.output.append(text.data(), n);
  const int status = pipe != nullptr ? ::pclose(pipe) : -1;
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  return ended;
}

// Those that are said to be lost.
std::set<int> named_ranks(const std::string& output, int seconds = 1) {
  const std::regex line("sweep: rank (\\d): has not answered for " + std::to_string(seconds) +
                        " s; all ranks end");
  std::set<int> named;
  for (std::sregex_iterator match(output.begin(), output.end(), line), end; match != end; ++match)
    named.insert(std::stoi((*match)[1]));
  return named;
}

class Mpi : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = mpi_missing_reason()) GTEST_SKIP() << *reason;
    if (std::system("command -v mpirun > /dev/null") != 0) GTEST_SKIP() << "there is no mpirun";
  }
};

TEST_F(Mpi, KeepsTheContractOfCommunicators) {
  for (const int count : {1, 2, 4}) {
    const Ended ended = run_ranks(count, "contract");
    EXPECT_EQ(ended.code, 0) << count << " ranks: " << ended.output;
  }
}

void expect_the_bits_of_one_process(const std::string& program) {
  for (const int count : {2, 3, 4}) {
    const Ended ended = run_ranks(count, "train", "", program);
    EXPECT_EQ(ended.code, 0) << count << " ranks: " << ended.output;
    EXPECT_NE(ended.output.find("norm-first: same bits"), std::string::npos) << ended.output;
  }
}

TEST_F(Mpi, TrainsWithTheBitsOfOneDevice) { expect_the_bits_of_one_process(SWEEP_MPI_RANK); }

#ifdef SWEEP_CUDA_MPI_RANK
TEST_F(Mpi, TrainsOnAGpuPerRankWithTheBitsOfTwoOfOneProcess) {
  expect_the_bits_of_one_process(SWEEP_CUDA_MPI_RANK);
}

// The others wait for it between the devices, where nobody knows who is late.
TEST_F(Mpi, NamesTheRankThatIsLostBetweenGpus) {
  for (const int lost : {0, 1, 2}) {
    const Ended ended =
        run_ranks(3, "train-killed " + std::to_string(lost), "--enable-recovery", SWEEP_CUDA_MPI_RANK);
    EXPECT_EQ(named_ranks(ended.output, 6), std::set{lost}) << ended.output;
    EXPECT_EQ(ended.output.find("NCCL"), std::string::npos) << ended.output;
  }
}
#endif

// The other runs of a sweep can be trained.
TEST_F(Mpi, GoesOnAfterAnEngineThatOneRankCannotMake) {
  const Ended ended = run_ranks(3, "make");
  EXPECT_EQ(ended.code, 0);
  // Without /sys, hwloc has something to say first.
  EXPECT_THAT(ended.output,
              EndsWith("rank 0: out of memory\nrank 1: out of memory\nrank 2: out of memory\nsame bits\n"));
}

TEST_F(Mpi, NamesTheRankThatIsLost) {
  for (const std::string task : {"exchange-stopped", "exchange-killed", "idle-stopped", "idle-killed"}) {
    for (const int lost : {0, 1}) {
      // Of a rank that is killed mpirun ends the others, and srun does not: with this, mpirun does not
      // either.
      const bool is_killed = task.ends_with("killed");
      const Ended ended =
          run_ranks(3, task + " " + std::to_string(lost), is_killed ? "--enable-recovery" : "");
      EXPECT_TRUE(is_killed || ended.code == 1) << task << ": " << ended.code;
      EXPECT_EQ(named_ranks(ended.output), std::set{lost}) << task << ": " << ended.output;
    }
  }
}

// Rank 1 waits for both others, of which rank 0 waits as well.
TEST_F(Mpi, DoesNotNameARankThatWaitsForTheLostOne) {
  for (int repeat = 0; repeat < 3; ++repeat) {  // it is late almost as soon
    const Ended ended = run_ranks(3, "scatter-stopped 2");
    EXPECT_EQ(ended.code, 1);
    EXPECT_EQ(named_ranks(ended.output), std::set{2}) << ended.output;
  }
}

TEST_F(Mpi, WaitsForRankZeroAsLongAsItIsThere) {
  const Ended ended = run_ranks(3, "busy");
  EXPECT_EQ(ended.code, 0) << ended.output;
}

}  // namespace sweep::mpi_test
