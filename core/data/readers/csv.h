// Tables in CSV and TSV files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "core/data/readers/input_file.h"
#include "core/data/readers/named_arrays.h"
#include "core/data/readers/read_options.h"

namespace sweep {

/// True for a text file whose first line holds a comma, a semicolon or a tab, or a folder with files called
/// .csv or .tsv. is_tsv(): those with tabs.
bool is_csv(const std::filesystem::path& path);
bool is_tsv(const std::filesystem::path& path);

/// Reads tables with a header, plain or gzip-compressed, separated by commas, tabs or semicolons. Several
/// files, or those of a folder, must have the same header and are put one behind the other; files called
/// train*, validation* (val*, valid*) and test* are these parts.
///
/// Targets: options.label names a column of classes, options.targets columns of numbers; by default a column
/// called "label" or "class", or else "target". A column called "split", if there is
/// one, says of each row whether it is "train", "validation" ("val", "valid") or "test". All other columns
/// are features, float32, [features]: see TableColumn and Categories. A first column without a name is
/// ignored: row numbers, as pandas writes them. Constant columns are kept and noted. Missing features are NaN
/// with MissingValues::kMean, refused otherwise; missing targets always are. Options used: those for tables
/// and for all formats. Throws DataError, naming file, line and column, or ConfigError for a column that is
/// not there.
///
/// With options.columns, those of a table that a network was trained on, the samples have these features, and
/// no targets; columns are found by name, others are ignored. A row with a category that was not there in
/// training is in DataArrays::skipped, or has zeros for it, as options.unknown says.
DataArrays read_csv(std::span<const std::filesystem::path> paths, const ReadOptions& options);

/// The same from files that are open, all of the training part.
DataArrays read_csv_files(std::span<InputFile* const> files, const ReadOptions& options);

}  // namespace sweep
