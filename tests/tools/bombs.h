// Files that are small and claim, or expand to, far more than they are.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/image_files.h"

namespace sweep::test {

enum class DeflateFormat { kRaw = -MAX_WBITS, kZlib = MAX_WBITS, kGzip = MAX_WBITS + 16 };

/// `prefix` and then `zeros` bytes of 0, deflated piece by piece: a test that runs the program may not hold
/// them itself, as a child's peak memory is counted from its parent's.
inline std::string deflated_zeros(std::string prefix, std::uint64_t zeros, DeflateFormat format) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, static_cast<int>(format), 9, Z_DEFAULT_STRATEGY);
  std::string file;
  std::vector<char> out(1 << 16);
  const auto deflate_all = [&](std::string& piece, int flush) {
    stream.next_in = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_in = static_cast<uInt>(piece.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(out.data());
      stream.avail_out = static_cast<uInt>(out.size());
      if (deflate(&stream, flush) == Z_STREAM_ERROR) throw std::runtime_error("deflate");
      file.append(out.data(), out.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  deflate_all(prefix, Z_NO_FLUSH);
  std::string piece(1 << 20, '\0');
  for (; zeros > 0; zeros -= piece.size()) {
    piece.resize(std::min<std::uint64_t>(zeros, piece.size()));
    deflate_all(piece, Z_NO_FLUSH);
  }
  piece.clear();
  deflate_all(piece, Z_FINISH);
  deflateEnd(&stream);
  return file;
}

/// A whole and correct black PNG of `bits` bits per pixel: 1 or 8 for gray, 24 for colour.
inline std::string black_png(std::uint32_t height, std::uint32_t width, unsigned bits) {
  const bool colour = bits == 24;
  // Each row begins with the byte of its filter.
  const std::uint64_t bytes = (1 + (std::uint64_t{width} * bits + 7) / 8) * height;
  return png_with(width, height, colour ? 8 : bits, colour ? 2 : 0,
                  deflated_zeros("", bytes, DeflateFormat::kZlib));
}

/// A progressive JPEG of few bytes whose last scan is repeated until it takes a reader minutes.
inline std::string jpeg_of_many_scans(std::uint32_t side, int scans) {
  const std::string file = jpeg_file(flat_pixels(side, side, {128, 128, 128}), {.progressive = true});
  const std::size_t last = file.rfind("\xff\xda"), end = file.size() - 2;
  std::string bomb = file.substr(0, last);
  for (int i = 0; i < scans; ++i) bomb += file.substr(last, end - last);
  return bomb + file.substr(end);
}

}  // namespace sweep::test
