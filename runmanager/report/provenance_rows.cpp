#include "runmanager/report/provenance_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runmanager/records/recorded_config.h"
#include "runmanager/terminal/table.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const Json& member(const Json& object, const char* key) {
  static const Json kNone;
  return object.is_object() && object.contains(key) ? object.at(key) : kNone;
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : compact_json_text(value);
}

// Rows without repetition: most runs of a sweep say the same.
class Rows {
 public:
  void add(const std::string& what, const std::string& value) {
    if (value.empty() || !seen_.insert({what, value}).second) return;
    if (std::find(order_.begin(), order_.end(), what) == order_.end()) order_.push_back(what);
    table_.rows.push_back({what, value});
  }
  // Values of one name are together, names in the order they came.
  ChartTable take() {
    std::stable_sort(table_.rows.begin(), table_.rows.end(),
                     [this](const auto& a, const auto& b) { return place(a[0]) < place(b[0]); });
    return std::move(table_);
  }

 private:
  std::ptrdiff_t place(const Json& what) const {
    return std::find(order_.begin(), order_.end(), what.get<std::string>()) - order_.begin();
  }

  ChartTable table_{{"what", "value"}};
  std::set<std::pair<std::string, std::string>> seen_;
  std::vector<std::string> order_;
};

std::string machine_text(const Json& machine) {
  if (!machine.is_object()) return "";
  std::string text = text_of(member(machine, "processor"));
  if (const Json& cores = member(machine, "cores"); cores.is_number())
    text += fmt::format(", {} cores", cores.dump());
  if (const Json& memory = member(machine, "memory_bytes"); memory.is_number())
    text += fmt::format(", {:.1f} GiB memory", memory.get<double>() / (1 << 30));
  return text + ", " + text_of(member(machine, "system"));
}

void add_files(const std::string& title, const Json& files, Rows& rows) {
  for (const Json& file : files)
    rows.add(title, fmt::format("{}  {}", text_of(member(file, "sha256")),
                                fs::path(text_of(member(file, "path"))).filename().string()));
}

void add_run(const RunRecord& run, Rows& rows) {
  const Json& provenance = run.provenance;
  if (!provenance.is_object()) return;
  // A program's own numbers are not those of this engine.
  const std::string numerics = text_of(member(provenance, "numerics"));
  rows.add("Program",
           fmt::format("{} {}, revision {}, {}{}", text_of(member(provenance, "program")),
                       text_of(member(provenance, "version")), text_of(member(provenance, "revision")),
                       numerics.empty() ? "" : "numerics " + numerics + ", ",
                       text_of(member(provenance, "compiler"))));
  rows.add("Command", text_of(member(provenance, "command")));
  const Json& machine = member(provenance, "machine");
  rows.add("Machine", machine_text(machine));
  for (const Json& device : member(machine, "devices"))
    rows.add("Device",
             fmt::format("{}: {}, {}", text_of(member(device, "device")),
                         text_of(member(device, "description")), text_of(member(device, "software"))));
  rows.add("Data", text_of(member(member(provenance, "dataset"), "name")));
  add_files("Data, SHA-256", member(member(provenance, "dataset"), "files"), rows);
  add_files("Input, SHA-256", member(provenance, "inputs"), rows);
  const Json& git = member(provenance, "git");
  if (const std::string commit = text_of(member(git, "commit")); !commit.empty())
    rows.add("Git commit", commit + (member(git, "changed") == true ? ", with the changes of git.diff" : ""));
}

// Adds when the first run started and the last one ended, and how long all took together.
void add_times(const ReportData& data, Rows& rows) {
  std::string started, ended;
  double seconds = 0;
  for (const RunRecord& run : data.records) {
    if (!run.started.empty() && (started.empty() || run.started < started)) started = run.started;
    ended = std::max(ended, run.ended);
    seconds += own_seconds(run);
  }
  rows.add("First run started", started);
  rows.add("Last run ended", ended);
  if (seconds > 0) rows.add("All runs together", human_seconds(seconds));
}

}  // namespace

ChartTable provenance_rows(const ReportData& data) {
  Rows rows;
  for (const RunRecord& run : data.records) add_run(run, rows);
  add_times(data, rows);
  return rows.take();
}

ChartTable sweep_files(const ReportData& data) {
  ChartTable files{{"sweep", "text"}};
  for (Json file : data.files) {
    if (file.is_null()) continue;
    for (const char* key : {"runs", "provenance"}) file.erase(key);
    files.rows.push_back({text_of(member(file, "name")), json_text(file)});
  }
  return files;
}

}  // namespace sweep
