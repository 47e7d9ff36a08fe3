// What else the program reads: events, descriptions of samples, records and whole directories of sweeps.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/sample_format.h"
#include "core/data/unlabelled_samples.h"
#include "core/json/json_text.h"
#include "runmanager/inspect/event_export.h"
#include "runmanager/inspect/fsck.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/inspect/sweep_status.h"
#include "runmanager/inspect/verify.h"
#include "runmanager/kinds/network/network_kind.h"
#include "runmanager/records/earlier_starts/sweep_changes.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_identity.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "runmanager/terminal/live_sweep.h"
#include "runmanager/terminal/results_table.h"
#include "tbwriter/event_reader.h"
#include "tbwriter/record.h"
#include "tests/fuzz/file_readers.h"
#include "tests/support/memory_file.h"

namespace sweep::test {
namespace {

namespace fs = std::filesystem;

template <typename Read>
void attempt(const Read& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

void decode(std::string_view payload) {
  attempt([&] {
    tbwriter::DecodedSession session;
    for (const tbwriter::DecodedValue& value : tbwriter::decode_event(payload).values)
      decode_session(value.plugin_content, session);
  });
}

// Any bytes are an events file; only records with right checksums are read. Since a fuzzer rarely finds a
// checksum, bytes that begin with an even one are taken as an event's payload.
void read_event_bytes(std::string_view bytes) {
  using namespace tbwriter;
  if (bytes.empty()) return;
  const bool is_payload = bytes[0] % 2 == 0;
  bytes.remove_prefix(1);
  std::string file;
  if (is_payload) {
    decode(bytes);
    append_record(file, bytes);
  }
  file += bytes;  // after a whole record, damage
  const MemoryFile memory(file);
  EventReader reader(memory.path());
  std::size_t whole = 0;
  do {
    while (const auto payload = reader.next()) {
      whole += kRecordHeader + payload->size() + kRecordFooter;
      decode(*payload);
    }
  } while (reader.skip_record());
  require(whole <= reader.position() && reader.position() <= file.size());
  require(!is_payload || reader.position() >= kRecordHeader + bytes.size() + kRecordFooter);
  require((reader.end() == ReadEnd::kEnd) == (reader.position() == file.size()));
}

// Any bytes are the description of samples that a run records; and with it, any bytes after the first line
// break are a file of new samples, or skipped.
void read_sample_format_bytes(std::string_view bytes) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return;
  const auto json = parse_json_text(std::string(bytes.substr(0, end)), "FORMAT");
  const SampleFormat format = sample_format_from_json(json, "FORMAT");
  require(sample_format_from_json(to_json(format), "AGAIN") == format);
  if (format.columns.empty()) return;
  const MemoryFile file(bytes.substr(end + 1));
  const fs::path path = file.path();
  const auto check = [&](const SampleArray& samples, const std::vector<std::string>& names) {
    const auto& floats = std::get<1>(samples);
    require(floats.size() == names.size() * element_count(format.shape));
    require(std::ranges::all_of(floats, [](float value) { return std::isfinite(value); }));
  };
  read_unlabelled(std::span(&path, 1), format, 1, check, [](const SkippedFile&) {});
}

// Any bytes are a run.json, and what was read is read back from what is written of it.
void read_run_record_bytes(std::string_view bytes) {
  const RunRecord record = parse_run_record(bytes, "FILE");
  try {
    const std::string text = run_record_text(record);
    require(run_record_text(parse_run_record(text, "FILE")) == text);
    identity_of(record.config, record.device, record.provenance);
  } catch (const DataError&) {
    require(false);  // What was read can be read again.
  }
  attempt([&] { recorded_config(record); });
}

Dataset no_data(const DatasetSpec&) { throw DataError("there is no data here"); }

void show(const fs::path& directory) {
  const std::vector<RunRecord> runs = list_runs(directory);
  std::vector<std::string> keys;
  for (const RunRecord& run : runs) {
    for (const auto& [key, value] : run.params) keys.push_back(key);
  }
  results_table(runs, keys);
  results_csv(runs, keys);
  results_json(runs, "sweep").dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void show_status(const fs::path& directory) {
  const SweepStatus status = sweep_status(directory);
  status_text(status, {});
  to_json(status).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// As `watch` does while the sweep runs.
void watch(const fs::path& directory) {
  const std::optional<LiveSweep> progress = read_progress(directory);
  if (!progress) return;
  live_table(*progress, {});
  for (const RunRecord& run : progress->latest) ended_line(*progress, run, {});
}

void plan(const fs::path& directory) {
  LoadOptions options;
  options.cuda_device_count = 0;
  const Sweep sweep = load_sweep(directory / "sweep.json", {}, options);
  NetworkKind kind({.load_dataset = no_data,
                    .unavailable_reason = {},
                    .parallel_missing_reason = {},
                    .parse_device = [](std::string_view) { return Device(); }},
                   {});
  const std::vector<ExistingRun> existing =
      find_existing_runs(directory, sweep.runs, kind.identities(), true);
  changes_since(directory, sweep.runs, existing);
  refuse_runs_in_the_way(directory, sweep.runs, existing);
}

void verify(const fs::path& directory) {
  SweepEnvironment environment;
  environment.load_dataset = no_data;
  environment.parse_device = [](std::string_view) { return Device(); };
  environment.unavailable_reason = [](const Device&) { return std::nullopt; };
  environment.stop_requested = [] { return 0; };
  std::ostringstream out;
  environment.out = &out;
  verify_sweep({.directory = directory}, environment);
}

// A directory of this process, in memory if the system has such a file system.
const fs::path& sweep_directory() {
  static const TemporaryFolder folder(
      (fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) / "sweep-fuzz-");
  return folder.path();
}

void write_in_sweep(std::string_view name, std::string_view content) {
  const fs::path file = sweep_directory() / name;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
}

// Reads that directory in every way that the program does: as `show`, `status`, `watch`, `fsck`, `export` and
// `verify`, and as a start of the sweep that its sweep.json describes, up to the point where data would be
// loaded. Each ends in success or in an Error. Changes nothing.
void inspect_sweep() {
  const fs::path& directory = sweep_directory();
  attempt([&] { show(directory); });
  attempt([&] { show_status(directory); });
  attempt([&] { watch(directory); });
  attempt([&] {
    const FsckReport report = check_directory(directory);
    fsck_text(report, true);
    fsck_json(report).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  });
  attempt([&] {
    const ExportedLogdir logdir = read_logdir(directory);
    export_csv(logdir);
    export_json(logdir);
    export_markdown(logdir);
  });
  attempt([&] { plan(directory); });
  attempt([&] { verify(directory); });
}

// Any bytes are a sweep's directory: for each file a byte for its name, two for its size, and its content.
void read_directory_bytes(std::string_view bytes) {
  constexpr std::string_view kNames[] = {
      "sweep.json",
      "results.json",
      "results.csv",
      "run.json",
      "lr=0.1/run.json",
      "lr=0.1/checkpoint.safetensors",
      "lr=0.1/checkpoint.previous.safetensors",
      "lr=0.1/events.out.tfevents.1700000000.host.1.000000",
      "lr=0.1/log.txt",
      "lr=0.2/run.json",
      "lr=0.2/checkpoint.safetensors",
      "lr=0.2/events.out.tfevents.1700000000.host.1.000000",
      "lr=0.2.replaced-1/run.json",
      ".lock",
      "mine/events.out.tfevents.1.other",
      "lr=0.1/run.json.7.tmp",
      ".progress.json",
  };
  fs::remove_all(sweep_directory());
  fs::create_directory(sweep_directory());
  const auto byte = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(bytes[i])}; };
  while (bytes.size() >= 3) {
    const std::string_view name = kNames[byte(0) % std::size(kNames)];
    const std::size_t length = std::min(byte(1) + 256 * byte(2), bytes.size() - 3);
    write_in_sweep(name, bytes.substr(3, length));
    bytes.remove_prefix(3 + length);
  }
  inspect_sweep();
}

// After a first byte that says which, any bytes are the results.json, the results.csv or the sweep.json in a
// sweep's directory.
void read_sweep_file_bytes(std::string_view bytes) {
  if (bytes.empty()) return;
  write_in_sweep(
      "lr=0.1/run.json",
      R"({"name":"lr=0.1","status":"completed","params":{"lr":0.1},"config":{"lr":0.1},"metrics":{},)"
      R"("epochs":[{"epoch":1,"loss":0.5,"accuracy":1.0,"number_correct":4,"epoch_seconds":1,)"
      R"("run_seconds":2,"images_per_second":3}],"seconds":{"run":2},"error":null,"device":"cpu"})");
  write_in_sweep("results.json", "");
  write_in_sweep("results.csv", "");
  write_in_sweep("sweep.json", R"({"runs":["lr=0.1"]})");
  constexpr const char* kNames[] = {"results.json", "results.csv", "sweep.json"};
  write_in_sweep(kNames[static_cast<unsigned char>(bytes[0]) % 3], bytes.substr(1));
  inspect_sweep();
}

constexpr FileReader kReaders[] = {{"events", true, read_event_bytes},
                                   {"sample_format", false, read_sample_format_bytes},
                                   {"run_record", false, read_run_record_bytes},
                                   {"sweep_directory", false, read_directory_bytes},
                                   {"sweep_files", true, read_sweep_file_bytes}};

}  // namespace

std::span<const FileReader> file_readers() { return kReaders; }

}  // namespace sweep::test
