// Starting threads with an error that says what the thread was for.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/error.h"

namespace sweep {

/// Starts a thread that calls `body`. Throws Error if the system has no thread left: "cannot start a thread
/// that PURPOSE: Resource temporarily unavailable". Thread-safe.
template <typename Body>
std::thread start_thread(const std::string& purpose, Body&& body) {
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    throw Error("cannot start a thread that " + purpose + ": " + error.code().message() +
                "; is a limit on processes and threads (ulimit -u) reached?");
  }
}

}  // namespace sweep
