#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "core/base/error.h"
#include "core/base/threads.h"
#include "core/data/readers/image_folder/image_folder.h"
#include "core/data/readers/images/image_file.h"
#include "core/data/readers/input_file.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

}  // namespace

void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;  // the first
  const auto fail = [&] {
    next = count;
    const std::lock_guard lock(mutex);
    if (!error) error = std::current_exception();
  };
  const auto run = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      fail();
    }
  };
  {
    std::vector<std::jthread> running;  // which it waits for
    const BlockSignals block;
    try {
      const std::size_t wanted = threads > 0 ? threads : static_cast<std::size_t>(available_cores());
      while (running.size() < std::min(wanted, count)) running.emplace_back(run);
    } catch (const std::system_error&) {  // a limit of threads is reached: those there are do it all
      if (running.empty()) run();
    }
  }
  if (error) std::rethrow_exception(error);
}

std::vector<DecodedFile> decode_images(std::span<const ImageEntry> entries, const Shape& shape, bool resize,
                                       unsigned threads, std::span<std::uint8_t> out,
                                       const std::function<void()>& meanwhile) {
  const std::size_t sample_bytes = element_count(shape);
  if (out.size() < entries.size() * sample_bytes) throw std::logic_error("no room for the decoded images");
  const ImageSize size{static_cast<std::uint32_t>(shape[1]), static_cast<std::uint32_t>(shape[2])};
  ImageOptions options{.grayscale = shape[0] == 1};
  if (resize) options.resize = size;
  std::vector<DecodedFile> files(entries.size());
  std::vector<ImageSize> sizes(entries.size(), size);
  const auto decode = [&](std::size_t i) {
    const fs::path& path = entries[i].path;
    try {
      const std::vector<std::uint8_t> bytes = read_bytes(path, kMaxImageBytes);
      const Image image = decode_image(bytes, options, path.string());
      sizes[i] = image.size;
      if (image.size != size) return;
      std::ranges::copy(image.pixels, out.begin() + static_cast<std::ptrdiff_t>(i * sample_bytes));
      files[i].sha256 = sha256_of(bytes);
    } catch (const DataError& error) {
      files[i] = {"", without_path(error.what(), path), dynamic_cast<const ReadError*>(&error) != nullptr};
    }
  };
  // Call 0 is `meanwhile`.
  parallel_for(entries.size() + 1, threads, [&](std::size_t i) {
    if (i > 0)
      decode(i - 1);
    else if (meanwhile)
      meanwhile();
  });
  std::size_t count = 0;  // that have a place
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (sizes[i] != size) {
      refuse(entries[i].path,
             "has {} x {} pixels, others have {} x {} pixels; give \"resize\": [height, width]",
             sizes[i].width, sizes[i].height, size.width, size.height);
    }
    if (files[i].sha256.empty()) continue;
    if (count < i) std::memcpy(&out[count * sample_bytes], &out[i * sample_bytes], sample_bytes);
    ++count;
  }
  return files;
}

}  // namespace sweep
