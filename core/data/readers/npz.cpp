#include "core/data/readers/npz.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <set>

#include "core/base/error.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/npy.h"

namespace sweep {
namespace {

// Names as in PKWARE's APPNOTE.TXT, sections 4.3.7 to 4.3.16.
constexpr std::uint64_t kEndBytes = 22, kEnd64LocatorBytes = 20, kEnd64Bytes = 56, kMostCommentBytes = 65535;
constexpr std::uint64_t kLocalBytes = 30, kCentralBytes = 46;
constexpr std::uint32_t kEndSignature = 0x06054b50, kEnd64Signature = 0x06064b50,
                        kLocatorSignature = 0x07064b50;
constexpr std::uint32_t kLocalSignature = 0x04034b50, kCentralSignature = 0x02014b50;
constexpr std::uint64_t kStored = 0, kDeflated = 8, kEncryptedFlag = 1;
constexpr std::uint64_t kIn64 = 0xffffffff;  // the value stands in the zip64 field

constexpr std::uint64_t kMostDirectoryBytes = 16 << 20;
constexpr std::uint64_t kHarmlessBytes = 16 << 20;
constexpr std::uint64_t kLargestExpansion = 100;

struct Member {
  std::string name;
  std::uint64_t method = 0;
  std::uint64_t crc = 0;
  std::uint64_t compressed = 0;
  std::uint64_t size = 0;
  std::uint64_t local_header = 0;  // offset
};

class ZipFile {
 public:
  ZipFile(std::istream& in, std::string name)
      : in_(in), name_(std::move(name)), size_(stream_size(in, name_)) {}

  [[noreturn]] void fail(const std::string& problem) const { throw DataError(name_ + ": " + problem); }
  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }

  std::vector<std::uint8_t> read(std::uint64_t at, std::uint64_t bytes) {
    if (at > size_ || bytes > size_ - at) fail("the archive is damaged: it ends too early");
    std::vector<std::uint8_t> out(bytes);
    read_into(at, out);
    return out;
  }
  void read_into(std::uint64_t at, std::span<std::uint8_t> out) {
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(at));
    in_.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    if (static_cast<std::size_t>(in_.gcount()) != out.size()) fail("cannot be read");
  }

  std::vector<Member> members();
  /// Offset of a member's bytes. Checks that they lie in the file.
  std::uint64_t data_offset(const Member& member);

 private:
  struct Directory {
    std::uint64_t offset, bytes, count;
  };
  Directory find_directory();

  std::istream& in_;
  const std::string name_;
  const std::uint64_t size_;
};

std::uint64_t number(std::span<const std::uint8_t> bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;) value = value << 8 | bytes[at + i];
  return value;
}

// The end record is the last thing in the file, apart from a comment of unknown length.
ZipFile::Directory ZipFile::find_directory() {
  const std::uint64_t tail_bytes = std::min(size_, kEndBytes + kMostCommentBytes);
  if (tail_bytes < kEndBytes) fail("is not an npz archive");
  const std::vector<std::uint8_t> tail = read(size_ - tail_bytes, tail_bytes);
  std::size_t at = tail.size() - kEndBytes;
  while (number(tail, at, 4) != kEndSignature || number(tail, at + 20, 2) > tail.size() - at - kEndBytes) {
    if (at-- == 0) fail("the archive is damaged or cut short: it has no directory");
  }
  Directory directory = {number(tail, at + 16, 4), number(tail, at + 12, 4), number(tail, at + 10, 2)};
  const std::uint64_t end = size_ - tail_bytes + at;
  const bool is_large = directory.offset == kIn64 || directory.bytes == kIn64 || directory.count == 0xffff;
  if (is_large && end >= kEnd64LocatorBytes) {
    const std::vector<std::uint8_t> locator = read(end - kEnd64LocatorBytes, kEnd64LocatorBytes);
    if (number(locator, 0, 4) == kLocatorSignature) {
      const std::vector<std::uint8_t> end64 = read(number(locator, 8, 8), kEnd64Bytes);
      if (number(end64, 0, 4) != kEnd64Signature)
        fail("the archive is damaged: its directory is not where it should be");
      directory = {number(end64, 48, 8), number(end64, 40, 8), number(end64, 32, 8)};
    }
  }
  if (directory.bytes > kMostDirectoryBytes) {
    fail("its directory has " + std::to_string(directory.bytes) + " bytes; at most " +
         std::to_string(kMostDirectoryBytes) + " are allowed");
  }
  return directory;
}

