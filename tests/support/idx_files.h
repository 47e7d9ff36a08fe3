// The bytes of IDX and gzip files.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/bytes.h"

namespace sweep::test {

inline std::string gzip(std::string_view content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// The bytes of an IDX file, as http://yann.lecun.com/exdb/mnist/ describes them.
inline std::string idx(const std::vector<std::uint32_t>& extents, std::string_view values) {
  std::string file = {0, 0, 8, static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents) file += big_endian(extent, 4);
  return file.append(values);
}

/// Writes FOLDER/PART-images-idx3-ubyte, `count` pictures of `side` x `side` pixels, pixel(i, y, x) each, and
/// FOLDER/PART-labels-idx1-ubyte with label(i).
template <typename Pixel, typename Label>
void write_idx_set(const std::filesystem::path& folder, const std::string& part, std::uint32_t count,
                   std::uint32_t side, const Pixel& pixel, const Label& label) {
  std::string images, labels;
  for (std::uint32_t i = 0; i < count; ++i) {
    labels += static_cast<char>(label(i));
    for (std::uint32_t y = 0; y < side; ++y) {
      for (std::uint32_t x = 0; x < side; ++x) images += static_cast<char>(pixel(i, y, x));
    }
  }
  std::filesystem::create_directories(folder);
  std::ofstream(folder / (part + "-images-idx3-ubyte"), std::ios::binary) << idx({count, side, side}, images);
  std::ofstream(folder / (part + "-labels-idx1-ubyte"), std::ios::binary) << idx({count}, labels);
}

/// The same with ten classes in turn.
template <typename Pixel>
void write_idx_set(const std::filesystem::path& folder, const std::string& part, std::uint32_t count,
                   std::uint32_t side, const Pixel& pixel) {
  write_idx_set(folder, part, count, side, pixel, [](std::uint32_t i) { return i % 10; });
}

/// The same with pictures that are all alike.
inline void write_idx_set(const std::filesystem::path& folder, const std::string& part, std::uint32_t count,
                          std::uint32_t side) {
  write_idx_set(folder, part, count, side, [](auto...) { return 0x40; });
}

/// `count` bytes that differ from sample to sample.
inline std::string some_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  std::uint32_t state = 12345;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return bytes;
}

}  // namespace sweep::test
