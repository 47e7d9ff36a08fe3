#include "runmanager/kinds/command/command_kind.h"

#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <set>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/child.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/readers/input_file.h"
#include "runmanager/kinds/command/command_words.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_identity.h"
#include "runmanager/records/run_record_json.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The device that "device" names as an axis; programs that mean something else by it are on the CPU.
Device device_of(const RunConfig& config) {
  return known_device(param_text(config.params, "device")).value_or(Device());
}

// Adds the files of a folder and of those in it, also of linked ones. `around`: the folders that it is in, to
// which a link may lead back.
void add_files(const fs::path& folder, std::set<fs::path>& around, std::set<std::string>& files) {
  const auto [self, is_new] = around.insert(fs::canonical(folder));
  if (!is_new) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    std::error_code ignored;
    if (entry.is_directory(ignored))
      add_files(entry.path(), around, files);
    else if (entry.is_regular_file(ignored))
      files.insert(entry.path().string());
  }
  around.erase(self);
}

// The digests of the files of patterns, each once, in the order of their names. Throws DataError for a
// pattern without any, ReadError for what cannot be read.
Json digests_of(const std::vector<std::string>& patterns) {
  std::set<std::string> files;
  for (const std::string& pattern : patterns) {
    glob_t found{};
    const std::unique_ptr<glob_t, decltype(&::globfree)> freed(&found, ::globfree);
    if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) != 0)
      throw DataError(fmt::format("{}: no such file; \"inputs\" names it", pattern));
    for (const fs::path path : std::span(found.gl_pathv, found.gl_pathc)) {
      std::error_code ignored;
      if (!fs::is_directory(path, ignored)) {
        files.insert(path.string());
        continue;
      }
      try {
        std::set<fs::path> around;
        for (fs::path above = fs::canonical(path); above.has_relative_path(); around.insert(above))
          above = above.parent_path();
        add_files(path, around, files);
      } catch (const fs::filesystem_error& error) {
        throw ReadError(fmt::format("{}: cannot be read: {}; \"inputs\" names it", path.string(),
                                    error.code().message()));
      }
    }
  }
  Json list = Json::array();
  for (const std::string& file : files) list.push_back({{"path", file}, {"sha256", file_sha256(file)}});
  return list;
}

// Why the first word cannot be started, looked for as execvp() does; nothing if it can.
std::optional<std::string> problem_of(const CommandSpec& spec) {
  const fs::path program = spec.words[0];
  std::vector<std::string_view> folders = {spec.cwd.native()};
  const bool is_name = program.string().find('/') == std::string::npos;
  if (is_name) {
    const char* const path = std::getenv("PATH");
    folders = split(path != nullptr ? path : "/bin:/usr/bin", ':');
  } else if (spec.cwd == kRunCwd) {
    return std::nullopt;  // It may be made by then.
  }
  bool is_file = false;
  std::error_code error;
  for (const fs::path folder : folders) {
    if (!fs::is_regular_file(folder / program, error)) continue;
    if (::access((folder / program).c_str(), X_OK) == 0) return std::nullopt;
    is_file = true;
  }
  if (is_file)
    return fmt::format(
        "may not be executed: chmod +x makes it a program, or its interpreter goes first: python3 {}",
        program.string());
  const bool is_here = is_name && spec.cwd != kRunCwd && fs::is_regular_file(spec.cwd / program, error);
  return std::string("is no program, neither a path nor in PATH") +
         (is_here ? fmt::format("; a file here is ./{0}, or its interpreter goes first: python3 {0}",
                                program.string())
          : program.string().find(' ') != std::string::npos ? "; give its words apart, or \"shell\": true"
                                                            : std::string());
}

// Whether a variable that tells of them is in the command, or in a script that it names.
bool may_read_params(const CommandSpec& spec) {
  constexpr std::string_view kVariables = "SWEEP_";
  constexpr std::uintmax_t kMaxScript = std::uintmax_t{1} << 20;
  const auto has = [&](const std::string& word) {
    const fs::path file = spec.cwd / word;
    std::error_code error;
    if (word.find(kVariables) != std::string::npos) return true;
    if (!fs::is_regular_file(file, error) || fs::file_size(file, error) > kMaxScript) return false;
    try {
      return read_file(file).find(kVariables) != std::string::npos;
    } catch (const DataError&) {
      return false;
    }
  };
  return std::ranges::any_of(spec.words, has);
}

CommandResult run_git(const std::string& directory, std::vector<std::string> words) {
  // Takes no lock that would be in the way of what the person does there meanwhile.
  words.insert(words.begin(), {"git", "--no-optional-locks", "-C", directory});
  return run_command(words, [] { return true; });
}

