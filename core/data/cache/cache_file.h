// One file with the samples of a decoded data set, to be mapped into memory: see mapped_tensors.h.
//
// Its arrays are the samples and the labels of each part, and the description in JSON, which is known last.
// The metadata is the key and the SHA-256 of the description. Opening a file checks both and all sizes; it
// does not read the samples.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/file.h"
#include "core/data/readers/image_folder.h"
#include "core/data/readers/named_arrays.h"
#include "core/data/readers/safetensors/mapped_tensors.h"

namespace sweep {

/// Writes a file while its samples are decoded. Not thread-safe.
class CacheFileWriter final : public SampleStore {
 public:
  /// Begins a file for samples of at most `max_bytes` together, whose room on the disk it takes at once if
  /// the file system can. Throws IoError, as the functions below.
  CacheFileWriter(const std::filesystem::path& path, std::uint64_t max_bytes);

  void begin(const std::string& name, std::size_t max_bytes) override;
  void append(std::span<const std::uint8_t> bytes) override;
  ArrayValues end(const Shape& shape) override;

  /// Writes the rest of `data`, the samples of which were appended, for `key`, and lets these be the file's
  /// memory, which stays until the last of them is gone. Paths in `data` that are below `root` are those of
  /// whoever reads the file.
  void finish(const std::string& key, const std::filesystem::path& root, DataArrays& data);

  /// Gives the file its name: a reader sees the whole file or none. Without this call it vanishes with the
  /// samples. After finish().
  void publish() { file_.publish(); }

 private:
  NewFile file_;
  TensorWriter tensors_;
};

/// Maps what a CacheFileWriter wrote, with `root` before the paths. The samples are the file's memory, which
/// stays until the last of them is gone. Returns nothing if there is no such file, if it was written for
/// another key or by another version, or if it is damaged. Does not throw.
std::optional<DataArrays> read_cache_file(const std::filesystem::path& path, const std::string& key,
                                          const std::filesystem::path& root);

}  // namespace sweep
