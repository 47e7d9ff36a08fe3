// Choices about the columns of a table.
#pragma once

namespace sweep {

/// The treatment of table cells without a value, and of NaN in arrays.
enum class MissingValues {
  kError,  // the file is refused
  kMean    // NaN; whoever knows the training samples replaces it with fill_missing()
};

/// The encoding of text columns as features.
enum class Categories {
  kOneHot,  // one feature per category, 0 or 1, named COLUMN=CATEGORY
  kOrdinal  // one feature: the index in the sorted list of categories
};

}  // namespace sweep
