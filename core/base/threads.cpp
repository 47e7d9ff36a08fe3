#include "core/base/threads.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace sweep {

std::optional<int> cores_of_quota(std::istream& cpu_max) {
  double quota = 0, period = 0;  // microseconds; "max" is no number
  if (!(cpu_max >> quota >> period) || !(quota > 0 && period > 0)) return std::nullopt;
  return static_cast<int>(std::ceil(quota / period));
}

int available_cores() {
  // In a container the group of this process is the root of what it sees.
  static const std::optional<int> quota = [] {
    std::ifstream in("/sys/fs/cgroup/cpu.max");
    return cores_of_quota(in);
  }();
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = ::sched_getaffinity(0, sizeof set, &set) == 0
                        ? CPU_COUNT(&set)
                        : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::min(cores, quota.value_or(cores));
}

}  // namespace sweep
