// The columns of a table: numbers, or text that stands for categories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/readers/read_options.h"

namespace sweep {

/// The role of a column.
enum class ColumnUse { kFeature, kLabel, kTarget, kSplit, kIgnored };

/// True for an empty field and the usual words for one without a value: NA, N/A, NaN, null, None, ?, in
/// any case.
bool is_missing(std::string_view field);

/// A field as a number.
enum class ParsedNumber { kNumber, kText, kNotFinite };
/// Sets `value` unless the field is text or no finite float. One too small for a float is 0.
ParsedNumber parse_number(std::string_view field, float& value);

/// The same of a number that may have a comma before its fraction, and then no point. Sets `has_comma` if it
/// has one, else leaves it.
ParsedNumber parse_number(std::string_view field, float& value, bool& has_comma);

/// `field` in quotes for a message; a long one is cut.
std::string shown_field(std::string_view field);

/// `field` without blanks around it.
std::string_view trim(std::string_view field);

/// Collects one column. Features are numbers if their first value is one; otherwise, and if the options call
/// them categorical, they are categories. Labels are categories, targets are numbers.
class TableColumn {
 public:
  /// `takes_comma`: numbers may have a decimal comma.
  TableColumn(std::string name, ColumnUse use, bool takes_comma, const ReadOptions& options);

  const std::string& name() const { return name_; }
  ColumnUse use() const { return use_; }

  /// Adds the field of the next row, which stands in `line` of `file`. Throws DataError for a missing
  /// value that is not allowed, for text and infinity in a column of numbers, and for more categories than
  /// make sense.
  void add(std::string_view field, const std::string& file, std::size_t line);

  /// To be called once, after the last row: sorts the categories, by value if all are whole numbers,
  /// otherwise by bytes, so that neither the order of rows nor the number of files matters.
  void finish();

  /// Categories in order; empty for numbers.
  const std::vector<std::string>& categories() const { return categories_; }
  bool has_decimal_comma() const { return has_comma_; }
  /// Whether it is text of which nearly every row has its own, or dates, and nobody said that these are
  /// categories.
  bool names_rows() const;
  bool holds_dates() const;
  bool is_categorical() const { return kind_ == Kind::kCategories; }
  /// Whether it becomes a feature of 0 and 1 per category.
  bool is_one_hot() const;
  /// The number, or the index of the category; NaN if it is missing.
  float value(std::size_t row) const { return values_[row]; }
  /// True if all values are the same, missing ones aside.
  bool is_constant() const;

  /// Writes the features of a row, as many as FeatureColumn::features() says.
  void write_features(std::size_t row, float* out) const;

 private:
  enum class Kind { kUnknown, kNumbers, kCategories };
  float category(std::string_view field, const std::string& file, std::size_t line);
  [[noreturn]] void fail(const std::string& problem, const std::string& file, std::size_t line) const;

  std::string name_;
  ColumnUse use_;
  const ReadOptions& options_;
  Kind kind_ = Kind::kUnknown;
  bool takes_comma_, has_comma_ = false, has_point_ = false;
  bool is_listed_ = false;          // as categorical
  bool words_are_classes_ = false;  // "None" and the like, which otherwise stand for a missing value
  std::vector<float> values_;
  std::vector<std::string> categories_;
  std::unordered_map<std::string, std::size_t> indices_;  // of categories_
};

}  // namespace sweep
