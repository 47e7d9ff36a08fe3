#include "core/base/out_of_memory.h"

#include <cxxabi.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <new>

namespace sweep {
namespace {

const char* last_words = "";
int exit_code = 1;
std::terminate_handler other_ends = nullptr;

// Nothing here may take memory.
[[noreturn]] void on_terminate() {
  if (abi::__cxa_current_exception_type() != nullptr) {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, last_words, std::strlen(last_words));
      ::_exit(exit_code);
    } catch (...) {
    }
  }
  other_ends();
  ::_exit(exit_code);
}

}  // namespace

void exit_when_out_of_memory(const char* message, int code) {
  last_words = message;
  exit_code = code;
  other_ends = std::set_terminate(on_terminate);
}

}  // namespace sweep
