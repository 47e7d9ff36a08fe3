// When the stand-in's streams do their work.
#pragma once

#include <cstdint>

namespace sweep::cuda::host {

/// Sets when streams work, in all threads. 0, the default: as late as allowed, when somebody waits.
/// Any other seed: each stream switches at random between working at once and as late as allowed,
/// independently of the other streams. A program whose results depend on the seed lacks an event, or uses
/// memory before a copy is done.
void set_stream_seed(std::uint64_t seed);

}  // namespace sweep::cuda::host
