#include "runmanager/inspect/fsck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/readers/input_file.h"
#include "core/data/safetensors.h"
#include "core/data/sample_format.h"
#include "core/network/network.h"
#include "runmanager/config/run_config.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "tbwriter/event_files.h"
#include "tbwriter/event_reader.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

using tbwriter::ReadEnd;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// 0 for what has no size, such as a pipe.
std::uint64_t size_of(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  return error ? 0 : bytes;
}

// TensorBoard recognises an events file by its first record, the file version. Returns what is wrong with it,
// or "".
std::string first_record_problem(std::string_view payload) {
  try {
    if (tbwriter::decode_event(payload).file_version.starts_with("brain.Event:")) return "";
    return "record 0 is no file version: TensorBoard does not know this as an events file";
  } catch (const DataError&) {
    return "record 0 is no event";
  }
}

// Reads every record. Length and payload of a record have checksums of their own: after a damaged payload the
// next record can be read, after a damaged length nothing can. A torn last record is what a killed run
// leaves, so it is a problem only if the run is `completed`, and a note otherwise.
void check_events(const fs::path& path, bool completed, FileFinding& finding) {
  tbwriter::EventReader reader(path);
  std::uint64_t readable = 0, record = 0;
  for (;; ++record) {
    const auto payload = reader.next();
    if (payload) {
      ++readable;
      if (record > 0) continue;
      const std::string problem = first_record_problem(*payload);
      if (!problem.empty()) finding.problems.push_back(problem);
      continue;
    }
    if (reader.end() != ReadEnd::kBadPayload) break;
    finding.problems.push_back(
        fmt::format("record {} at byte {} is damaged; its data is lost", record, reader.position()));
    reader.skip_record();
  }
  finding.records = readable;
  const std::uint64_t bytes = size_of(path), rest = bytes - std::min<std::uint64_t>(bytes, reader.position());
  if (reader.end() == ReadEnd::kBadLength) {
    finding.problems.push_back(
        fmt::format("record {} at byte {} has a damaged length; the {} bytes from there on are lost", record,
                    reader.position(), rest));
  } else if (reader.end() != ReadEnd::kEnd) {
    const std::string end = fmt::format("{}: record {} at byte {} is not whole, {} bytes are lost",
                                        describe(reader.end()), record, reader.position(), rest);
    (completed ? finding.problems : finding.notes)
        .push_back(completed ? end + ", though the run was completed" : end);
  } else if (record == 0) {
    (completed ? finding.problems : finding.notes).emplace_back("is empty");
  }
}

// Checks the record of the run in `directory` against itself.
void check_record(const RunRecord& record, const fs::path& directory, FileFinding& finding) {
  if (record.name != directory.filename())
    finding.notes.push_back(fmt::format("is of a run called {}", record.name));
  for (std::size_t i = 0; i < record.epochs.size(); ++i) {
    const auto expected = static_cast<int>(i) + 1;
    if (record.epochs[i].epoch == expected) continue;
    finding.problems.push_back(fmt::format("epoch {} is in the place of epoch {}; epochs are lost",
                                           record.epochs[i].epoch, expected));
    break;
  }
  if (record.status != RunStatus::kCompleted) {
    finding.notes.push_back(fmt::format("status of the run: {}{}", to_string(record.status),
                                        record.error ? ": " + *record.error : ""));
  } else if (record.stop_reason.empty() && record.config.is_object() && record.config.contains("epochs") &&
             record.config["epochs"].is_number_integer() &&
             record.config["epochs"].get<std::size_t>() != record.epochs.size()) {
    finding.problems.push_back(fmt::format("the run is completed with {} epochs of {}", record.epochs.size(),
                                           record.config["epochs"].get<std::size_t>()));
  }
}

// The run's network; none if the record does not have all that it takes.
std::optional<Network> recorded_network(const RunRecord& record) try {
  const SampleFormat samples = sample_format_from_json(record.provenance.at("input"), "input");
  return Network(network_of(record.config.at("network")), samples.shape);
} catch (const Error&) {
  return std::nullopt;
} catch (const Json::exception&) {
  return std::nullopt;
}

// A note, not a problem: the weights of a run that diverged are not finite.
void count_non_finite(const TensorFile& file, FileFinding& finding) {
  std::ptrdiff_t count = 0;
  for (const NamedTensor& tensor : file.tensors)
    count += std::ranges::count_if(tensor.values, [](float value) { return !std::isfinite(value); });
  if (count > 0) finding.notes.push_back(fmt::format("{} of its values are not finite", count));
}

