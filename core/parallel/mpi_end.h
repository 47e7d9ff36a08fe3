// How a group of MPI ends when a rank is lost. Not part of the installed interface.
#pragma once

#include <mpi.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace sweep {

/// Says that `rank` is lost, and why, and ends all processes. May be called by any thread.
[[noreturn]] inline void end_all_ranks(MPI_Comm comm, int rank, const std::string& reason) noexcept {
  std::cerr << "sweep: rank " + std::to_string(rank) + ": " + reason +
                   "; all ranks end, and the same command resumes the sweep\n"
            << std::flush;
  MPI_Abort(comm, 1);
  std::_Exit(1);
}

}  // namespace sweep
