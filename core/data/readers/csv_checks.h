// What is wrong with the columns of a table as a whole.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/data/readers/csv_columns.h"

namespace sweep {

/// Throws DataError, which `name` begins, for columns of ids, dates or free text, for points that may
/// separate thousands next to decimal commas, and for numbers that float32 cannot tell apart. Adds to `notes`
/// which columns have decimal commas or are constant. Requires finished columns.
void check_columns(std::span<const TableColumn> columns, const ReadOptions& options, const std::string& name,
                   std::vector<std::string>& notes);

}  // namespace sweep
