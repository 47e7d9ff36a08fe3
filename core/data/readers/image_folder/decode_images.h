// Decodes image files together, on many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/data/readers/image_folder/scan.h"
#include "core/data/readers/images/image_file.h"

namespace sweep {

/// Calls work(0) … work(count − 1), each once, on `threads` threads (0: one per core that this process may
/// use), roughly in order, while the calling thread waits. The first exception ends the loop and is thrown
/// again here, after the threads have ended.
void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

/// The outcome of decoding one image file.
struct DecodedFile {
  std::string sha256;       // of the file
  std::string problem;      // empty: decoded
  bool other_size = false;  // the problem is nothing but its size
  bool unread = false;      // it could not be read, which may pass
};

/// Decodes `entries` to `out`, one after the other, [channels, height, width] each, on `threads` threads (0:
/// all cores). A file of another size than `size` (only without options.resize) or that is damaged has a
/// problem, and takes no place. Memory other than `out`: a file and an image for each thread. `meanwhile`,
/// unless empty, is called once by one of the threads.
std::vector<DecodedFile> decode_images(std::span<const ImageEntry> entries, const ImageOptions& options,
                                       ImageSize size, unsigned threads, std::span<std::uint8_t> out,
                                       const std::function<void()>& meanwhile = {});

}  // namespace sweep
