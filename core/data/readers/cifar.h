// The binary version of CIFAR-10 and CIFAR-100, https://www.cs.toronto.edu/~kriz/cifar.html.
#pragma once

#include <filesystem>
#include <span>

#include "core/data/readers/input_file.h"
#include "core/data/readers/named_arrays.h"
#include "core/data/readers/read_options.h"

namespace sweep {

/// The layout of a record: label bytes, then 3 x 32 x 32 bytes of red, green and blue rows.
struct CifarRecord {
  std::size_t label_bytes;  // 1; 2 in CIFAR-100: coarse and fine
  int classes;              // the last label byte is below
};
inline constexpr CifarRecord kCifar10 = {1, 10};
inline constexpr CifarRecord kCifar100 = {2, 100};

/// True if `path`, or the folder in it that the archive makes, holds data_batch_1.bin / train.bin of
/// whole records.
bool is_cifar10(const std::filesystem::path& path);
bool is_cifar100(const std::filesystem::path& path);

/// Reads data_batch_1.bin … data_batch_5.bin, test_batch.bin if it is there, and the names in
/// batches.meta.txt. Samples are bytes, [3, 32, 32]. Files may be compressed by gzip, under the same names.
/// Throws DataError.
DataArrays read_cifar10(std::span<const std::filesystem::path> paths, const ReadOptions& options);

/// Reads train.bin, test.bin if it is there, and the names in fine_label_names.txt; targets are the
/// fine labels.
DataArrays read_cifar100(std::span<const std::filesystem::path> paths, const ReadOptions& options);

/// Appends the records of one file to `samples`, bytes of [count, 3, 32, 32], and `labels`. Throws DataError
/// unless there are whole records only, at least one, with labels in range, and for more memory than there
/// is.
void read_cifar_file(InputFile& file, const CifarRecord& record, NamedArray& samples, NamedArray& labels);

}  // namespace sweep
