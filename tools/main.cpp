// The `sweep` program: reads the command line, calls the library, maps errors to exit codes.
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

int main(int argc, char** argv) {
  using namespace sweep;
  // A file that may not grow is an error like a full disk, not an end without a word.
  std::signal(SIGXFSZ, SIG_IGN);
  // Not for people, so not among the commands.
  if (argc > 1 && argv[1] == std::string_view("worker")) return worker_main(argc, argv);
  constexpr const char* kOutOfMemory = "sweep: not enough memory\n";
  exit_when_out_of_memory(kOutOfMemory, kExitFailed);
  try {
    const Commands commands{.run = run_command,
                            .plan = plan_command,
                            .show = show_command,
                            .devices = devices_command,
                            .schema = schema_command,
                            .fsck = fsck_command,
                            .export_logdir = export_command,
                            .verify = verify_command};
    const int code = run_command_line({argv + 1, argv + argc}, commands);
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
