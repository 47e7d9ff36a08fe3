#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/parallel/mpi_session.h"

namespace sweep {
namespace {

int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  int number = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

bool is_started_by_mpi() {
  if (number_of("OMPI_COMM_WORLD_SIZE") > 1) return true;
  // srun sets it; without --mpi=pmix its tasks do not know each other.
  return std::getenv("PMIX_RANK") != nullptr && number_of("SLURM_STEP_NUM_TASKS") > 1;
}

std::optional<std::string> unknown_ranks_reason() {
  // MPICH, Intel MPI, and srun without PMIx set these; but somebody at a terminal of srun --pty is alone
  // there.
  const int tasks = ::isatty(STDIN_FILENO) == 0 ? number_of("SLURM_STEP_NUM_TASKS") : 1;
  const int count = std::max(number_of("PMI_SIZE"), tasks);
  if (is_started_by_mpi() || count <= 1) return std::nullopt;
  return std::to_string(count) +
         " processes were started that do not know each other, and each would train all runs: want Open "
         "MPI's mpirun or srun --mpi=pmix, or --join to share the runs; with PMI_SIZE=1 "
         "SLURM_STEP_NUM_TASKS=1 in "
         "its environment a process trains alone";
}

}  // namespace sweep
