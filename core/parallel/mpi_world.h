// What the module sweep_mpi.so has. Only it is linked with MPI, so the program starts without MPI installed
// and opens no library that it does not need.
#pragma once

#include "core/parallel/communicator.h"

namespace sweep {

/// See MpiSession, whose functions these are.
class MpiWorld {
 public:
  MpiWorld() = default;
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;
  virtual ~MpiWorld() = default;

  virtual Communicator& world() = 0;
  virtual int ranks_on_these_cores() const = 0;
};

/// Starts MPI; the caller owns the result. Throws ConfigError if MPI cannot start. The module has it under
/// the name kMakeMpiWorld.
using MakeMpiWorld = MpiWorld* (*)(double deadline);
inline constexpr const char* kMakeMpiWorld = "sweep_make_mpi_world";

}  // namespace sweep