// The commit of the directory, and whether files differ from it; null outside of git.
Json git_state(const std::string& directory) {
  constexpr std::string_view kCommit = "# branch.oid ", kNone = "(initial)";
  Json state;
  const std::string status =
      run_git(directory, {"status", "--porcelain=v2", "--branch", "--untracked-files=no"}).out;
  for (const std::string_view line : lines_of(status)) {
    if (line.starts_with(kCommit) && !line.ends_with(kNone))
      state = {{"commit", line.substr(kCommit.size())}, {"changed", false}};
    else if (!line.starts_with('#') && !state.is_null())
      state["changed"] = true;
  }
  return state;
}

// Whether the files of a run whose record is missing or damaged are this one's, and tell how far it is.
bool is_told_by_others(const fs::path& run, const RunConfig& config) {
  const auto has_same_params = [&] {
    return fs::exists(run / kParamsFile) && read_file(run / kParamsFile) == params_text(config);
  };
  return fs::exists(run / kMetricsFile) && (!fs::exists(run / kRunRecordFile) || has_same_params());
}

// Records the commit of the working directory, and keeps what differs from it: with both, the program is as
// it was. Each run asks, because people go on with their program while a sweep runs it.
void keep_changes(const fs::path& run, RunRecord& record, const CommandSpec& spec) {
  constexpr const char* kChangesFile = "git.diff";
  constexpr std::size_t kMost = std::size_t{1} << 20;
  std::error_code ignored;
  fs::remove(run / kChangesFile, ignored);
  if (!record.provenance.contains("git")) return;  // There was no commit when the sweep began.
  const Json git = git_state(spec.cwd.string());
  record.provenance.erase("git");
  if (git.is_null()) return;
  record.provenance["git"] = git;
  if (!git["changed"]) return;
  // Whatever the person's settings of git are, "git apply" has to understand it.
  std::string changes =
      run_git(spec.cwd.string(), {"-c", "diff.relative=false", "diff", "--no-color", "--no-ext-diff",
                                  "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "HEAD"})
          .out;
  if (changes.size() > kMost) changes.replace(kMost, std::string::npos, "\n[... the rest is left out ...]\n");
  write_file_atomically(run / kChangesFile, changes, Survives::kKill);
}

}  // namespace

CommandKind::CommandKind(Json program,
                         std::function<std::optional<std::string>(const Device&)> unavailable_reason)
    : program_(std::move(program)),
      unavailable_reason_(std::move(unavailable_reason)),
      gpus_(visible_gpus(std::getenv("CUDA_VISIBLE_DEVICES"))) {
  program_.erase("numerics");  // They are those of this program's own engine.
}

void CommandKind::load(const Sweep& sweep) {
  for (const RunConfig& run : sweep.runs) input_files(run);
  const CommandSpec& spec = *sweep.runs.front().command;
  // The environment tells a program its repeat and whether it has GPUs.
  const auto key = std::ranges::find_if(
      sweep.keys, [](const std::string& name) { return name != kRepeatKey && name != "device"; });
  const bool is_single = sweep.runs.size() == 1 && !sweep.search;
  if (is_single || key == sweep.keys.end() || has_substitutions(spec, sweep.keys) || may_read_params(spec))
    return;
  remarks_.push_back(
      fmt::format("the command has no parameter, as {{flags}} or {{{}}} would be: all runs do the same, "
                  "unless the program reads the file $SWEEP_PARAMS",
                  *key));
}

Json CommandKind::input_files(const RunConfig& config) {
  const std::vector<std::string>& patterns = config.command->inputs;
  const auto [at, is_new] = inputs_.try_emplace(patterns);
  if (is_new) at->second = digests_of(patterns);
  return at->second;
}

RunIdentity CommandKind::identity(const RunConfig& config) {
  return identity_of(config.resolved, device_of(config).name(), {{"inputs", input_files(config)}});
}

void CommandKind::check(const Sweep& sweep) {
  const CommandSpec& spec = *sweep.runs.front().command;
  std::vector<std::string> texts = spec.words;
  texts.push_back(spec.cwd.string());
  for (const std::string& text : texts)
    if (!is_utf8(text)) throw ConfigError(fmt::format("command: {} is not UTF-8 text, as records are", text));
  check_substitutions(spec, sweep.keys);
  std::error_code error;
  if (spec.cwd != kRunCwd && !fs::is_directory(spec.cwd, error))
    throw ConfigError(fmt::format("cwd: {} is no directory", spec.cwd.string()));
  // Which program a parameter chooses is seen when it starts; a whole command in quotes is no program's name,
  // but the path of a program may have blanks.
  const std::string first = spec.words[0].substr(0, spec.words[0].find(' '));
  const bool is_whole =
      spec.words.size() == 1 && first != spec.words[0] &&
      (first.find('/') == std::string::npos || fs::is_regular_file(spec.cwd / first, error));
  if (spec.shell || (spec.words[0].find('{') != std::string::npos && !is_whole)) return;
  if (const auto problem = problem_of(spec))
    throw ConfigError(fmt::format("command: {} {}", spec.words[0], *problem));
}

void CommandKind::check(const RunConfig&, const fs::path&) {}

RunNeeds CommandKind::needs(const RunConfig& config) {
  RunNeeds run;
  run.device = device_of(config);
  run.takes_gpus = config.command->gpus > 0 && param_text(config.params, "device") != "cpu";
  // Programs use GPUs also if this program was built without CUDA.
  const bool is_seen = static_cast<std::size_t>(run.device.index) < gpus_.size();
  if (run.device.type == DeviceType::kCuda && !is_seen && !run.takes_gpus && unavailable_reason_(run.device))
    run.unavailable =
        fmt::format("there is no {}: programs see {} here", run.device.name(), counted(gpus_.size(), "GPU"));
  if (!run.unavailable && !run.takes_gpus) run.devices = {run.device};
  run.provenance = program_;
  run.provenance["inputs"] = input_files(config);
  // Each run asks again as it begins: this is for one whose worker is lost.
  if (config.command->cwd != kRunCwd) {
    const auto [at, is_new] = git_.try_emplace(config.command->cwd.string());
    if (is_new) at->second = git_state(at->first);
    if (!at->second.is_null()) run.provenance["git"] = at->second;
  }
  return run;
}

GpuPool CommandKind::gpus(const Sweep& sweep) const {
  const CommandSpec& spec = *sweep.runs.front().command;
  return {gpus_, spec.gpus, spec.runs_per_gpu};
}

std::optional<RunRecord> CommandKind::state_of(const fs::path& run) const {
  return whole_record(read_run_record, run / kRunRecordFile);
}

std::optional<RunRecord> CommandKind::start_of(const fs::path& run) const {
  return whole_record(read_run_record, run / kStartFolder / kRunRecordFile);
}

void CommandKind::keep_start(const fs::path& parent, const fs::path& run) const try {
  prepare_run_directory(run);
  const fs::path start = run / kStartFolder, part = start.string() + ".part";
  fs::remove_all(part);
  fs::create_directories(part);
  for (const char* name : {kCheckpointFolder, kMetricsFile, kRunRecordFile})
    fs::copy(parent / name, part / name, fs::copy_options::recursive);
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(part)) {
    if (entry.is_directory())
      sync_directory(entry.path());
    else if (entry.is_regular_file())
      files.push_back(entry.path());
  }
  sync_files(files);
  fs::remove_all(start);
  fs::rename(part, start);
  sync_directory(run);
  sync_directory(run.parent_path());
} catch (const fs::filesystem_error& error) {
  throw IoError(fmt::format("{}: cannot copy the checkpoint of {}: {}", run.string(), parent.string(),
                            error.code().message()));
}

