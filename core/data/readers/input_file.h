// Opening the files of a data set: regular files only, with limits on what they may ask for.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/shape.h"
#include "core/data/readers/sha256.h"

namespace sweep {

/// Throws `Error`, "NAME: PROBLEM": `name` is a path or a name for one, `problem` as in fmt::format().
template <typename Error = DataError, typename... Args>
[[noreturn]] void refuse(const std::filesystem::path& name, fmt::format_string<Args...> problem,
                         Args&&... args) {
  throw Error(fmt::format("{}: {}", name.string(), fmt::format(problem, std::forward<Args>(args)...)));
}

/// `text` between double quotes, for messages.
std::string quoted_name(std::string_view text);
/// The first `most` of `names`, quoted, and how many more there are.
std::string listed_names(std::span<const std::string> names, std::size_t most = 6);

/// `message` without `path` at its beginning, for lists of files with their paths.
std::string without_path(const std::string& message, const std::filesystem::path& path);

/// Returns the bytes of a regular file. Throws DataError if it is larger than `max_bytes` or cannot be read.
std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path, std::uint64_t max_bytes);

/// The SHA-256 of the bytes of a regular file. Throws DataError.
std::string file_sha256(const std::filesystem::path& path);

/// The first bytes of a regular file, decompressed: at most `count`. Returns an empty string if it cannot be
/// read; for telling formats apart.
std::string first_bytes(const std::filesystem::path& path, std::size_t count);

/// The names in `directory` that do not begin with a dot, sorted. Sets *problem, unless it is null: "" if it
/// could be read.
std::vector<std::string> visible_names(const std::filesystem::path& directory,
                                       std::string* problem = nullptr);

/// The visible regular files of a directory whose names, in lower case, end in one of `endings`, sorted by
/// name.
std::vector<std::filesystem::path> files_with_ending(const std::filesystem::path& directory,
                                                     const std::vector<std::string>& endings);

/// `paths`, with the files_with_ending() in place of each directory. Throws DataError if there are none.
std::vector<std::filesystem::path> files_in(std::span<const std::filesystem::path> paths,
                                            const std::vector<std::string>& endings);

/// The only one of `paths`. Throws DataError, which begins with `format`, if there are more or none.
const std::filesystem::path& only_path(std::span<const std::filesystem::path> paths, std::string_view format);

/// Throws DataError if `count` samples of `shape` with values of `value_bytes` bytes need more than
/// usable_memory(). `name` stands for the source in the message.
void check_memory(std::uint64_t count, const Shape& shape, std::size_t value_bytes, const std::string& name);

/// No deflate stream expands more than this (zlib's technical notes: 1032:1).
inline constexpr std::uint64_t kDeflateExpansion = 1032;

/// Throws DataError, which begins with `name`, for a decompression bomb: more than 16 MiB of content that is
/// stored in less than a hundredth of its bytes.
void refuse_bomb(const std::string& name, std::uint64_t content_bytes, std::uint64_t stored_bytes);

/// A data file that may be gzip-compressed, which its content decides, not its name. It is read from its
/// start to its end and inflated on the way: neither the compressed file nor a second copy of the content is
/// held in memory. Not thread-safe.
class InputFile {
 public:
  /// `name` stands for the file in messages. Throws DataError if it cannot be opened.
  InputFile(const std::filesystem::path& path, std::string name);
  explicit InputFile(const std::filesystem::path& path) : InputFile(path, path.string()) {}
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Fills `out` and returns out.size(), or less at the end of the content. Throws DataError if the
  /// compressed data is damaged, cut short, followed by something else, or a decompression bomb.
  std::size_t read(std::span<std::uint8_t> out);

  /// Returns the next `count` bytes, or less at the end of the content.
  std::string read_text(std::size_t count);

  /// The file cannot hold more content than this. Check a header against it before allocating what it asks
  /// for.
  std::uint64_t max_content() const;
  const std::string& name() const { return name_; }

  /// SHA-256 of the content, of which it reads what is left. Call once.
  std::string sha256();

 private:
  struct Inflate;
  std::size_t read_compressed(std::span<std::uint8_t> out);

  FileDescriptor file_;
  std::string name_;
  std::uint64_t file_bytes_ = 0;
  std::vector<std::uint8_t> buffer_;  // compressed bytes; those before position_ are consumed
  std::size_t position_ = 0;
  std::unique_ptr<Inflate> inflate_;  // null for a plain file
  std::uint64_t done_ = 0;
  Sha256 digest_;
};

}  // namespace sweep
