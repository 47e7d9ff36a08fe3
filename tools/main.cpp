// The `sweep` program: reads the command line, calls the library, maps errors to exit codes.
#include <exception>
#include <iostream>
#include <new>

#include "core/base/error.h"
#include "tools/commands.h"
#include "tools/exit_code.h"

int main(int argc, char** argv) {
  using namespace sweep;
  try {
    const Commands commands{.run = run_command,
                            .plan = plan_command,
                            .show = show_command,
                            .devices = devices_command,
                            .schema = schema_command,
                            .fsck = fsck_command,
                            .export_logdir = export_command};
    const int code = run_command_line({argv + 1, argv + argc}, commands);
    std::cout.flush();
    if (!std::cout) throw IoError("standard output cannot be written (is the disk full?)");
    return code;
  } catch (const std::bad_alloc&) {
    std::cerr << "sweep: not enough memory\n";
    return kExitFailed;
  } catch (const std::exception& error) {
    std::cerr << "sweep: " << error.what() << '\n';
    return exit_code(error);
  }
}