double CommandKind::stop_seconds(const RunConfig& config) const {
  constexpr double kToKill = 5;  // until a worker has killed a program that does not end by itself
  return config.command->grace + kToKill;
}

LockFile lock_program(const fs::path& run, const TrainerOptions& options) {
  check_owner(options.owner);
  check_is_own_directory(run);
  make_directories(run);
  LockFile lock(run / ".program.lock");
  constexpr int kTries = 3000;  // 10 ms each
  for (int tries = 0; !lock.try_lock(LockKind::kExclusive); ++tries) {
    if (tries == kTries)
      throw IoError(lock.path().string() + ": is held by a program that an earlier attempt has started");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return lock;
}

RunRecord take_over_files(const WorkerTask& task, const fs::path& run, const TrainerOptions& options) {
  RunRecord record = task.record;
  const auto go_on_from = [&record](const RunRecord& earlier) {
    record.epochs = earlier.epochs;
    record.run_seconds = earlier.run_seconds;
  };
  const std::optional<RunRecord> earlier = whole_record(read_run_record, run / kRunRecordFile);
  const bool is_same = earlier ? differences(identity_of(*earlier), identity_of(record)).empty()
                               : is_told_by_others(run, task.config);
  if (is_same && earlier) {
    go_on_from(*earlier);
    record.started = earlier->started;
  }
  if (!is_same) {
    prepare_run_directory(run, [&] {
      check_owner(options.owner);
      // Before the record: a start that finds only these takes them for this run's.
      for (const char* name : {kMetricsFile, kCheckpointFolder}) fs::remove_all(run / name);
    });
  }
  if (continues(task.config)) {
    const fs::path start = run / kStartFolder;
    if (!fs::exists(run / kMetricsFile))
      write_file_atomically(run / kMetricsFile, read_file(start / kMetricsFile), Survives::kKill);
    if (record.epochs.empty()) go_on_from(read_run_record(start / kRunRecordFile));
  }
  remove_temporaries(run);
  make_directories(run / kCheckpointFolder);
  keep_changes(run, record, *task.config.command);
  if (record.started.empty()) record.started = utc_time();
  record.status = RunStatus::kRunning;
  return record;
}

}  // namespace sweep
