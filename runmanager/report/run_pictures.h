// The pictures that a run has logged, read back from its events.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sweep {

struct RunPicture {
  std::string title;                   // "First batch", "Confusion matrix", "Misclassified samples"
  std::int64_t width = 0, height = 0;  // in pixels
  std::string png;
  std::string text;  // the same as a Markdown table; "" if there is none
};

/// The newest sample grid, confusion matrix and misclassified samples in the events of a run, in this order,
/// if they exist. Skips files that cannot be read, and images that are not PNG.
std::vector<RunPicture> run_pictures(const std::filesystem::path& run_directory);

}  // namespace sweep
