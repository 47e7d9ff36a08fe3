// Why runs have no results.
#pragma once

#include <string>
#include <vector>

#include "runmanager/report/report_data.h"

namespace sweep {

/// A line per status and reason: "8 runs skipped: cuda cannot be used: …". Then the runs that are still to
/// come.
std::vector<std::string> run_notes(const ReportData& data);

}  // namespace sweep
