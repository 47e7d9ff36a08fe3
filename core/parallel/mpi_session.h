// A group of ranks that are processes, started together by mpirun, or by srun with --mpi=pmix.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/parallel/communicator.h"

namespace sweep {

/// Whether an MPI launcher has started this process with others, by what it leaves in the environment.
bool is_started_by_mpi();

/// Why this process cannot train together with the others that were started with it, if it was: nothing if it
/// is alone, or is_started_by_mpi().
std::optional<std::string> unknown_ranks_reason();

/// Why this program cannot take part, or nothing if it can.
std::optional<std::string> mpi_missing_reason();

/// MPI, from construction to destruction; at most once per process. For the thread that makes it. The module
/// sweep_mpi.so implements it: only that is linked with MPI, so the program starts without MPI installed and
/// opens no library that it does not need.
///
/// Its group does not throw when a rank is lost: it says which one on stderr and ends all processes with exit
/// code 1, since MPI cannot go on. So does Communicator::abort().
class MpiSession {
 public:
  MpiSession() = default;
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  virtual ~MpiSession() = default;

  virtual Communicator& world() = 0;
  /// Ranks on this machine, this one included, that may run on the same cores as this one.
  virtual int ranks_on_these_cores() const = 0;
};

/// Starts MPI. `deadline`: of the group, in seconds. Throws ConfigError with mpi_missing_reason(), or if MPI
/// cannot start.
std::unique_ptr<MpiSession> start_mpi_session(double deadline = kCommunicatorDeadline);

/// What the module does for it, under the name kMakeMpiSession; the caller owns the result.
using MakeMpiSession = MpiSession* (*)(double deadline);
inline constexpr const char* kMakeMpiSession = "sweep_make_mpi_session";

}  // namespace sweep
