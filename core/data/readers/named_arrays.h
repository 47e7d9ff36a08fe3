// A data set as arrays with names: of an npz archive, of npy files, or of any other file of named arrays.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/base/shape.h"
#include "core/data/readers/raw_data.h"
#include "core/data/readers/read_options.h"

namespace sweep {

/// Row-major. bool and uint8 are bytes; floats, and integers with more than one value per sample, are
/// float32; all other integers, labels above all, are int64.
using ArrayValues = std::variant<std::vector<std::uint8_t>, std::vector<float>, std::vector<std::int64_t>>;

struct NamedArray {
  std::string name;
  Shape shape;
  ArrayValues values;
};

/// Makes a data set of arrays called, in any case of letters,
///   samples  "features", "x", "data", "images" or "inputs"
///   targets  "labels", "y", "targets" or "classes"; options.label or options.targets say another name
/// with "_train", "_validation" ("_val", "_valid") or "_test" behind or "train_", … before for a part of the
/// data. Samples: [count, features], or [count, height, width] of one channel, or [count, channels, height,
/// width]; a last extent of 3 or 1 with larger ones before it means [count, height, width, channels] and is
/// moved; a shape that leaves it open is refused unless options.channels says it. Targets: [count] or [count,
/// 1] of integers are classes 0, 1, …; floats are values. All parts have the same of both. With options.label
/// whole floats are also classes. Other arrays are noted. `name` stands for the source in messages. Throws
/// DataError.
RawData data_from_arrays(std::vector<NamedArray> arrays, const ReadOptions& options, const std::string& name);

/// Samples without targets.
struct ArraySamples {
  Shape shape;  // of one sample
  std::size_t count = 0;
  SampleValues values;
};

/// The samples among `arrays`, which data_from_arrays() would find, or the only array whatever its name.
/// Throws DataError if there are several, or none, or if one sample is not of the shape `wanted`, with its
/// channels first or last.
ArraySamples samples_from_arrays(std::vector<NamedArray> arrays, const ReadOptions& options,
                                 const Shape& wanted, const std::string& name);

/// True for a file of one array, or a folder with such files.
bool is_npy(const std::filesystem::path& path);
/// Reads a folder of .npy files, or the files given; each array has its file's name.
RawData read_npy_files(std::span<const std::filesystem::path> paths, const ReadOptions& options);

}  // namespace sweep