std::vector<Member> ZipFile::members() {
  const Directory directory = find_directory();
  const std::vector<std::uint8_t> bytes = read(directory.offset, directory.bytes);
  std::vector<Member> members;
  std::set<std::string> names;
  for (std::size_t at = 0; members.size() < directory.count;) {
    if (bytes.size() - at < kCentralBytes || number(bytes, at, 4) != kCentralSignature) {
      fail("the archive is damaged: an entry of its directory is");
    }
    const std::size_t name_bytes = number(bytes, at + 28, 2), extra_bytes = number(bytes, at + 30, 2);
    const std::size_t comment_bytes = number(bytes, at + 32, 2);
    if (bytes.size() - at - kCentralBytes < name_bytes + extra_bytes + comment_bytes) {
      fail("the archive is damaged: an entry of its directory is");
    }
    Member member;
    const auto* text = reinterpret_cast<const char*>(bytes.data() + at + kCentralBytes);
    member.name.assign(text, name_bytes);
    if (!is_utf8(member.name)) fail("the name of a member is not UTF-8");
    if (!names.insert(member.name).second) fail("holds " + quoted_name(member.name) + " twice");
    if ((number(bytes, at + 8, 2) & kEncryptedFlag) != 0) fail(quoted_name(member.name) + " is encrypted");
    member.method = number(bytes, at + 10, 2);
    member.crc = number(bytes, at + 16, 4);
    member.compressed = number(bytes, at + 20, 4);
    member.size = number(bytes, at + 24, 4);
    member.local_header = number(bytes, at + 42, 4);
    // The zip64 field, id 1, holds those of the three that are 0xffffffff above, in this order.
    const std::size_t extra_end = at + kCentralBytes + name_bytes + extra_bytes;
    for (std::size_t extra = extra_end - extra_bytes; extra + 4 <= extra_end;) {
      const std::size_t field_end = extra + 4 + number(bytes, extra + 2, 2);
      if (number(bytes, extra, 2) == 1 && field_end <= extra_end) {
        std::size_t value = extra + 4;
        for (std::uint64_t* wide : {&member.size, &member.compressed, &member.local_header}) {
          if (*wide != kIn64 || value + 8 > field_end) continue;
          *wide = number(bytes, value, 8);
          value += 8;
        }
      }
      extra = field_end;
    }
    members.push_back(std::move(member));
    at = extra_end + comment_bytes;
  }
  return members;
}

std::uint64_t ZipFile::data_offset(const Member& member) {
  const std::vector<std::uint8_t> header = read(member.local_header, kLocalBytes);
  if (number(header, 0, 4) != kLocalSignature) {
    fail("the archive is damaged: " + quoted_name(member.name) + " is not where its directory says");
  }
  const std::uint64_t offset =
      member.local_header + kLocalBytes + number(header, 26, 2) + number(header, 28, 2);
  if (offset > size_ || member.compressed > size_ - offset) {
    fail("the archive is damaged or cut short in " + quoted_name(member.name));
  }
  return offset;
}

/// The bytes of one member, decompressed piece by piece.
class MemberReader {
 public:
  MemberReader(ZipFile& zip, const Member& member)
      : zip_(zip), member_(member), offset_(zip.data_offset(member)), name_(zip.name() + ": " + member.name) {
    if (member.method != kDeflated && member.method != kStored) {
      throw DataError(name_ + ": is compressed by method " + std::to_string(member.method) +
                      "; allowed: stored and deflated");
    }
    if (member.method == kStored && member.size != member.compressed) {
      throw DataError(name_ + ": the archive is damaged: a stored member has two sizes");
    }
    if (member.size > kHarmlessBytes && member.size / kLargestExpansion > member.compressed) {
      throw DataError(name_ + ": expands to more than " + std::to_string(kLargestExpansion) +
                      " times its size: such data is refused as a decompression bomb");
    }
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();  // raw, without a header
  }
  MemberReader(const MemberReader&) = delete;
  MemberReader& operator=(const MemberReader&) = delete;
  ~MemberReader() { inflateEnd(&stream_); }

  const std::string& name() const { return name_; }

