#include "runmanager/claims/process_identity.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/lines.h"

namespace sweep {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// The content of a file of /proc without its last line break; "" without /proc.
std::string kernel_text(const char* path) {
  try {
    std::string text = read_file(path);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  } catch (const DataError&) {
    return "";
  }
}

std::string pid_namespace() {
  std::array<char, 64> target{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", target.data(), target.size());
  return length <= 0 ? "" : std::string(target.data(), static_cast<std::size_t>(length));
}

// State and start time of a process; empty if /proc has none of that number. See proc(5), /proc/[pid]/stat.
struct ProcessState {
  char state = '?';
  std::uint64_t begin = 0;
};
std::optional<ProcessState> state_of(int pid) {
  const std::string text = kernel_text(fmt::format("/proc/{}/stat", pid).c_str());
  // The name, in parentheses, may hold anything.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::vector<std::string_view> fields;
  std::string_view rest = std::string_view(text).substr(name_end + 1);
  while (!rest.empty()) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const std::size_t length = std::min(rest.find(' '), rest.size());
    if (length > 0) fields.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  constexpr std::size_t kBegin = 19;  // field 22 of stat; the state, here the first, is its field 3
  ProcessState state;
  if (fields.size() <= kBegin || !read_number(fields[kBegin], state.begin)) return std::nullopt;
  state.state = fields[0].front();
  return state;
}

std::string random_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

}  // namespace

ProcessIdentity this_process() {
  ProcessIdentity process;
  process.id = random_id();
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  process.host = host.data();
  process.boot = kernel_text("/proc/sys/kernel/random/boot_id");
  process.pids = pid_namespace();
  process.pid = ::getpid();
  if (const auto state = state_of(process.pid)) process.begin = state->begin;
  const std::string array = variable("SLURM_ARRAY_JOB_ID"), index = variable("SLURM_ARRAY_TASK_ID");
  process.task = !array.empty() && !index.empty() ? array + "_" + index : variable("SLURM_JOB_ID");
  // Several processes of one task, started by srun, say.
  if (const std::string rank = variable("SLURM_PROCID");
      !process.task.empty() && !rank.empty() && rank != "0")
    process.task += "." + rank;
  read_number(std::string_view(variable("SLURM_RESTART_COUNT")), process.restarts);
  return process;
}

std::string describe(const ProcessIdentity& process) {
  return fmt::format("process {} on {}{}", process.pid, process.host,
                     process.task.empty() ? "" : ", Slurm task " + process.task);
}

std::string to_text(const ProcessIdentity& process) {
  return fmt::format("id {}\nhost {}\nboot {}\npids {}\npid {}\nbegin {}\ntask {}\nrestarts {}\n", process.id,
                     process.host, process.boot, process.pids, process.pid, process.begin, process.task,
                     process.restarts);
}

std::optional<ProcessIdentity> parse_process_identity(std::string_view text) {
  ProcessIdentity process;
  bool good = true;
  for (const std::string_view line : lines_of(text)) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    const std::string_view key = line.substr(0, space), value = line.substr(space + 1);
    if (key == "id") process.id = value;
    if (key == "host") process.host = value;
    if (key == "boot") process.boot = value;
    if (key == "pids") process.pids = value;
    if (key == "pid") good = good && read_number(value, process.pid);
    if (key == "begin") good = good && read_number(value, process.begin);
    if (key == "task") process.task = value;
    if (key == "restarts") good = good && read_number(value, process.restarts);
  }
  if (!good || process.id.empty() || process.pid <= 0) return std::nullopt;
  return process;
}

bool has_certainly_ended(const ProcessIdentity& process, const ProcessIdentity& here) {
  if (process.id == here.id) return false;
  if (!here.task.empty() && process.task == here.task && process.restarts < here.restarts) return true;
  const bool same_machine = !here.boot.empty() && process.boot == here.boot;
  // A process id of another namespace, of a container say, is of another process here.
  if (!same_machine || here.pids.empty() || process.pids != here.pids) return false;
  if (::kill(process.pid, 0) != 0 && errno == ESRCH) return true;
  const auto state = state_of(process.pid);
  if (!state) return false;  // It may be hidden.
  return state->begin != process.begin || state->state == 'Z' || state->state == 'X';
}

}  // namespace sweep
