// A group of ranks that are processes, started together by mpirun, or by srun with --mpi=pmix.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/parallel/communicator.h"
#include "core/parallel/deadline.h"

namespace sweep {

class MpiWorld;

/// Whether an MPI launcher has started this process with others, by what it leaves in the environment.
bool is_started_by_mpi();

/// Why this process cannot train together with the others that were started with it, if it was: nothing if it
/// is alone, or is_started_by_mpi().
std::optional<std::string> unknown_ranks_reason();

/// Why this program cannot take part, or nothing if it can.
std::optional<std::string> mpi_missing_reason();

/// MPI, from construction to destruction; at most once per process. For the thread that constructs it.
///
/// Its group does not throw when a rank is lost: it says which one on stderr and ends all processes with exit
/// code 1, since MPI cannot go on. So does Communicator::abort().
class MpiSession {
 public:
  /// `deadline`: of the group, in seconds. Throws ConfigError with mpi_missing_reason(), or if MPI cannot
  /// start.
  explicit MpiSession(double deadline = kCommunicatorDeadline);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  Communicator& world();
  /// Ranks on this machine, this one included, that may run on the same cores as this one.
  int ranks_on_these_cores() const;

 private:
  std::unique_ptr<MpiWorld> world_;
};

}  // namespace sweep
