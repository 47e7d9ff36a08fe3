#include "runmanager/kinds/command/metric_sources.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/printable.h"
#include "runmanager/config/metrics.h"
#include "runmanager/kinds/command/event_names.h"
#include "runmanager/text/json_output.h"
#include "tbwriter/event_files.h"
#include "tbwriter/event_reader.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kAttempt = "sweep_attempt";
constexpr double kStepLimit = 1e15;

// Python writes NaN and Infinity, which JSON does not have.
std::string with_quoted_numbers(std::string_view line) {
  std::string text;
  bool in_string = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (in_string && line[i] == '\\' && i + 1 < line.size()) {
      text += line[i++];
    } else if (line[i] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      const auto word = {"NaN", "-Infinity", "Infinity"};
      const auto* const found = std::find_if(
          word.begin(), word.end(), [&](const char* name) { return line.substr(i).starts_with(name); });
      if (found != word.end()) {
        text += fmt::format("\"{}\"", *found);
        i += std::string_view(*found).size() - 1;
        continue;
      }
    }
    text += line[i];
  }
  return text;
}

Json parse_line(std::string_view line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() && !line.empty()) json = Json::parse(with_quoted_numbers(line), nullptr, false);
  return json;
}

// Those that say where a report belongs.
bool is_position(std::string_view name) { return name == "step" || name == "epoch"; }

// The step of a report; nothing if the number is none. Throws DataError.
std::optional<std::int64_t> step_of(const Json& json) {
  const bool is_step = json.contains("step");
  const std::optional<double> number = number_in_json(json.value(is_step ? "step" : "epoch", Json()));
  if (!number) return std::nullopt;
  if (*number >= 0 && *number < kStepLimit && std::floor(*number) == *number)
    return static_cast<std::int64_t>(*number);
  if (is_step) throw DataError(fmt::format("its step, {}, is no whole number from 0 to 1e15", *number));
  return std::nullopt;  // Fractions of epochs are no steps.
}

// Throws DataError if the line is no report, or was cut.
MetricReport parse_report(std::string_view line) {
  const Json json = parse_line(line);
  if (!json.is_object()) throw DataError("it is no object of JSON");
  MetricReport report{.step = step_of(json), .values = {}};
  for (const auto& [key, value] : json.items()) {
    const std::optional<double> number = number_in_json(value);
    if (number && !is_position(key)) report.values.emplace_back(&metric_called(key), *number);
  }
  if (report.values.empty()) throw DataError("it has no number that is a metric");
  return report;
}

}  // namespace

void LineSplitter::add(std::string_view text, const Use& use) {
  for (std::size_t end = text.find_first_of(ends_); end != std::string_view::npos;
       end = text.find_first_of(ends_)) {
    if (rest_.empty()) {
      use(text.substr(0, std::min(end, limit_)), text[end]);
    } else {
      keep(text.substr(0, end));
      use(rest_, text[end]);
      rest_.clear();
    }
    text.remove_prefix(end + 1);
  }
  keep(text);
}

void LineSplitter::keep(std::string_view text) {
  rest_ += text.substr(0, limit_ - std::min(limit_, rest_.size()));
}

void LineSplitter::finish(const Use& use) {
  if (!rest_.empty()) use(std::exchange(rest_, {}), '\n');
}

OutputMetrics::OutputMetrics(const CommandSpec& spec) {
  for (const auto& [name, pattern] : spec.metrics)
    entries_.push_back({compact_json_text(name), MetricPattern(pattern)});
}

void OutputMetrics::begin_attempt() {
  for (Entry& entry : entries_) entry.count = 0;
}

void OutputMetrics::add(std::string_view text) {
  if (!entries_.empty()) splitter_.add(text, [this](std::string_view line, char end) { read(line, end); });
}

void OutputMetrics::finish() {
  splitter_.finish([this](std::string_view line, char end) { read(line, end); });
  read("", '\n');
}

void OutputMetrics::read(std::string_view line, char end) {
  for (Entry& entry : entries_) {
    if (auto found = entry.pattern.find(line)) entry.match = found;
    if (end == '\r' || !entry.match) continue;
    const MetricPattern::Match match = *std::exchange(entry.match, {});
    if (!match.problem.empty()) {
      if (problem_.empty()) problem_ = fmt::format("{}: {}", entry.name, printable(match.problem));
      continue;
    }
    const std::int64_t step = match.step.value_or(++entry.count);
    // There may be millions, for which an object of JSON takes too long.
    const std::string value =
        std::isfinite(match.value) ? fmt::format("{}", match.value) : json_number(match.value).dump();
    fmt::format_to(std::back_inserter(found_), "{{\"step\":{},{}:{}}}\n", step, entry.name, value);
  }
}

// Whether its beginning is no longer what was read: programs may open it to write instead of to append, or
// replace it.
bool MetricFile::is_replaced(int file) const {
  std::array<char, kHead> head;
  const ssize_t size = file < 0 ? -1 : ::pread(file, head.data(), head_.size(), 0);
  return size >= 0 && std::string_view(head.data(), static_cast<std::size_t>(size)) != head_;
}

