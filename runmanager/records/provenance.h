// The origin of a result: program, source, machine, command line, data.
#pragma once

#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/suggest.h"  // typed_program(), with which a shell_command() begins
#include "core/data/dataset.h"

namespace sweep {

/// In a run's provenance: the GPUs that it had for itself, as CUDA_VISIBLE_DEVICES names them.
inline constexpr const char* kGpusKey = "gpus";

/// Goes up whenever a change of the program changes the bits of a run's results. Finished runs of another
/// version are trained again. 3: the CPU engine's convolutions use Winograd's algorithms, whose sums round
/// differently; 4: fewer partial sums of gradients in networks without convolutions.
inline constexpr int kNumericsVersion = 4;

/// "2024-05-01T12:00:00Z": the current time, or another.
std::string utc_time(std::time_t time = std::time(nullptr));

/// Seconds of a clock that is never set: differences of them are times. Thread-safe.
double steady_seconds();

/// "0.1.0".
std::string program_version();
/// The commit that the program was built from, with "-dirty" if files had changed; "unknown" outside of git.
std::string program_revision();

/// The provenance that all runs of one start share: version, revision, compiler, numerics, machine (host,
/// system, processor, cores, memory, devices), working directory, command line and time of the start.
nlohmann::ordered_json program_provenance(const std::vector<std::string>& command);

/// The data set's name, its files with their SHA-256, and the files that were skipped, with reasons.
nlohmann::ordered_json dataset_provenance(const Dataset& dataset);

/// The parts of the data set with their number of samples, and how many those are of each class, or mean and
/// deviation of each number: [{"part": "train", "samples": 3, "classes": {"cat": 1, "dog": 2}}], or
/// "targets": {"price": {"mean": 1.5, "deviation": 0.5}}.
nlohmann::ordered_json dataset_balance(const Dataset& dataset);

/// One line that a shell splits into `words` again; words are quoted where needed.
std::string shell_command(const std::vector<std::string>& words);
/// The same with a path as the last word, which the command does not take for an option: "sweep resume ./-x".
std::string shell_command(std::vector<std::string> words, const std::filesystem::path& path);

}  // namespace sweep
