// Lets the system refuse memory, threads, which need it for their stacks, open files, or bytes in files, as
// where there are no more.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/test.h"

namespace sweep::test {

/// While it lives the process gets at most `most` of a resource. Of all threads; one at a time.
class ResourceLimit {
 public:
  ResourceLimit(decltype(RLIMIT_AS) resource, rlim_t most) : resource_(resource) {
    ::getrlimit(resource_, &before_);
    const rlimit small{most, before_.rlim_max};
    ::setrlimit(resource_, &small);
  }
  ~ResourceLimit() {
    ::setrlimit(resource_, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  ResourceLimit(const ResourceLimit&) = delete;
  ResourceLimit& operator=(const ResourceLimit&) = delete;

 private:
  decltype(RLIMIT_AS) resource_;
  rlimit before_{};
  // What a file that may not grow sends; without it, writing fails.
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

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
