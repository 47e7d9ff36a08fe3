// The bytes of files of data: IDX, gzip, .npy, .npz and safetensors, from the descriptions of their formats.
#pragma once

#include <zlib.h>

#include "tests/support/test.h"

namespace sweep::test {

/// The lowest `bytes` bytes of a number, the lowest first.
inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

/// The same with the highest first.
inline std::string big_endian(std::uint64_t value, int bytes) {
  std::string text = little_endian(value, bytes);
  std::reverse(text.begin(), text.end());
  return text;
}

/// Values of any type as they lie in memory.
template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

enum class DeflateFormat { kRaw = -MAX_WBITS, kZlib = MAX_WBITS, kGzip = MAX_WBITS + 16 };

/// `content` and then `zeros` bytes of 0, deflated piece by piece: a test that runs the program may not hold
/// many itself, as a child's peak memory is counted from its parent's.
inline std::string deflated(std::string_view content, DeflateFormat format, std::uint64_t zeros = 0) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, static_cast<int>(format), 8, Z_DEFAULT_STRATEGY);
  std::string file;
  std::vector<char> out(1 << 16);
  const auto add = [&](std::string_view piece, bool is_last) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream.avail_in = static_cast<uInt>(piece.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(out.data());
      stream.avail_out = static_cast<uInt>(out.size());
      if (deflate(&stream, is_last ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR)
        throw std::runtime_error("deflate");
      file.append(out.data(), out.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  add(content, zeros == 0);
  const std::string piece(std::min<std::uint64_t>(zeros, 1 << 20), '\0');
  while (zeros > 0) {
    const std::string_view part = std::string_view(piece).substr(0, zeros);
    zeros -= part.size();
    add(part, zeros == 0);
  }
  deflateEnd(&stream);
  return file;
}
inline std::string gzip(std::string_view content) { return deflated(content, DeflateFormat::kGzip); }

/// The bytes of an IDX file, as http://yann.lecun.com/exdb/mnist/ describes them.
inline std::string idx(const std::vector<std::uint32_t>& extents, std::string_view values) {
  std::string file = {0, 0, 8, static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents) file += big_endian(extent, 4);
  return file.append(values);
}

/// Writes FOLDER/PART-images-idx3-ubyte, `count` pictures of `side` x `side` pixels, pixel(i, y, x) each, and
/// FOLDER/PART-labels-idx1-ubyte with label(i). By default pictures are all alike, and of ten classes in
/// turn.
inline void write_idx_set(
    const std::filesystem::path& folder, const std::string& part, std::uint32_t count, std::uint32_t side,
    const std::function<unsigned(unsigned, unsigned, unsigned)>& pixel = [](auto...) { return 0x40; },
    const std::function<unsigned(unsigned)>& label = [](unsigned i) { return i % 10; }) {
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

/// `count` bytes that differ from sample to sample.
inline std::string some_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  std::uint32_t state = 12345;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return bytes;
}

/// A .npy file, version 1: `type` as "<f4", `shape` as "(2, 3)".
inline std::string npy_file(const std::string& type, const std::string& shape, std::string_view data,
                            bool fortran_order = false) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': " + (fortran_order ? "True" : "False") +
                       ", 'shape': " + shape + ", }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\0", 8) + little_endian(header.size(), 2) + header + std::string(data);
}

/// A safetensors file: `header` as JSON.
inline std::string safetensors_file(const std::string& header, std::string_view data) {
  return little_endian(header.size(), 8) + header + std::string(data);
}

/// One member of a zip archive.
struct ZipMember {
  std::string name;
  std::string content;
  bool deflated = true;
};

/// A zip archive. `changed_crc` and `changed_size` make entries of the directory lie.
inline std::string zip_file(const std::vector<ZipMember>& members, std::uint32_t changed_crc = 0,
                            std::uint32_t changed_size = 0) {
  const auto& number = little_endian;
  std::string file, directory;
  for (const ZipMember& member : members) {
    const std::string data = member.deflated ? deflated(member.content, DeflateFormat::kRaw) : member.content;
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(member.content.data()),
                           static_cast<uInt>(member.content.size()));
    const std::string common = number(member.deflated ? 8 : 0, 2) + number(0, 4) +
                               number(crc ^ changed_crc, 4) + number(data.size(), 4) +
                               number(member.content.size() + changed_size, 4) +
                               number(member.name.size(), 2) + number(0, 2);
    directory += "PK\x01\x02" + number(20, 2) + number(20, 2) + number(0, 2) + common + number(0, 2) +
                 number(0, 2) + number(0, 2) + number(0, 4) + number(file.size(), 4) + member.name;
    file += "PK\x03\x04" + number(20, 2) + number(0, 2) + common + member.name + data;
  }
  const std::size_t offset = file.size();
  return file + directory + "PK\x05\x06" + number(0, 4) + number(members.size(), 2) +
         number(members.size(), 2) + number(directory.size(), 4) + number(offset, 4) + number(0, 2);
}

}  // namespace sweep::test