// Checks that the checkpoint of a completed run was written after its last epoch.
void check_epoch(std::optional<int> epoch, const RunRecord& record, FileFinding& finding) {
  if (!epoch || record.status != RunStatus::kCompleted || record.epochs.empty()) return;
  const int last = record.epochs.back().epoch;
  if (*epoch == last) return;
  finding.problems.push_back(
      fmt::format("is of epoch {}, but the run was completed with epoch {}", *epoch, last));
}

// `record` is the run's, or null if it cannot be read or the file is not of its last epoch; then the network
// is not checked.
void check_checkpoint(const TensorFile& file, const RunRecord* record, FileFinding& finding) {
  if (file.tensors.empty()) finding.problems.emplace_back("holds no weights");
  if (record != nullptr) {
    check_epoch(last_epoch_of(file), *record, finding);
    if (const auto network = recorded_network(*record))
      std::ranges::move(misfits(file, *network, FileUse::kCheckpoint), std::back_inserter(finding.problems));
  }
  count_non_finite(file, finding);
}

class DirectoryChecker {
 public:
  explicit DirectoryChecker(const fs::path& top) : top_(top) {}

  FsckReport check() {
    check(top_);
    std::ranges::stable_sort(files_, {}, &FileFinding::path);
    return {.directory = top_, .files = std::move(files_)};
  }

 private:
  // Checks a directory and everything below it, and returns the records found. Subdirectories come first,
  // because the results are compared with their records. Links are not followed, since they may form a cycle.
  RecordsByName check(const fs::path& directory) {
    RecordsByName records;
    std::error_code error;
    std::vector<fs::path> children;
    for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
      if (!it->is_symlink() && it->is_directory()) children.push_back(it->path());
    }
    if (error) {
      add(directory, {.problems = {"cannot be read: " + error.message()}});
      return records;
    }
    const ResultFiles results = read_result_files(directory);
    for (const fs::path& child : children) {
      for (auto& [name, record] : check(child))
        records.emplace((name == "." ? child.filename() : child.filename() / name).string(),
                        std::move(record));
    }
    check_run(directory, records);
    for (FileFinding& finding : check_results(directory, results, records)) {
      const fs::path path = directory / finding.path;
      add(path, std::move(finding));
    }
    return records;
  }

  // Checks the files of a run, if `directory` is one's.
  void check_run(const fs::path& directory, RecordsByName& records) {
    const std::optional<RunRecord> record = check_run_record(directory, records);
    const bool completed = record && record->status == RunStatus::kCompleted;
    const std::vector<std::string> events = list_events(directory);
    for (const std::string& name : events) {
      add_checked(directory / name, "", [&](FileFinding& finding) {
        check_events(directory / name, completed && name == events.back(), finding);
      });
    }
    if (completed && events.empty())
      add(directory / "events.out.tfevents.*",
          {.problems = {"is missing: the run is completed, and TensorBoard has nothing of it"}});
    if (completed && !events.empty()) check_event_sizes(directory, *record);
    check_checkpoints(directory, record);
  }

  // Adds to the files' findings that they are shorter than at the end of the run.
  void check_event_sizes(const fs::path& directory, const RunRecord& record) {
    for (const auto& [name, bytes] : record.event_files) {
      const std::string path = (directory / name).lexically_relative(top_).string();
      // From the end: the run's own files are the last ones.
      const auto finding = std::ranges::find(files_.rbegin(), files_.rend(), path, &FileFinding::path);
      if (finding == files_.rend()) {
        add(directory / name, {.problems = {"is missing, though run.json names it"}});
      } else if (finding->bytes < bytes) {
        finding->problems.push_back(
            fmt::format("has {} bytes, but had {} at the end of the run", finding->bytes, bytes));
      }
    }
  }

  std::optional<RunRecord> check_run_record(const fs::path& directory, RecordsByName& records) {
    const fs::path path = directory / kRunRecordFile;
    if (!is_there(path)) return std::nullopt;
    std::optional<RunRecord> record;
    add_checked(path, "; the run's record is lost", [&](FileFinding& finding) {
      record = read_run_record(path);
      check_record(*record, fs::weakly_canonical(directory), finding);
    });
    records.emplace(".", record);
    return record;
  }

  void check_checkpoints(const fs::path& directory, const std::optional<RunRecord>& record) {
    const fs::path last = directory / kCheckpointFile, best = directory / kBestFile;
    // Before the run's end, run.json may be older than the file of the best epoch.
    const bool is_final = record && record->status == RunStatus::kCompleted;
    check_file(last, record ? &*record : nullptr);
    check_file(directory / kPreviousCheckpointFile, nullptr);
    check_file(directory / kStartFile, nullptr, [&](int epoch) -> std::string {
      const Lineage lineage = record ? lineage_of(record->config) : Lineage();
      if (lineage.empty() || epoch == lineage.back().until) return "";
      return fmt::format("is of epoch {}, but the run continues {} after epoch {}", epoch, lineage.back().run,
                         lineage.back().until);
    });
    check_file(best, nullptr, [&](int epoch) -> std::string {
      if (!is_final || epoch == record->best_epoch) return "";
      return fmt::format("is of epoch {}, but run.json calls {} the best", epoch,
                         record->best_epoch ? std::to_string(*record->best_epoch) : "none");
    });
    if (!is_final) return;
    if (record->best_epoch && !is_there(best))
      add(best, {.problems = {fmt::format("is missing: the weights of epoch {}, the best, are lost",
                                          *record->best_epoch)}});
    if (!is_there(last) && has_checkpoint(*record))
      add(last, {.problems = {"is missing: the weights are lost"}});
  }

  // Checks a checkpoint, if it is there. `record`: see check_checkpoint(). `problem_of` returns what is wrong
  // with its epoch, or "".
  void check_file(
      const fs::path& path, const RunRecord* record,
      const std::function<std::string(int epoch)>& problem_of = [](int) { return ""; }) {
    if (!is_there(path)) return;
    add_checked(path, "; the weights are lost", [&](FileFinding& finding) {
      const TensorFile file = read_safetensors(path);
      verify_checksums(file);
      check_checkpoint(file, record, finding);
      const std::optional<int> epoch = last_epoch_of(file);
      const std::string problem = epoch && !finding.damaged() ? problem_of(*epoch) : "";
      if (!problem.empty()) finding.problems.push_back(problem);
    });
  }

  // Adds what `check` finds in a file. If it throws, the file is damaged; `lost` ends what is said then.
  template <typename Check>
  void add_checked(const fs::path& path, const char* lost, const Check& check) {
    FileFinding finding;
    try {
      check(finding);
    } catch (const DataError& error) {
      finding.problems.push_back(without_path(error.what(), path) + lost);
    }
    add(path, std::move(finding));
  }

  std::vector<std::string> list_events(const fs::path& directory) try {
    return tbwriter::list_event_files(directory);
  } catch (const IoError& error) {
    add(directory, {.problems = {without_path(error.what(), directory)}});
    return {};
  }

  void add(const fs::path& path, FileFinding finding) {
    finding.path = path.lexically_relative(top_).string();
    finding.bytes = size_of(path);
    files_.push_back(std::move(finding));
  }

  fs::path top_;
  std::vector<FileFinding> files_;
};

