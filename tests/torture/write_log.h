// Logs for torture_shim.cpp every change that a program makes to files below a directory, so that power cuts
// can be replayed. See power_cuts.py.
//
//   SWEEP_WRITE_LOG=FILE       the log; several processes append to it
//   SWEEP_WRITE_LOG_DIR=PATH   only files below it are logged
//
// A log entry is a line "OPERATION\tNANOSECONDS\tINODE\tOFFSET\tLENGTH\tPATH\tPATH2\n", LENGTH bytes, and
// "\n":
//   create (a name for a new file), write, truncate (to OFFSET), sync, syncdir, syncfs and syncedfs (its
//   begin and its end), rename, link, unlink, mkdir, rmdir
// An entry is written after the operation has succeeded. Entries of one thread are in order. Of two threads,
// a sync may come before a write that it covered, which makes the replay only more severe.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <string>

namespace write_log {

/// Whether there is a log. Without one, call nothing of the rest: it takes memory.
bool is_on();

/// The path that `path` has, which is relative to the directory `at`.
std::string absolute(const char* path, int at = AT_FDCWD);
std::string path_of(int fd);
unsigned long inode_of(int fd);

/// Adds an entry, unless the path that changes, the last one, is not below the directory. Keeps errno.
void add(const char* operation, unsigned long inode, long offset, const std::string& path,
         const std::string& path2 = "", const void* data = nullptr, std::size_t size = 0);
/// The same of a file that is open: "write", "truncate", "sync", "syncdir".
void add(const char* operation, int fd, long offset = 0, const void* data = nullptr, std::size_t size = 0);

/// Around an open(): logs a new file or a truncation.
template <typename Open>
int opened(const char* path, int at, int flags, const Open& open) {
  if ((flags & (O_CREAT | O_TRUNC)) == 0 || !is_on()) return open();
  const std::string whole = absolute(path, at);
  struct stat before {};
  const bool existed = ::lstat(whole.c_str(), &before) == 0;
  const int fd = open();
  if (fd >= 0 && !existed) add("create", inode_of(fd), 0, whole);
  if (fd >= 0 && existed && (flags & O_TRUNC) != 0) add("truncate", inode_of(fd), 0, whole);
  return fd;
}

}  // namespace write_log
