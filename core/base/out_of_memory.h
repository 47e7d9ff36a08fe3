// Exits with a message when std::bad_alloc cannot be thrown.
#pragma once

namespace sweep {

/// Installs a terminate handler: std::bad_alloc thrown inside a noexcept function (nlohmann::json and
/// std::filesystem have such functions) then prints `message` to standard error and exits with `code` instead
/// of calling abort(). Other reasons for std::terminate() still reach the previous handler. `message` must
/// stay valid until the process exits (a literal) and end with a newline. Call once, from main(), before
/// threads are started.
void exit_when_out_of_memory(const char* message, int code);

}  // namespace sweep
