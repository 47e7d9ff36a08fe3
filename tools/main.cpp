// The `sweep` program: runs the command line, and turns errors into messages and exit codes.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/out_of_memory.h"
#include "core/base/printable.h"
#include "core/base/threads.h"
#include "core/parallel/mpi_session.h"
#include "core/parallel/replicated_engine.h"
#include "runmanager/records/provenance.h"
#include "runmanager/sweep/worker.h"
#include "runmanager/training/stop_signals.h"
#include "tools/commands.h"
#include "tools/commands/run_options.h"

namespace {

// A file that is opened while one of the descriptors 0 to 2 is closed would get its number, and be read or
// written as if it were a standard stream.
void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    // open() returns the lowest free number, which is `fd`, since the ones below it are open. It is opened
    // for reading only, so that writing fails and lost results are reported.
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY) < 0) return;
  }
}

// MPI, if its launcher has started this process with others. Rank 0 decides when they end, even if a signal
// was sent to all: the others ignore it, and none ends a process that does not know its rank yet.
std::unique_ptr<sweep::MpiSession> start_mpi() {
  if (!sweep::is_started_by_mpi()) return nullptr;
  const sweep::BlockSignals blocked;
  auto session = sweep::start_mpi_session();
  if (session->world().rank() > 0) {
    for (const int signal : sweep::kStopSignals) std::signal(signal, SIG_IGN);
  }
  return session;
}

// The command line, and at its end that of the other ranks, with the same exit code.
int run_as_told(const std::vector<std::string>& arguments, sweep::MpiSession* session,
                const std::string& program) {
  using namespace sweep;
  if (session == nullptr) return run_command_line(arguments, all_commands(), program);
  int code = kExitFailed;
  try {
    code = run_command_line(arguments, all_commands(session), program);
  } catch (const std::exception& error) {
    end_replicas(session->world(), exit_code(error));
    throw;
  }
  end_replicas(session->world(), code);
  return code;
}

// Whether standard output is a pipe that nobody reads any more, as that to `head` soon is.
bool reader_is_gone() {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace sweep;
  open_standard_streams();
  // Writing beyond the limit on file sizes, or to a program that has ended, then is an error like a full
  // disk, and does not kill the program. A reader that goes away, such as head, must not end the training.
  for (const int signal : {SIGXFSZ, SIGPIPE}) std::signal(signal, SIG_IGN);
  if (argc > 1 && argv[1] == std::string_view(kWorkerWord)) return worker_main(argc, argv);
  constexpr const char* kOutOfMemory = "sweep: not enough memory\n";
  exit_when_out_of_memory(kOutOfMemory, kExitFailed);
  try {
    const std::unique_ptr<MpiSession> session = start_mpi();
    if (session && session->world().rank() > 0) return serve_replicas(session->world());
    const int code = run_as_told({argv + 1, argv + argc}, session.get(),
                                 sweep::typed_program(argc > 0 ? argv[0] : "sweep"));
    std::cout.flush();
    if (std::cout) return code;
    if (reader_is_gone()) {
      std::signal(SIGPIPE, SIG_DFL);
      std::raise(SIGPIPE);
    }
    std::cerr
        << "sweep: standard output cannot be written (is the disk full, or was it closed?): what was to be "
           "shown there is lost\n";
    return code == 0 ? kExitUnwritable : code;
  } catch (const std::bad_alloc&) {
    std::cerr << kOutOfMemory;
    return kExitFailed;
  } catch (const std::exception& error) {
    std::cerr << "sweep: " << printable(message_of(error)) << '\n';
    return exit_code(error);
  }
}