const char* state(const FileFinding& file) {
  return file.damaged() ? "damaged" : file.notes.empty() ? "ok" : "note";
}

}  // namespace

std::size_t FsckReport::damaged() const {
  return static_cast<std::size_t>(std::ranges::count_if(files, &FileFinding::damaged));
}

std::uint64_t FsckReport::bytes() const {
  return std::accumulate(files.begin(), files.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const FileFinding& file) { return sum + file.bytes; });
}

FsckReport check_directory(const fs::path& directory) {
  require_directory(directory, "the directory of a sweep, of a run, or one with these in it");
  FsckReport report = DirectoryChecker(directory).check();
  if (report.files.empty())
    throw DataError(directory.string() + ": nothing to check: no events file, no run.json, no checkpoint");
  return report;
}

std::string fsck_text(const FsckReport& report, bool all) {
  std::string text;
  std::size_t notes = 0, good = 0;
  for (const FileFinding& file : report.files) {
    const bool is_good = !file.damaged() && file.notes.empty();
    good += is_good;
    if (is_good && !all) continue;
    text += fmt::format("{:<8} {}", state(file), file.path);
    if (file.records) text += fmt::format(": {} readable", counted(*file.records, "record"));
    text += '\n';
    for (const std::string& problem : file.problems) text += fmt::format("           {}\n", problem);
    for (const std::string& note : file.notes) text += fmt::format("           note: {}\n", note);
    notes += file.notes.size();
  }
  return text + fmt::format("{}: {}, {:.1f} MB; {} ok, {}, {}\n", report.directory.string(),
                            counted(report.files.size(), "file"), static_cast<double>(report.bytes()) / 1e6,
                            good,
                            report.damaged() == 0 ? "no damage" : fmt::format("{} damaged", report.damaged()),
                            counted(notes, "note"));
}

Json fsck_json(const FsckReport& report) {
  Json files = Json::array();
  for (const FileFinding& file : report.files) {
    Json json = {{"path", file.path}, {"state", state(file)}, {"bytes", file.bytes}};
    if (file.records) json["records"] = *file.records;
    json["problems"] = file.problems;
    json["notes"] = file.notes;
    files.push_back(std::move(json));
  }
  return {{"directory", report.directory.string()},
          {"ok", report.damaged() == 0},
          {"damaged", report.damaged()},
          {"bytes", report.bytes()},
          {"files", std::move(files)}};
}

}  // namespace sweep
