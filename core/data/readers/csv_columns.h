// The columns of a table: numbers, or text that stands for categories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/readers/csv_rows.h"
#include "core/data/readers/dataset_spec.h"

namespace sweep {

/// The role of a column.
enum class ColumnUse { kFeature, kLabel, kTarget, kSplit, kIgnored };

/// `field` without blanks around it.
std::string_view trim(std::string_view field);

/// Collects one column. Features are numbers if their first value is one; otherwise, and if the options call
/// them categorical, they are categories. A tenth of numbers among text is refused: the column holds numbers,
/// and the text may be a mark for a missing one. Labels are categories, targets are numbers.
class TableColumn {
 public:
  /// `takes_comma`: numbers may have a decimal comma. `options`, and `place`, that of the row that is added,
  /// must outlive this.
  TableColumn(std::string name, ColumnUse use, bool takes_comma, const ReadOptions& options,
              const RowPlace& place);
  /// A feature of another table, whose values become what they were there.
  TableColumn(const FeatureColumn& known, const ReadOptions& options, const RowPlace& place);

  ColumnUse use() const { return use_; }
  /// Its name and, after finish(), what it became. Of a label: its classes.
  const FeatureColumn& feature() const { return feature_; }

  /// Adds the field of the next row. Throws DataError, without adding it, for a missing value that is not
  /// allowed, for text and infinity in a column of numbers, and for more categories than make sense; in a
  /// feature of another table also for a category that was not there.
  void add(std::string_view field);
  /// Leaves out all rows but the first `rows`.
  void keep(std::size_t rows);

  /// To be called once, after the last row: sorts the categories, by value if all are whole numbers,
  /// otherwise by bytes, so that neither the order of rows nor the number of files matters. Throws DataError
  /// for text among numbers.
  void finish();

  /// Throws DataError, which `name` begins, for columns of ids, dates or free text, for points that may
  /// separate thousands next to decimal commas, and for numbers that float32 cannot tell apart. Adds to
  /// `notes` which columns have decimal commas or are constant; if any has commas, all others expect them.
  /// Requires finished columns.
  static void check(std::span<TableColumn> columns, const ReadOptions& options, const std::string& name,
                    std::vector<std::string>& notes);

  /// The number, or the index of the category; NaN if it is missing.
  float value(std::size_t row) const { return values_[row]; }
  /// Writes the features of a row, as many as FeatureColumn::features() says.
  void write_features(std::size_t row, float* out) const;

 private:
  enum class Kind { kUnknown, kNumbers, kCategories };
  void check_missing(std::string_view field) const;
  float known_value(std::string_view field) const;
  bool read_number(std::string_view field, float& number);
  float category_of(std::string_view field);
  void refuse_numbers();
  // A column of ids, dates or free text would become a feature per row, of which a network learns nothing.
  static void check_no_ids(std::span<const TableColumn> columns, const std::string& name);
  // Whether it is text of which nearly every row has its own, or dates, and nobody said that these are
  // categories.
  bool names_rows() const;
  bool holds_dates() const;
  // "1700000000 to 1700000059": the range of numbers that lie too close together, or too far from 0, for
  // float32 to tell 256 of them apart; "" for others.
  std::string unresolved_range() const;
  bool is_constant() const;
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> problem, Args&&... args) const {
    refuse(fmt::format("{}, column \"{}\"", place_->text(), feature_.name), problem,
           std::forward<Args>(args)...);
  }

  FeatureColumn feature_;
  ColumnUse use_;
  const ReadOptions* options_;
  const RowPlace* place_;
  Kind kind_ = Kind::kUnknown;
  bool takes_comma_, has_point_ = false;
  std::string thousands_;  // a number whose point may separate them, if all with a point are such
  double lowest_ = std::numeric_limits<double>::infinity(), highest_ = -lowest_;  // of the numbers
  std::size_t numbers_ = 0;  // among categories that nobody has listed
  RowPlace first_place_{};   // of the first value of such a column
  bool is_known_ = false;
  bool is_listed_ = false;          // as categorical
  bool words_are_classes_ = false;  // "None" and the like, which otherwise stand for a missing value
  std::vector<float> values_;
  std::unordered_map<std::string, std::size_t> indices_;  // of the categories
};

}  // namespace sweep
