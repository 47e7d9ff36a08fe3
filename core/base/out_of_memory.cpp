#include "core/base/out_of_memory.h"

#include <cxxabi.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <new>
#include <typeinfo>

namespace sweep {
namespace {

const char* exit_message = "";
int exit_code = 1;
std::terminate_handler previous_handler = nullptr;
std::atomic<bool> allocation_failed{false};
constexpr std::array<int, 2> kCrashes = {SIGSEGV, SIGABRT};
std::array<struct sigaction, kCrashes.size()> previous_actions;

// Called by operator new instead of throwing by itself; notes that it happened.
[[noreturn]] void on_failed_new() {
  allocation_failed = true;
  throw std::bad_alloc();
}

// Whether this thread is unwinding because an allocation failed. One that was handled explains no later
// crash.
bool is_failing() {
  const std::type_info* handled = abi::__cxa_current_exception_type();
  return allocation_failed &&
         (std::uncaught_exceptions() > 0 || (handled != nullptr && *handled == typeid(std::bad_alloc)));
}

bool terminates_out_of_memory() {
  // If a noexcept function was inlined, the exception was never caught and there is no current exception.
  if (abi::__cxa_current_exception_type() == nullptr) return is_failing();
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

// Must not allocate, and may be called by signal handlers; so must exit_now().
void say(const char* text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

[[noreturn]] void exit_now() {
  say(exit_message);
  ::_exit(exit_code);
}

// If no allocation is failing, the signal comes again as soon as this returns, and ends the process as it
// would have without this handler.
extern "C" void on_crash(int signal) {
  if (is_failing()) {
    say(signal == SIGSEGV ? "crashed (SIGSEGV) after an allocation failed:\n"
                          : "crashed (SIGABRT) after an allocation failed:\n");
    exit_now();
  }
  for (std::size_t i = 0; i < kCrashes.size(); ++i) {
    if (kCrashes[i] == signal) ::sigaction(signal, &previous_actions[i], nullptr);
  }
}

[[noreturn]] void on_terminate() {
  if (terminates_out_of_memory()) exit_now();
  previous_handler();
  ::_exit(exit_code);
}

}  // namespace

void exit_when_out_of_memory(const char* message, int code) {
  exit_message = message;
  exit_code = code;
  previous_handler = std::set_terminate(on_terminate);
  std::set_new_handler(on_failed_new);
  struct sigaction action = {};
  action.sa_handler = on_crash;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kCrashes.size(); ++i) ::sigaction(kCrashes[i], &action, &previous_actions[i]);
}

}  // namespace sweep
