#include "core/data/readers/readers.h"

#include <zip.h>

#include <algorithm>
#include <memory>
#include <new>
#include <set>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/utf8.h"

namespace sweep {
namespace {

constexpr std::string_view kEnding = ".npy";

struct Closer {
  void operator()(zip_t* zip) const { zip_discard(zip); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Zip = std::unique_ptr<zip_t, Closer>;
using ZipMember = std::unique_ptr<zip_file_t, Closer>;

[[noreturn]] void fail(const std::string& name, zip_error_t* error) {
  if (zip_error_code_zip(error) == ZIP_ER_MEMORY) throw std::bad_alloc();
  refuse(name, "the archive is damaged or cut short: {}", zip_error_strerror(error));
}

Zip open_archive(const std::filesystem::path& path) {
  open_regular_file(path);  // says why it cannot be read
  int code = 0;
  Zip zip(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (zip != nullptr) return zip;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  fail(path.string(), &error);
}

// What the directory says about a member, after all checks that need no data.
zip_stat_t checked_member(zip_t* zip, zip_uint64_t index, const std::string& archive) {
  constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  zip_stat_t member;
  if (zip_stat_index(zip, index, ZIP_FL_ENC_RAW, &member) != 0) fail(archive, zip_get_error(zip));
  if ((member.valid & kNeeded) != kNeeded)
    refuse(archive, "the archive is damaged: its directory is incomplete");
  const std::string_view name = member.name;
  if (!is_utf8(name)) refuse(archive, "the name of a member is not UTF-8");
  if (!name.ends_with(kEnding)) refuse(archive, "holds \"{}\", which is not an array (.npy)", name);
  if (member.encryption_method != ZIP_EM_NONE) refuse(archive, "\"{}\" is encrypted", name);
  const std::string where = archive + ": " + member.name;
  if (member.comp_method != ZIP_CM_STORE && member.comp_method != ZIP_CM_DEFLATE)
    refuse(where, "is compressed by method {}; allowed: stored and deflated", member.comp_method);
  if (member.comp_method == ZIP_CM_STORE && member.size != member.comp_size)
    refuse(where, "the archive is damaged: a stored member has two sizes");
  refuse_bomb(where, member.size, member.comp_size);
  return member;
}

NamedArray read_member(zip_t* zip, zip_uint64_t index, const zip_stat_t& member, const std::string& archive) {
  const std::string where = archive + ": " + member.name;
  const ZipMember file(zip_fopen_index(zip, index, 0));
  if (file == nullptr) fail(where, zip_get_error(zip));
  std::uint64_t done = 0;
  // The library compares the checksum at the end, where read_npy() tries to read more.
  const auto read = [&](std::span<std::uint8_t> out) {
    std::size_t count = 0;
    while (count < out.size()) {
      const zip_int64_t got = zip_fread(file.get(), out.data() + count, out.size() - count);
      if (got < 0) fail(where, zip_file_get_error(file.get()));
      if (got == 0) break;
      count += static_cast<std::size_t>(got);
    }
    done += count;
    if (done > member.size) refuse(where, "is longer than the directory of the archive says");
    if (count < out.size() && done < member.size)
      refuse(where, "is shorter than the directory of the archive says");
    return count;
  };
  NamedArray array = array_or_problem([&] { return read_npy({read, member.size, where}); });
  const std::string_view name = member.name;
  array.name = name.substr(0, name.size() - kEnding.size());
  return array;
}

}  // namespace

bool is_npz(const std::filesystem::path& path) {
  // The header of the first member: its name's length is at offset 26, the name at 30.
  constexpr std::size_t kName = 30;
  const std::string start = first_bytes(path, kName + 256);
  if (start.size() < kName || !start.starts_with("PK\x03\x04")) return false;
  const auto length = static_cast<std::size_t>(static_cast<unsigned char>(start[26]));
  return std::string_view(start).substr(kName, length).ends_with(kEnding);
}

DataArrays read_npz(std::span<const std::filesystem::path> paths, const ReadOptions&) {
  const std::filesystem::path& path = only_path(paths, "npz");
  const std::string name = path.string();
  const Zip zip = open_archive(path);
  const std::uint64_t archive_bytes = std::filesystem::file_size(path);
  std::uint64_t compressed = 0;
  std::set<std::string> names;
  DataArrays data;
  const auto count = static_cast<zip_uint64_t>(zip_get_num_entries(zip.get(), 0));
  for (zip_uint64_t i = 0; i < count; ++i) {
    const zip_stat_t member = checked_member(zip.get(), i, name);
    if (!names.insert(member.name).second) refuse(name, "holds \"{}\" twice", member.name);
    // Members that share their bytes would get round the limit that each of them has.
    if (member.comp_size > archive_bytes - compressed)
      refuse(name, "the archive is damaged: its members overlap");
    compressed += member.comp_size;
    data.arrays.push_back(read_member(zip.get(), i, member, name));
  }
  data.files = {{path, file_sha256(path)}};
  return data;
}

}  // namespace sweep
