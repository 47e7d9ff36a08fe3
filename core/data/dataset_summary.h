// What a user should know of a data set that was loaded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/channel_statistics.h"
#include "core/data/dataset.h"

namespace sweep {

struct PartSummary {
  std::string_view name;  // "train", "validation" or "test"
  std::size_t samples = 0;
  std::vector<std::size_t> class_counts;  // [classes]; empty if the targets are numbers
  ChannelStatistics targets;              // of each of the numbers; empty if the targets are classes
};

/// The parts of `dataset` that have samples, in that order.
std::vector<PartSummary> summarize_parts(const Dataset& dataset);

/// Bytes of samples and targets, in memory or in a mapped file; what parts share counts once.
std::size_t memory_bytes(const Dataset& dataset);

/// Returns one line each: how many files were skipped, with the first names and reasons, and Dataset::notes.
/// Empty if there is nothing to say.
std::vector<std::string> dataset_remarks(const Dataset& dataset);

}  // namespace sweep
