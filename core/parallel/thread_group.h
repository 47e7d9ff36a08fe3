// A group of ranks that are threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "core/parallel/communicator.h"
#include "core/parallel/deadline.h"

namespace sweep {

/// The ends of a group of `size` >= 1 ranks, in their order, each for one thread. `deadline`: in seconds, >
/// 0, or infinite. `name`: what the ranks are called in messages, before their number: "cpu:" or "rank ".
std::vector<std::unique_ptr<Communicator>> make_thread_group(int size, const std::string& name = "rank ",
                                                             double deadline = kCommunicatorDeadline);

}  // namespace sweep
