// When the stand-in's streams do their work.
#pragma once

#include <cstdint>

namespace sweep::cuda::host {

/// 0, as at first: as late as they may, when somebody waits. Any other seed: each stream by turns at once and
/// as late as it may, in random spells, whatever other streams do. Results that depend on it lack an event,
/// or use memory before a copy is done. Of the calling thread's streams.
void set_stream_seed(std::uint64_t seed);

}  // namespace sweep::cuda::host
