// What the stand-in's libraries can do, so that tests can have others.
#pragma once

#include <cstddef>
#include <string>

namespace sweep::cuda::host {

struct LibraryLimits {
  bool installed = true;
  std::string version = "stand-in";
  int fewest_images = 1;  // no plans for fewer
  std::size_t workspace_bytes = 1000;
  float wrong_by = 0;  // added to the first number of every result
  bool relu_keeps_nan = true;
  bool refuses = false;       // to run what it has planned
  bool has_any_order = true;  // algorithms that are not deterministic, for tasks that do not mind
};

/// Of the calling thread's libraries, those it has and those to come.
void set_library_limits(const LibraryLimits& limits);

}  // namespace sweep::cuda::host
