#include "core/data/readers/idx.h"

#include <array>
#include <cstring>
#include <span>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/readers/content_reader.h"

namespace sweep {
namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr std::uint64_t kOverflow = UINT64_MAX;  // the product of the extents does not fit

// A small file must not fill the memory. Pictures shrink to a third or a tenth when they are compressed; only
// nearly constant ones shrink more than this. What fits in kAlwaysUnpacked, in bytes, may be anything.
constexpr std::uint64_t kMostPlausibleExpansion = 100, kAlwaysUnpacked = 16 << 20;

std::string hexadecimal(std::span<const std::uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    if (!text.empty()) text += ' ';
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

const char* value_type_name(std::uint8_t code) {
  switch (code) {
    case 0x09:
      return "signed bytes";
    case 0x0b:
      return "16-bit integers";
    case 0x0c:
      return "32-bit integers";
    case 0x0d:
      return "32-bit floats";
    case 0x0e:
      return "64-bit floats";
    default:
      return nullptr;
  }
}

std::string content_name(std::size_t dimensions) {
  if (dimensions == 1) return "labels, 1 dimension";
  if (dimensions == 3) return "images, 3 dimensions";
  return std::to_string(dimensions) + " dimensions";
}

void check_magic(std::span<const std::uint8_t, 4> magic, const std::string& name, std::size_t dimensions) {
  const std::array<std::uint8_t, 4> expected = {0, 0, kUnsignedByte, static_cast<std::uint8_t>(dimensions)};
  if (std::memcmp(magic.data(), expected.data(), 4) == 0) return;
  const std::string wanted = "expected " + hexadecimal(expected) + " (" + content_name(dimensions) + ")";
  if (magic[0] != 0 || magic[1] != 0) {
    throw DataError(name + ": not an IDX file: it starts with the bytes " + hexadecimal(magic) + ", " +
                    wanted);
  }
  if (const char* type = value_type_name(magic[2]); type != nullptr) {
    throw DataError(name + ": holds " + type + " (magic number " + hexadecimal(magic) +
                    "), but only unsigned bytes can be read; " + wanted);
  }
  if (magic[2] == kUnsignedByte) {
    throw DataError(name + ": holds " + content_name(magic[3]) + " (magic number " + hexadecimal(magic) +
                    "), " + wanted);
  }
  throw DataError(name + ": wrong magic number " + hexadecimal(magic) + ", " + wanted);
}

}  // namespace

IdxFile read_idx(std::istream& in, const std::string& name, std::size_t dimensions) {
  ContentReader reader(in, name);
  std::vector<std::uint8_t> header(4 + 4 * dimensions);
  const std::size_t header_read = reader.read(header);
  if (header_read == 0) throw DataError(name + ": is empty, expected an IDX file");
  if (header_read >= 4) check_magic(std::span(header).first<4>(), name, dimensions);
  if (header_read < header.size()) {
    throw DataError(name + ": too short: its content ends after " + std::to_string(header_read) +
                    " bytes, the header alone has " + std::to_string(header.size()));
  }

  IdxFile file;
  std::uint64_t bytes = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const std::uint8_t* p = header.data() + 4 + 4 * d;
    const std::uint32_t extent =
        (std::uint32_t{p[0]} << 24) | (std::uint32_t{p[1]} << 16) | (std::uint32_t{p[2]} << 8) | p[3];
    file.extents.push_back(extent);
    if (__builtin_mul_overflow(bytes, std::uint64_t{extent}, &bytes)) bytes = kOverflow;
  }
  if (bytes == 0) throw DataError(name + ": holds nothing: its header says " + to_string(file.extents));
  const std::string promised = "its header promises " + to_string(file.extents) + " = " +
                               (bytes == kOverflow ? "more than 2^64" : std::to_string(bytes)) +
                               " bytes of data";
  // Before allocating, so that a damaged header cannot ask for all of the memory.
  if (bytes > reader.most_content()) {
    throw DataError(name + ": too short: " + promised + ", which a file of this size cannot hold");
  }
  if (reader.compressed() && bytes > kAlwaysUnpacked &&
      bytes / kMostPlausibleExpansion > reader.file_bytes()) {
    throw DataError(name + ": " + promised + ", which is " + std::to_string(bytes / reader.file_bytes()) +
                    " times the size of the file; unpack it first if that is right");
  }
  const std::string total = std::to_string(header.size() + bytes);
  file.values.resize(bytes);
  const std::size_t values_read = reader.read(file.values);
  if (values_read < bytes) {
    throw DataError(name + ": too short: " + promised + ", but its content ends after " +
                    std::to_string(header.size() + values_read) + " of " + total + " bytes");
  }
  std::array<std::uint8_t, 1> more;
  // This read also reaches the end of the compressed data, where zlib compares its checksum.
  if (reader.read(more) != 0) {
    throw DataError(name + ": too long: " + promised + ", but more than those " + total + " bytes are there");
  }
  file.sha256 = reader.sha256();
  return file;
}

IdxFile read_idx(const std::filesystem::path& path, std::size_t dimensions) {
  return read_idx(*open_regular_stream(path), path.string(), dimensions);
}

}  // namespace sweep
