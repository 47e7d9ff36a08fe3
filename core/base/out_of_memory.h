// What becomes of a program that runs out of memory where C++ cannot throw any further.
#pragma once

namespace sweep {

/// From now on, std::bad_alloc in a destructor or another function that must not throw (nlohmann::json's and
/// std::filesystem's are such) ends the process with exit code `code` and `message` on standard error, where
/// std::terminate() would call abort(). Other ends stay as they were. `message` is a literal, with its line
/// break. Call once, from main().
void exit_when_out_of_memory(const char* message, int code);

}  // namespace sweep
