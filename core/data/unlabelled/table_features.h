// The features of a table's rows, made as those of another table were.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/data/readers/input_file.h"
#include "core/data/sample_format.h"

namespace sweep {

struct RefusedRow {
  std::size_t line;    // of the file
  std::string reason;  // without the file's name
};

struct TableFeatures {
  std::vector<float> values;       // [rows, features]
  std::vector<std::size_t> lines;  // of the file in which each row starts, from 1
  std::vector<RefusedRow> refused;
};

/// Reads CSV or TSV as read_csv() does, with the columns of `format`, by name and in any order; others, such
/// as that of the targets, are ignored. A missing value becomes its fill value. A row with a category that
/// was not there in training is refused, or has zeros for it, as format.unknown says. Throws DataError,
/// naming file, line and column, for columns that are missing, for text among numbers, and for a missing
/// value if there is no fill value.
TableFeatures read_table_features(InputFile& file, const SampleFormat& format);

}  // namespace sweep
