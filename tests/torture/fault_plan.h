// Decides for fault_shim.cpp which call fails, falls short, or ends the program.
#pragma once

#include <cstddef>

namespace fault {

/// The outcome of a call.
enum class Fate { kPass, kFail, kShort };

/// Counts a call of `function` if the plan is about it; does not return if the program is to end before it.
Fate before(const char* function);
/// Ends the program if that is to happen after this call.
void after(const char* function);
/// Whether this piece of memory is not to be had. Sets errno.
bool has_no_memory();
/// Whether a call was counted, or could have been.
bool has_begun();
/// errno of failing calls.
int planned_error();

/// Descriptors whose calls count: of files below the plan's directory, of sockets and shared memory.
bool is_watched(int fd);
void watch(int fd, bool value = true);

bool is_below(const char* path);
/// The same for a path relative to the directory `at`.
bool is_below(int at, const char* path);

}  // namespace fault
