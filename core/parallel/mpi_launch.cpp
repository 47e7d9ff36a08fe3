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

}  // namespace sweep
