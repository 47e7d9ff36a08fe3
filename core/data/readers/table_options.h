// Choices about tables and arrays, and what became of columns.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sweep {

/// The treatment of table cells without a value, and of NaN in arrays.
enum class MissingValues {
  kError,  // the file is refused
  kMean    // NaN; whoever knows the training samples replaces it with fill_missing()
};

/// Where an array of images, [count, a, b, c], has its channels.
enum class ChannelOrder {
  kAuto,   // by its shape; one that does not say so is refused
  kFirst,  // [count, channels, height, width]
  kLast    // [count, height, width, channels]
};

/// The encoding of text columns as features.
enum class Categories {
  kOneHot,  // one feature per category, 0 or 1, named COLUMN=CATEGORY
  kOrdinal  // one feature: the index in the sorted list of categories
};

/// The mark before the fraction of a number.
enum class DecimalMark {
  kAuto,  // a point; a comma in columns that have it in a table that is not separated by commas
  kPoint,
  kComma
};

/// How a table's text is written. UTF-16 is known by the mark that it begins with.
enum class TextEncoding { kUtf8, kLatin1 };

/// How a category is read that was not there in training.
enum class UnknownCategory {
  kError,  // its row is refused
  kZeros   // none of the features of its column is 1
};

/// A column of a table that became features: other tables are read for the same network by it.
struct FeatureColumn {
  std::string name;
  std::vector<std::string> categories{};  // in order; empty: the column holds numbers
  bool one_hot = false;                   // a feature per category, else one
  bool decimal_comma = false;             // of its numbers
  /// How many features it became.
  std::size_t features() const { return one_hot ? categories.size() : 1; }
  /// Their names: its own, or COLUMN=CATEGORY.
  std::vector<std::string> feature_names() const;
  friend bool operator==(const FeatureColumn&, const FeatureColumn&) = default;
};

}  // namespace sweep