void MetricFile::poll(const UseReport& use, const std::function<void(int)>& attempt) {
  const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::array<char, 1 << 16> part;
  if (offset_ > 0 && is_replaced(file.get())) {
    offset_ = 0;
    lines_ = LineSplitter("\n", kLineLimit);
  }
  while (file.get() >= 0) {
    const ssize_t size = ::pread(file.get(), part.data(), part.size(), static_cast<off_t>(offset_));
    if (size <= 0) break;
    if (offset_ == 0) head_.assign(part.data(), std::min(kHead, static_cast<std::size_t>(size)));
    offset_ += static_cast<std::uint64_t>(size);
    lines_.add({part.data(), static_cast<std::size_t>(size)},
               [&](std::string_view line, char) { read_line(line, use, attempt); });
  }
  struct ::stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return;
  constexpr double kNanoseconds = 1e-9;
  modified_ =
      static_cast<double>(status.st_mtim.tv_sec) + kNanoseconds * static_cast<double>(status.st_mtim.tv_nsec);
}

void MetricFile::read_line(std::string_view line, const UseReport& use,
                           const std::function<void(int)>& attempt) {
  static const std::string mark = fmt::format("{{\"{}\": ", kAttempt);
  if (line.starts_with(mark)) return attempt(std::atoi(std::string(line.substr(mark.size())).c_str()));
  std::optional<MetricReport> report;
  try {
    report = parse_report(line);
  } catch (const DataError& error) {
    constexpr std::size_t kShown = 60;
    if (problem_.empty() && !line.empty())
      problem_ = fmt::format("{}: {}{}", error.what(), printable(line.substr(0, kShown)),
                             line.size() > kShown ? "…" : "");
  }
  if (report) use(*report);
}

void MetricFile::append(std::string_view lines) const {
  const FileDescriptor file = open_output_file(path_, OutputMode::kAppend);
  write_all(file.get(), fmt::format("{}{}", lines_.is_within_line() ? "\n" : "", lines), path_);
}

void MetricFile::append_attempt(int attempt) const {
  append(fmt::format("{{\"{}\": {}}}\n", kAttempt, attempt));
}

void MetricFile::end_line() const {
  if (lines_.is_within_line()) append("");
}

std::string report_line(std::int64_t step, const EpochRecord& values) {
  Json line = {{"step", step}};
  for (const auto& [metric, value] : values.values) line[std::string(metric->key)] = json_number(value);
  return compact_json_text(line) + "\n";
}

void ProgramEvents::poll(const UseReport& use) {
  std::vector<MetricReport> reports;
  std::error_code error;
  fs::recursive_directory_iterator entries(directory_, error), end;
  for (; !error && entries != end; entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    const bool is_own = entries.depth() == 0 && tbwriter::is_event_file_name(name);
    if (name.find("tfevents") == std::string::npos || is_own || !entries->is_regular_file()) continue;
    try {
      auto& reader = files_[entries->path()];
      if (reader == nullptr) reader = std::make_unique<tbwriter::EventReader>(entries->path());
      read(entries->path(), *reader, reports);
    } catch (const DataError&) {
      // It may be complete the next time.
    }
  }
  std::ranges::stable_sort(reports, {}, &MetricReport::wall_time);
  std::ranges::for_each(reports, use);
}

void ProgramEvents::read(const fs::path& file, tbwriter::EventReader& reader,
                         std::vector<MetricReport>& reports) {
  double latest = 0;  // Clocks may be set back, and steps of a file stay in order.
  while (const auto payload = reader.next()) {
    const tbwriter::DecodedEvent event = tbwriter::decode_event(*payload);
    const fs::path folder = file.parent_path();
    latest = std::max(latest, event.wall_time);
    MetricReport report{.step = event.step,
                        .values = {},
                        .of_run = part_of(folder) == EventsPart::kSession,
                        .in_events = folder == directory_,
                        .wall_time = latest};
    for (const tbwriter::DecodedValue& value : event.values) {
      const bool is_scalar = value.scalar && (value.plugin.empty() || value.plugin == "scalars");
      const std::string tag(value.tag), name = report.in_events ? tag : metric_in(folder, tag);
      if (is_scalar && !name.empty()) report.values.emplace_back(&metric_called(name), *value.scalar);
    }
    if (!report.values.empty() && event.step >= 0) reports.push_back(std::move(report));
  }
}

void ProgramEvents::begin_attempt() {
  for (const auto& [file, reader] : files_) earlier_.insert(file);
}

void ProgramEvents::set_aside_earlier() {
  for (const fs::path& file : std::exchange(earlier_, {})) {
    std::string name = file.filename().string();
    name.replace(name.find("tfevents"), 8, "tf-events");
    std::error_code ignored;
    fs::rename(file, file.parent_path() / ("earlier-attempt." + name), ignored);
    files_.erase(file);
  }
}

}  // namespace sweep
