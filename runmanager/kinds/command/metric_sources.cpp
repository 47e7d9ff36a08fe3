#include "runmanager/kinds/command/metric_sources.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/text/json_output.h"
#include "tbwriter/event_decoder.h"
#include "tbwriter/event_file_name.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxLine = 1 << 16;  // of which metrics are found
constexpr const char* kAttempt = "sweep_attempt";

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

std::optional<double> number_in(const std::csub_match& text) {
  double value = 0;
  std::string_view digits(text.first, static_cast<std::size_t>(text.length()));
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<MetricReport> parse_metric_line(std::string_view line) {
  const Json json = parse_line(line);
  if (!json.is_object()) return std::nullopt;
  MetricReport report;
  const char* const step_key = json.contains("step") ? "step" : "epoch";
  for (const auto& [key, value] : json.items()) {
    const std::optional<double> number = number_of(value);
    if (!number) continue;
    if (key != step_key)
      report.values.emplace_back(key, *number);
    else if (*number >= 0 && *number < 1e15)
      report.step = static_cast<std::int64_t>(*number);
  }
  return report.values.empty() ? std::nullopt : std::optional(std::move(report));
}

std::string metric_line(const MetricReport& report) {
  // There may be millions, for which an object of JSON takes too long.
  std::string line = report.step ? fmt::format("{{\"step\":{}", *report.step) : "{";
  for (const auto& [name, value] : report.values) {
    const std::string key = Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
    line += line.size() > 1 ? "," : "";
    line += fmt::format("{}:{}", key,
                        std::isfinite(value) ? fmt::format("{}", value) : json_number(value).dump());
  }
  return line + "}";
}

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

LineMetrics::LineMetrics(const CommandSpec& spec) {
  for (const auto& [name, pattern] : spec.metrics) entries_.push_back({name, parse_metric_pattern(pattern)});
}

// Without steps of their own, it is not known whether the values of an attempt go on or start over. Who keeps
// checkpoints says the step.
void LineMetrics::begin_attempt() {
  for (Entry& entry : entries_) entry.count = 0;
}

void LineMetrics::read(std::string_view line, const UseReport& use) {
  for (Entry& entry : entries_) {
    std::cmatch match;
    if (!std::regex_search(line.data(), line.data() + line.size(), match, entry.pattern.regex)) continue;
    const std::optional<double> value = number_in(match[entry.pattern.value_group]);
    if (!value) continue;
    MetricReport report{.step = ++entry.count, .values = {{entry.name, *value}}};
    if (entry.pattern.step_group > 0) {
      const std::optional<double> step = number_in(match[entry.pattern.step_group]);
      if (step && *step >= 0 && *step < 1e15) report.step = static_cast<std::int64_t>(*step);
    }
    use(report);
  }
}

void MetricFile::poll(const UseReport& use, const std::function<void()>& attempt) {
  const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0) return;
  const auto read_line = [&](std::string_view line) {
    if (line.starts_with(fmt::format("{{\"{}\":", kAttempt)))
      attempt();
    else if (const auto report = parse_metric_line(line))
      use(*report);
  };
  std::array<char, 1 << 16> part;
  for (;;) {
    const ssize_t size = ::pread(file.get(), part.data(), part.size(), static_cast<off_t>(offset_));
    if (size <= 0) return;
    offset_ += static_cast<std::uint64_t>(size);
    lines_.add({part.data(), static_cast<std::size_t>(size)}, read_line);
  }
}

void MetricFile::append(std::string_view lines) {
  const FileDescriptor file = open_output_file(path_, OutputMode::kAppend);
  write_all(file.get(), fmt::format("{}\n", lines), path_);
}

void MetricFile::append_attempt(int attempt) {
  // Ends the line that an attempt before may have left half.
  append(fmt::format("{}{{\"{}\": {}}}", offset_ > 0 ? "\n" : "", kAttempt, attempt));
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
        report.values.emplace_back(std::string(value.tag), *value.scalar);
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
