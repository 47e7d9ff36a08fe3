// The identity of a process, for processes on other machines that share its directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sweep {

/// What tells a process from every other one, on any machine.
struct ProcessIdentity {
  std::string id;    // 16 hexadecimal digits, random
  std::string host;  // for people; machines may share a name
  std::string boot;  // of the kernel, since its start; "" if not known
  std::string pids;  // the namespace that `pid` is of; "" if not known
  int pid = 0;
  std::uint64_t begin = 0;  // of the process, in clock ticks since the machine's start
  std::string task;         // of Slurm: "4711_3" in an array, else "4711"; "" outside
  int restarts = 0;         // of that task
};

ProcessIdentity this_process();

/// "4711 on node3, Slurm task 815_2".
std::string describe(const ProcessIdentity& process);

/// Lines of "key value".
std::string to_text(const ProcessIdentity& process);
/// The inverse; empty if `text` is none.
std::optional<ProcessIdentity> parse_process_identity(std::string_view text);

/// Whether `process` has certainly ended, as far as `here` can know without waiting: it ran on this machine
/// and is no more, or it is an earlier start of the same Slurm task.
bool has_certainly_ended(const ProcessIdentity& process, const ProcessIdentity& here);

}  // namespace sweep
