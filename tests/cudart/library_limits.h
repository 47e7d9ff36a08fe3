// What the stand-in libraries can do. Tests change it to get other libraries.
#pragma once

#include <cstddef>
#include <string>

namespace sweep::cuda::cudart {

struct LibraryLimits {
  bool installed = true;
  std::string version = "stand-in";
  int fewest_images = 1;  // no plans for fewer
  std::size_t workspace_bytes = 1000;
  bool refuses = false;             // to run what it has planned
  bool has_input_gradients = true;  // plans for Direction::kBackwardInput
  bool has_any_order = true;        // algorithms that are not deterministic, for tasks that do not mind
};

/// Sets the limits of the calling thread's libraries, of open ones too, and has installed ones opened again.
void set_library_limits(const LibraryLimits& limits);

/// How often the process has opened a library.
int libraries_opened();

}  // namespace sweep::cuda::cudart
