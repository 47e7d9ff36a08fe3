#include "core/base/out_of_memory.h"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <new>

namespace sweep {
namespace {

const char* last_words = "";
int exit_code = 1;
std::terminate_handler other_ends = nullptr;
std::atomic<bool> ran_out{false};

// In place of the one that operator new would throw.
[[noreturn]] void on_failed_new() {
  ran_out = true;
  throw std::bad_alloc();
}

bool ends_for_want_of_memory() {
  // Where a noexcept function was inlined, nobody has caught the exception, and it cannot be looked at.
  if (abi::__cxa_current_exception_type() == nullptr) return ran_out;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

// Nothing here may take memory.
[[noreturn]] void on_terminate() {
  if (ends_for_want_of_memory()) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, last_words, std::strlen(last_words));
    ::_exit(exit_code);
  }
  other_ends();
  ::_exit(exit_code);
}

}  // namespace

void exit_when_out_of_memory(const char* message, int code) {
  last_words = message;
  exit_code = code;
  other_ends = std::set_terminate(on_terminate);
  std::set_new_handler(on_failed_new);
}

}  // namespace sweep
