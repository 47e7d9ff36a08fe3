#include "runmanager/kinds/command/metric_sources.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/config/metrics.h"
#include "runmanager/text/json_output.h"
#include "tbwriter/event_decoder.h"
#include "tbwriter/event_files.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxLine = 1 << 16;  // bytes; metrics after them are not found
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

std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

Json parse_line(std::string_view line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() && !line.empty()) json = Json::parse(with_quoted_numbers(line), nullptr, false);
  return json;
}

// Nothing: the line is no report, or was cut.
std::optional<MetricReport> parse_report(std::string_view line) {
  const Json json = parse_line(line);
  if (!json.is_object()) return std::nullopt;
  MetricReport report;
  const char* const step_key = json.contains("step") ? "step" : "epoch";
  for (const auto& [key, value] : json.items()) {
    const std::optional<double> number = number_of(value);
    if (!number) continue;
    if (key != step_key)
      report.values.emplace_back(&metric_called(key), *number);
    else if (*number >= 0 && *number < kStepLimit)
      report.step = static_cast<std::int64_t>(*number);
  }
  return report.values.empty() ? std::nullopt : std::optional(std::move(report));
}

}  // namespace

void LineSplitter::add(std::string_view text, const std::function<void(std::string_view)>& use) {
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    if (rest_.empty()) {
      use(line.substr(0, kMaxLine));
    } else {
      rest_ += line.substr(0, kMaxLine - std::min(kMaxLine, rest_.size()));
      use(rest_);
      rest_.clear();
    }
    text.remove_prefix(end + 1);
  }
  rest_ += text.substr(0, kMaxLine - std::min(kMaxLine, rest_.size()));
}

void LineSplitter::finish(const std::function<void(std::string_view)>& use) {
  if (!rest_.empty()) use(std::exchange(rest_, {}));
}

OutputMetrics::OutputMetrics(const CommandSpec& spec) {
  for (const auto& [name, pattern] : spec.metrics)
    entries_.push_back({compact_json_text(name), MetricPattern(pattern)});
}

void OutputMetrics::begin_attempt() {
  for (Entry& entry : entries_) entry.count = 0;
}

void OutputMetrics::add(std::string_view text) {
  if (!entries_.empty()) splitter_.add(text, [this](std::string_view line) { read(line); });
}

void OutputMetrics::finish() {
  splitter_.finish([this](std::string_view line) { read(line); });
}

void OutputMetrics::read(std::string_view line) {
  for (Entry& entry : entries_) {
    const std::optional<MetricPattern::Match> match = entry.pattern.find(line);
    if (!match) continue;
    const std::int64_t step = match->step.value_or(++entry.count);
    // There may be millions, for which an object of JSON takes too long.
    const std::string value =
        std::isfinite(match->value) ? fmt::format("{}", match->value) : json_number(match->value).dump();
    fmt::format_to(std::back_inserter(found_), "{{\"step\":{},{}:{}}}\n", step, entry.name, value);
  }
}

void MetricFile::poll(const UseReport& use, const std::function<void(int)>& attempt) {
  const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  const std::string mark = fmt::format("{{\"{}\": ", kAttempt);
  const auto read_line = [&](std::string_view line) {
    if (line.starts_with(mark))
      attempt(std::atoi(std::string(line.substr(mark.size())).c_str()));
    else if (const auto report = parse_report(line))
      use(*report);
  };
  std::array<char, 1 << 16> part;
  while (file.get() >= 0) {
    const ssize_t size = ::pread(file.get(), part.data(), part.size(), static_cast<off_t>(offset_));
    if (size <= 0) return;
    offset_ += static_cast<std::uint64_t>(size);
    lines_.add({part.data(), static_cast<std::size_t>(size)}, read_line);
  }
}

void MetricFile::append(std::string_view lines) const {
  const FileDescriptor file = open_output_file(path_, OutputMode::kAppend);
  write_all(file.get(), fmt::format("{}{}", lines_.is_within_line() ? "\n" : "", lines), path_);
}

void MetricFile::append_attempt(int attempt) const {
  append(fmt::format("{{\"{}\": {}}}\n", kAttempt, attempt));
}

void ProgramEvents::poll(const UseReport& use) {
  std::error_code error;
  fs::recursive_directory_iterator entries(directory_, error), end;
  for (; !error && entries != end; entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    const bool is_own = entries.depth() == 0 && tbwriter::is_event_file_name(name);
    if (name.find("tfevents") == std::string::npos || is_own || !entries->is_regular_file()) continue;
    try {
      auto& reader = files_[entries->path()];
      if (reader == nullptr) reader = std::make_unique<tbwriter::EventReader>(entries->path());
      read(entries->path(), *reader, use);
    } catch (const DataError&) {
      // It may be complete the next time.
    }
  }
}

void ProgramEvents::read(const fs::path& file, tbwriter::EventReader& reader, const UseReport& use) {
  while (const auto payload = reader.next()) {
    const tbwriter::DecodedEvent event = tbwriter::decode_event(*payload);
    MetricReport report{.step = event.step, .values = {}, .in_events = file.parent_path() == directory_};
    for (const tbwriter::DecodedValue& value : event.values) {
      if (value.scalar && (value.plugin.empty() || value.plugin == "scalars"))
        report.values.emplace_back(&metric_called(value.tag), *value.scalar);
    }
    if (!report.values.empty() && event.step >= 0) use(report);
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
