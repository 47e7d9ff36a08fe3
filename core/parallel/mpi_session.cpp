#include "core/parallel/mpi_session.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>
#include <variant>

#include "core/base/error.h"
#include "core/parallel/mpi_world.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// What opens MPI, or why there is none.
using Module = std::variant<MakeMpiWorld, std::string>;

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
  void* make = module != nullptr ? ::dlsym(module, kMakeMpiWorld) : nullptr;
  if (make != nullptr) return reinterpret_cast<MakeMpiWorld>(make);
  const char* reason = ::dlerror();
  return std::string("MPI cannot be used: ") + (reason != nullptr ? reason : file.c_str()) +
         "; install openmpi-bin, or start sweep without mpirun";
#endif
}

const Module& mpi_module() {
  static const Module module = open_module();
  return module;
}

}  // namespace

std::optional<std::string> mpi_missing_reason() {
  const auto* reason = std::get_if<std::string>(&mpi_module());
  return reason != nullptr ? std::optional(*reason) : std::nullopt;
}

MpiSession::MpiSession(double deadline) {
  if (const auto reason = mpi_missing_reason()) throw ConfigError(*reason);
  world_.reset(std::get<MakeMpiWorld>(mpi_module())(deadline));
}
MpiSession::~MpiSession() = default;
Communicator& MpiSession::world() { return world_->world(); }
int MpiSession::ranks_on_these_cores() const { return world_->ranks_on_these_cores(); }

}  // namespace sweep
