// One loop on many threads.
#pragma once

#include <cstddef>
#include <functional>

namespace sweep {

/// Calls work(0) … work(count − 1), each once, on `threads` threads (0: one per core that this process may
/// use), roughly in order, while the calling thread waits. The first exception ends the loop and is thrown
/// again here, after the threads have ended.
void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace sweep
