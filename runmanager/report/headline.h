// The answer of a sweep in a few sentences.
#pragma once

#include <string>
#include <vector>

#include "runmanager/report/report_data.h"

namespace sweep {

struct Headline {
  std::string best;  // "The best run reaches 91.20% validation accuracy: lr=0.01, …"; or why there is none
  std::vector<std::string> more{};  // what settings change, how devices compare
};

Headline headline(const ReportData& data);

}  // namespace sweep
