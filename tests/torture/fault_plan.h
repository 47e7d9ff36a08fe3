// Decides for torture_shim.cpp which call fails, falls short, or ends the program.
//
//   SWEEP_FAULT=ROLE:ACTION:FUNCTION:N
//     ROLE       parent or worker; a worker is a process with "worker" as its first argument
//     ACTION     kill-before, kill-after, kill-both (with the parent process), fail-once, fail-always;
//                short-once, short-always: half of the bytes are read, written, sent or received
//     FUNCTION   the name of a function there: open also means openat, opendir for openat of a
//                directory, unlink for unlinkat and remove, read for pread, fsync for fdatasync and syncfs,
//                clone for pthread_create, malloc for calloc, realloc and aligned_alloc. stack: a malloc
//                whose innermost callers were not seen before, so that each line that takes memory fails
//                once.
//     N          counts from 1. Memory counts only after another call was counted, because before main() a
//                program cannot report what is wrong.
//   SWEEP_FAULT_DIR=PATH     of calls on files, only those on files below it count, and on sockets,
//   directories
//                            and shared memory that were opened by calls that counted
//   SWEEP_FAULT_ERRNO=28     errno of failing calls; default EIO, of memory always ENOMEM
//   SWEEP_FAULT_MARK=FILE    is created when a call was struck
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
/// Whether this process is a worker of a sweep.
bool is_worker();

/// Descriptors whose calls count: of files below the plan's directory, of sockets and shared memory.
bool is_watched(int fd);
void watch(int fd, bool value = true);

bool is_below(const char* path);
/// The same for a path relative to the directory `at`.
bool is_below(int at, const char* path);

}  // namespace fault
