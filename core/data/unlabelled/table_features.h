// The features of a table's rows, made as those of another table were.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/data/readers/input_file.h"
#include "core/data/sample_format.h"

namespace sweep {

struct TableFeatures {
  std::vector<float> values;       // [rows, features]
  std::vector<std::size_t> lines;  // of the file in which each row starts, from 1
};

/// Reads CSV or TSV as read_csv() does, with the columns of `format`, by name and in any order; others, such
/// as that of the targets, are ignored. A missing value becomes its fill value. Throws DataError, naming
/// file, line and column, for columns that are missing, for text among numbers, for a category that was not
/// there in training, and for a missing value where there is no fill value.
TableFeatures read_table_features(InputFile& file, const SampleFormat& format);

}  // namespace sweep
