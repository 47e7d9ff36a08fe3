// Lets the system refuse memory, and threads, which need it for their stacks.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <fstream>

#include "tests/support/resource_limit.h"

namespace sweep::test {

/// While it lives the process gets at most `bytes` of address space more. Of all threads; one at a time.
class AddressSpaceLimit : ResourceLimit {
 public:
  explicit AddressSpaceLimit(std::size_t bytes) : ResourceLimit(RLIMIT_AS, taken() + bytes) {}

 private:
  static std::size_t taken() {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<std::size_t>(::getpagesize());
  }
};

}  // namespace sweep::test
