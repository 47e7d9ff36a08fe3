// Exits with a message when std::bad_alloc cannot be thrown, or is not survived.
#pragma once

namespace sweep {

/// Installs a terminate handler: std::bad_alloc thrown inside a noexcept function (nlohmann::json and
/// std::filesystem have such functions) then prints `message` to standard error and exits with `code` instead
/// of calling abort(). The same happens if the process would be killed by SIGSEGV or SIGABRT while it unwinds
/// from a failed allocation, because not all code survives that: GCC 12 destroys the finished parts of a
/// nested initializer twice, and nlohmann::json makes an object without memory for it. A line before it then
/// says that the process crashed, since the crash may have another reason. Other reasons for std::terminate()
/// and other crashes end as before. `message` must stay valid until the process exits (a literal) and end
/// with a newline. Call once, from main(), before threads are started.
void exit_when_out_of_memory(const char* message, int code);

}  // namespace sweep
