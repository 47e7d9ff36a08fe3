#include "core/parallel/mpi_session.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <variant>

#include "core/base/error.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// What opens MPI, or why there is none.
using Module = std::variant<MakeMpiSession, std::string>;

Module open_module() {
#if defined(SWEEP_MPI_REASON)
  return "this sweep was built without MPI: " SWEEP_MPI_REASON
         "; install libopenmpi-dev and build it again, or start it without mpirun";
#else
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path file = program.parent_path().parent_path() / "lib/sweep_mpi.so";
  // Global, because Open MPI's own modules look for its symbols. It is never closed: MPI cannot start again.
  void* module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* make = module != nullptr ? ::dlsym(module, kMakeMpiSession) : nullptr;
  if (make != nullptr) return reinterpret_cast<MakeMpiSession>(make);
  const char* reason = ::dlerror();
  return std::string("MPI cannot be used: ") + (reason != nullptr ? reason : file.c_str()) +
         "; install openmpi-bin, or start sweep without mpirun";
#endif
}

const Module& mpi_module() {
  static const Module module = open_module();
  return module;
}

// Of an environment variable; 0 if it is not set.
int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  int number = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

std::optional<std::string> mpi_missing_reason() {
  const auto* reason = std::get_if<std::string>(&mpi_module());
  return reason != nullptr ? std::optional(*reason) : std::nullopt;
}

std::unique_ptr<MpiSession> start_mpi_session(double deadline) {
  if (const auto reason = mpi_missing_reason()) throw ConfigError(*reason);
  return std::unique_ptr<MpiSession>(std::get<MakeMpiSession>(mpi_module())(deadline));
}

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
         "SLURM_STEP_NUM_TASKS=1 in its environment a process trains alone";
}

}  // namespace sweep
