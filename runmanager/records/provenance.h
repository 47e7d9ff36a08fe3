// Where a result comes from: program, source, machine, command line, data.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace sweep {

/// Counts up whenever the same run gives other bits than before: a finished run of an older one is trained
/// again. 3: convolutions of the CPU engine by Winograd's algorithms, whose sums round otherwise; 4: fewer
/// partial sums of gradients without convolutions.
inline constexpr int kNumericsVersion = 4;

/// "0.1.0".
/// Now, by the clock on the wall: "2024-05-01T12:00:00Z".
std::string utc_time();

std::string program_version();
/// The commit that the program was built from, with "-dirty" if files had changed; "unknown" outside of git.
std::string program_revision();

/// What is the same for all runs of one start of the program: version, revision, compiler, numerics, machine
/// (host, system, processor, cores, memory, devices), working directory, command line and time of the start.
nlohmann::ordered_json program_provenance(const std::vector<std::string>& command);

/// The data set's name and files with their SHA-256.
nlohmann::ordered_json dataset_provenance(const Dataset& dataset);

/// `words` as a shell takes them, quoted where needed.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace sweep
