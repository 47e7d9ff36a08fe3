// The bytes of .npy, .npz and safetensors files, from the descriptions of their formats.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/bytes.h"

namespace sweep::test {

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
    std::string data = member.content;
    if (member.deflated) {
      z_stream stream{};
      deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
      data.resize(deflateBound(&stream, member.content.size()));
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(member.content.data()));
      stream.avail_in = static_cast<uInt>(member.content.size());
      stream.next_out = reinterpret_cast<Bytef*>(data.data());
      stream.avail_out = static_cast<uInt>(data.size());
      if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
      data.resize(stream.total_out);
      deflateEnd(&stream);
    }
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
