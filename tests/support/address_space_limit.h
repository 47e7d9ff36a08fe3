// Lets the system refuse memory, and threads, which need it for their stacks.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace sweep::test {

/// While it lives the process gets at most `bytes` of address space more. Of all threads; one at a time.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(std::size_t bytes) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    const rlimit small{pages * static_cast<std::size_t>(::getpagesize()) + bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &small);
  }
  ~AddressSpaceLimit() { ::setrlimit(RLIMIT_AS, &before_); }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace sweep::test
