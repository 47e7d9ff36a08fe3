// What the runs of a sweep say about one goal, in every form.
#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runmanager/answers/statistics.h"
#include "runmanager/terminal/table.h"

namespace sweep {

struct Answer {
  std::string text;             // the tables with their explanations; ends with a newline
  nlohmann::ordered_json json;  // everything, with the key of the goal's "metric"; null for what is not known
  std::vector<TextTable> tables;
};

/// A share from 0 to 1 as a table in `format` has it: "12.5%", in CSV plain.
inline std::string share_cell(double share, TableFormat format) {
  return format == TableFormat::kCsv ? fmt::format("{}", share) : share_text(share);
}

}  // namespace sweep
