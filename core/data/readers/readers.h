// The formats of data that can be read, one row each, and their readers.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/readers/array_values.h"
#include "core/data/readers/dataset_spec.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/named_arrays.h"

namespace sweep {

struct DataFormat {
  std::string_view name;         // as in a sweep file: "image_folder"
  std::string_view description;  // for a person whose data is not recognised: what it has to look like
  /// Whether `path`, a file or a folder, is in this format, by a look at its content. Does not
  /// throw DataError.
  bool (*recognise)(const std::filesystem::path& path);
  /// Reads what recognise() knows, and says exactly what is wrong with anything else. Throws DataError.
  DataArrays (*read)(std::span<const std::filesystem::path> paths, const ReadOptions& options);
  bool decodes_images = false;  // uses the options for images
  bool has_labels = false;      // a label or targets can be named
  bool is_table = false;        // uses all options for tables
  /// Samples come class by class, so that the last ones are of one class.
  bool sorted_by_class = false;
};

/// All formats, in the order in which they are tried: the narrower first.
std::span<const DataFormat> data_formats();

/// The format called `name`. Throws ConfigError, which lists all names, if there is none.
const DataFormat& require_format(std::string_view name);

/// The first format that recognises `path`, or nullptr.
const DataFormat* recognise_format(const std::filesystem::path& path);

/// The files and folders that `source` names: itself if it exists, otherwise what it matches as a
/// glob(7) pattern, sorted by name. Throws DataError if that is nothing.
std::vector<std::filesystem::path> expand_source(const std::string& source);

/// The format called `name`, or if that is empty, the one that recognises the first of `paths`. Throws
/// DataError, which lists the formats if none fits; ConfigError for an unknown name.
const DataFormat& choose_format(std::string_view name, std::span<const std::filesystem::path> paths);

// The reader of each format, as DataFormat promises; here is what each may hold. All throw DataError. Memory
// is taken only for what a file can hold. The functions of single files are for tests, which have no folders.

/// The IDX files of MNIST and similar sets: a header with the extents of one array of bytes, then the bytes,
/// http://yann.lecun.com/exdb/mnist/. A folder with kIdxFiles, each plain or with ".gz"; those for tests may
/// be missing. Or a file of images, which is read alone.
inline constexpr std::string_view kIdxFiles[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                                 "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
bool is_idx(const std::filesystem::path& path);
DataArrays read_idx_dataset(std::span<const std::filesystem::path> paths, const ReadOptions& options);
/// Reads a file of unsigned bytes with `dimensions` extents. Messages say what was found and expected.
NamedArray read_idx(InputFile& file, std::size_t dimensions);

/// The binary version of CIFAR, https://www.cs.toronto.edu/~kriz/cifar.html: kCifar10Files, of which the last
/// may be missing, and the names in batches.meta.txt; or kCifar100Files and the names in
/// fine_label_names.txt, whose labels are the fine ones. In `path` or in the folder that the
/// archive makes in it; compressed by gzip under the same names, or plain. Samples are bytes, [3, 32, 32].
inline constexpr std::string_view kCifar10Files[] = {"data_batch_1.bin", "data_batch_2.bin",
                                                     "data_batch_3.bin", "data_batch_4.bin",
                                                     "data_batch_5.bin", "test_batch.bin"};
inline constexpr std::string_view kCifar100Files[] = {"train.bin", "test.bin"};
bool is_cifar10(const std::filesystem::path& path);
bool is_cifar100(const std::filesystem::path& path);
DataArrays read_cifar10(std::span<const std::filesystem::path> paths, const ReadOptions& options);
DataArrays read_cifar100(std::span<const std::filesystem::path> paths, const ReadOptions& options);
/// The layout of a record: label bytes, then 3 x 32 x 32 bytes of red, green and blue rows.
struct CifarRecord {
  std::size_t label_bytes;  // 1; 2 in CIFAR-100: coarse and fine
  int classes;              // the last label byte is below
};
inline constexpr CifarRecord kCifar10 = {1, 10};
inline constexpr CifarRecord kCifar100 = {2, 100};
/// Appends the records of one file to `samples`, bytes of [count, 3, 32, 32], and `labels`. Throws DataError
/// unless there are whole records only, at least one, with labels in range.
void read_cifar_file(InputFile& file, const CifarRecord& record, NamedArray& samples, NamedArray& labels);

/// NumPy's array file, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html: a folder of
/// .npy files, or the files given; each array has its file's name.
bool is_npy(const std::filesystem::path& path);
DataArrays read_npy_files(std::span<const std::filesystem::path> paths, const ReadOptions& options);
/// Reads an array of bool, uint8, other integers up to 64 bits, or float16, 32 and 64, of either byte order,
/// in C or Fortran order; see ArrayValues for what they become. Refuses objects, structures, text and complex
/// numbers, a shape that holds nothing, and a length that does not fit the shape.
NamedArray read_npy(const ByteSource& source);

/// NumPy's archive of arrays: a zip file with a .npy file for each, stored or deflated. Each array is called
/// as its member without ".npy". Checks each member's CRC. The SHA-256 is that of the archive. Refuses one
/// that is damaged, encrypted or compressed by another method, or that holds anything but arrays; and a
/// decompression bomb: more than 16 MiB that are more than 100 times their compressed size.
bool is_npz(const std::filesystem::path& path);
DataArrays read_npz(std::span<const std::filesystem::path> paths, const ReadOptions& options);

/// Tensors in a safetensors file, plain or gzip-compressed, in the order in which they lie there: BOOL, U8 to
/// U64, I8 to I64, F16, BF16, F32 and F64; see ArrayValues for what they become. Refuses other types and
/// whatever makes the file malformed; see tensor_file.h. The SHA-256 is that of the content.
bool is_safetensors(const std::filesystem::path& path);
DataArrays read_safetensors_data(std::span<const std::filesystem::path> paths, const ReadOptions& options);
std::vector<NamedArray> read_safetensors_arrays(InputFile& file);

/// Tables in text files with a header, plain or gzip-compressed, separated by commas, semicolons or,
/// is_tsv(), tabs. Several files, or those of a folder called .csv or .tsv, must have the same header and are
/// concatenated; files called train*, validation* (val*, valid*) and test* are these parts.
///
/// Targets: options.label names a column of classes, options.targets columns of numbers; by default a column
/// called "label" or "class", or else "target". A column called "split", if there is one, says of each row
/// whether it is "train", "validation" ("val", "valid") or "test". All other columns are features, float32,
/// [features]: see TableColumn and Categories. A first column without a name is ignored: row numbers, as
/// pandas writes them. Constant columns are kept and noted. Missing features are NaN with
/// MissingValues::kMean, refused otherwise; missing targets always are. Messages name file, line and column.
/// Throws ConfigError for a column that is not there.
///
/// With options.columns, those of a table that a network was trained on, the samples have these features;
/// columns are found by name, others are ignored. A category that was not there in training is refused, or
/// has zeros, as options.unknown says. With options.unlabelled there are no targets, and of wrong fields only
/// the row is refused: it is in DataArrays::skipped.
bool is_csv(const std::filesystem::path& path);
bool is_tsv(const std::filesystem::path& path);
DataArrays read_csv(std::span<const std::filesystem::path> paths, const ReadOptions& options);
DataArrays read_csv_file(InputFile& file, const ReadOptions& options);

/// Images in a folder per class, as torchvision's ImageFolder reads them; see scan_image_folder() for what it
/// may hold. Samples are bytes, [3, height, width] or [1, height, width] with options.grayscale, in memory
/// that processes can share. Files that are no images, damaged or too large are skipped and listed. Without
/// options.resize all images must have the size of the first. `files` holds the folder alone, with the
/// SHA-256 of lines "DIGEST  PATH\n", one per image that was used, as sha256sum prints them, by part, class
/// and path.
///
/// With options.cache, the images come from a file in that folder if they are in it, else they are decoded to
/// that file, which is kept. There is one for each folder of images and set of options. The samples are that
/// file's memory, so the folder may be larger than this machine's. What cannot be written is no error, but
/// decoded into memory, and has a line in DataArrays::notes.
///
/// A kept file belongs to the folder, by its canonical path, to the options that change a decoded pixel, and
/// to the list of files with their size, time of modification and time of status change. The latter is set by
/// the system at every write and rename, and no program can set it back, so a folder whose files have other
/// content has another list, also after `cp -p` or `touch -r`. Reading the files to hash them would take half
/// as long as decoding them. A folder is kept only if its list is the same after decoding, and old enough by
/// then that the next write would get another time (file systems count in steps of up to 2 s).
/// DataArrays::files has the SHA-256 of the files as they were decoded, so that a run's identity does not
/// depend on the cache.
bool is_image_folder(const std::filesystem::path& path);
DataArrays read_image_folder(std::span<const std::filesystem::path> paths, const ReadOptions& options);

}  // namespace sweep
