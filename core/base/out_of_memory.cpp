#include "core/base/out_of_memory.h"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <new>

namespace sweep {
namespace {

const char* exit_message = "";
int exit_code = 1;
std::terminate_handler previous_handler = nullptr;
std::atomic<bool> allocation_failed{false};

// Called by operator new instead of throwing by itself; notes that it happened.
[[noreturn]] void on_failed_new() {
  allocation_failed = true;
  throw std::bad_alloc();
}

bool terminates_out_of_memory() {
  // If a noexcept function was inlined, the exception was never caught and there is no current exception.
  if (abi::__cxa_current_exception_type() == nullptr) return allocation_failed;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

// Must not allocate.
[[noreturn]] void on_terminate() {
  if (terminates_out_of_memory()) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, exit_message, std::strlen(exit_message));
    ::_exit(exit_code);
  }
  previous_handler();
  ::_exit(exit_code);
}

}  // namespace

void exit_when_out_of_memory(const char* message, int code) {
  exit_message = message;
  exit_code = code;
  previous_handler = std::set_terminate(on_terminate);
  std::set_new_handler(on_failed_new);
}

}  // namespace sweep
