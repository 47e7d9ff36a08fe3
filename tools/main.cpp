// The `sweep` program: runs the command line, and turns errors into messages and exit codes.
#include <csignal>
#include <exception>
#include <iostream>
#include <new>
#include <string_view>

#include "core/base/error.h"
#include "core/base/out_of_memory.h"
#include "runmanager/sweep/worker.h"
#include "tools/commands.h"
#include "tools/exit_code.h"
#include "tools/worker_program.h"

int main(int argc, char** argv) {
  using namespace sweep;
  // Writing beyond the limit on file sizes then is an error, like a full disk, and does not kill the program.
  std::signal(SIGXFSZ, SIG_IGN);
  if (argc > 1 && argv[1] == std::string_view(kWorkerWord)) return worker_main(argc, argv);
  constexpr const char* kOutOfMemory = "sweep: not enough memory\n";
  exit_when_out_of_memory(kOutOfMemory, kExitFailed);
  try {
    const int code = run_command_line({argv + 1, argv + argc}, all_commands());
    std::cout.flush();
    if (!std::cout) throw IoError("standard output cannot be written (is the disk full?)");
    return code;
  } catch (const std::bad_alloc&) {
    std::cerr << kOutOfMemory;
    return kExitFailed;
  } catch (const std::exception& error) {
    std::cerr << "sweep: " << error.what() << '\n';
    return exit_code(error);
  }
}