  std::size_t read(std::span<std::uint8_t> out) {
    // One byte more than the directory says shows that it is wrong.
    const std::size_t count = member_.method == kStored ? read_stored(out) : read_deflated(out);
    done_ += count;
    if (done_ > member_.size) throw DataError(name_ + ": is longer than the directory of the archive says");
    crc_ = static_cast<std::uint32_t>(crc32_z(crc_, out.data(), count));
    if (count < out.size()) {
      if (done_ != member_.size)
        throw DataError(name_ + ": is shorter than the directory of the archive says");
      if (crc_ != member_.crc) throw DataError(name_ + ": is damaged: its checksum is wrong");
    }
    return count;
  }

 private:
  std::size_t read_stored(std::span<std::uint8_t> out) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), member_.compressed - used_));
    zip_.read_into(offset_ + used_, out.first(count));
    used_ += count;
    return count;
  }

  std::size_t read_deflated(std::span<std::uint8_t> out) {
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out > 0 && !ended_) {
      if (stream_.avail_in == 0 && used_ < member_.compressed) {
        const auto count = std::min<std::uint64_t>(buffer_.size(), member_.compressed - used_);
        zip_.read_into(offset_ + used_, std::span(buffer_).first(count));
        used_ += count;
        stream_.next_in = buffer_.data();
        stream_.avail_in = static_cast<uInt>(count);
      }
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_MEM_ERROR) throw std::bad_alloc();
      if (result == Z_STREAM_END) {
        ended_ = true;
      } else if (result != Z_OK) {
        throw DataError(name_ + ": the compressed data is damaged" +
                        (stream_.msg != nullptr ? std::string(": ") + stream_.msg : ""));
      }
    }
    return out.size() - stream_.avail_out;
  }

  ZipFile& zip_;
  const Member& member_;
  const std::uint64_t offset_;
  const std::string name_;
  z_stream stream_{};
  std::vector<std::uint8_t> buffer_ = std::vector<std::uint8_t>(64 << 10);
  std::uint64_t used_ = 0;  // compressed bytes
  std::uint64_t done_ = 0;  // decompressed bytes
  std::uint32_t crc_ = 0;
  bool ended_ = false;
};

}  // namespace

bool is_npz(const std::filesystem::path& path) {
  const std::string start = first_bytes(path, kLocalBytes + 256);
  if (start.size() < kLocalBytes || !start.starts_with("PK\x03\x04")) return false;
  const auto bytes = std::span(reinterpret_cast<const std::uint8_t*>(start.data()), start.size());
  return std::string_view(start).substr(kLocalBytes, number(bytes, 26, 2)).ends_with(".npy");
}

std::vector<NamedArray> read_npz_arrays(std::istream& in, const std::string& name,
                                        const ReadOptions& options) {
  ZipFile zip(in, name);
  std::vector<NamedArray> arrays;
  std::uint64_t compressed = 0;
  for (const Member& member : zip.members()) {
    // Members that share their bytes would get round the limit that each of them has.
    if (member.compressed > zip.size() - compressed) zip.fail("the archive is damaged: its members overlap");
    compressed += member.compressed;
    constexpr std::string_view kEnding = ".npy";
    if (!member.name.ends_with(kEnding)) {
      zip.fail("holds " + quoted_name(member.name) + ", which is not an array (.npy)");
    }
    MemberReader reader(zip, member);
    const ByteSource source = {[&](std::span<std::uint8_t> out) { return reader.read(out); }, member.size,
                               reader.name()};
    arrays.push_back(read_npy(source, options));
    arrays.back().name = member.name.substr(0, member.name.size() - kEnding.size());
  }
  return arrays;
}

RawData read_npz(std::span<const std::filesystem::path> paths, const ReadOptions& options) {
  if (paths.size() != 1) throw DataError("npz: expected one archive, found " + std::to_string(paths.size()));
  const std::string name = paths.front().string();
  std::ifstream in = open_data_file(paths.front());
  RawData data = data_from_arrays(read_npz_arrays(in, name, options), options, name);
  Sha256 digest;
  std::vector<std::uint8_t> buffer(256 << 10);
  in.clear();
  in.seekg(0);
  while (in) {
    in.read(reinterpret_cast<char*>(buffer.data()), static_cast<std::streamsize>(buffer.size()));
    digest.update(std::span(buffer).first(static_cast<std::size_t>(in.gcount())));
  }
  data.files = {{paths.front(), digest.finish()}};
  return data;
}

}  // namespace sweep
