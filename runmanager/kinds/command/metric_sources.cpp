#include "runmanager/kinds/command/metric_sources.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/printable.h"
#include "runmanager/config/metrics.h"
#include "runmanager/kinds/command/command_words.h"
#include "runmanager/kinds/command/event_names.h"
#include "runmanager/records/provenance.h"
#include "runmanager/text/json_output.h"
#include "tbwriter/event_files.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kAttempt = "sweep_attempt";
constexpr double kStepLimit = 1e15, kNanosecond = 1e-9;
constexpr std::size_t kHead = 64;
constexpr std::string_view kEventsMark = "tfevents";  // in the names of all events files

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

// Reports by their steps as lines of kMetricsFile.
std::string report_lines(const std::map<std::int64_t, EpochRecord>& reports) {
  std::string lines;
  for (const auto& [step, values] : reports) {
    Json line = {{"step", step}};
    for (const auto& [metric, value] : values.values) line[std::string(metric->key)] = json_number(value);
    lines += compact_json_text(line) + "\n";
  }
  return lines;
}

std::string attempt_line(int attempt) { return fmt::format("{{\"{}\": {}}}\n", kAttempt, attempt); }

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
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

MetricSources::MetricSources(fs::path run_directory, const CommandSpec& spec)
    : directory_(std::move(run_directory)), path_(directory_ / kMetricsFile) {
  for (const auto& [name, pattern] : spec.metrics)
    expressions_.push_back({compact_json_text(name), MetricPattern(pattern)});
}

void MetricSources::begin_attempt(int attempt) {
  append(attempt_line(attempt));
  for (Expression& expression : expressions_) expression.count = 0;
  for (auto& [path, file] : events_) file.is_earlier = true;
  looked_ = seconds_since_1970();
  if (offset_ == 0) poll_file([](const MetricReport&) {});  // so that it is known if the program replaces it
}

void MetricSources::add_output(std::string_view text) {
  if (expressions_.empty()) return;
  std::string found;
  output_.add(text, [&](std::string_view line, char end) { read_output(line, end, found); });
  if (!found.empty()) append(found);
}

void MetricSources::end_attempt() {
  std::string found;
  output_.finish([&](std::string_view line, char end) { read_output(line, end, found); });
  read_output("", '\n', found);
  if (!found.empty() || !lines_.rest().empty()) append(found);
  next_search_ = 0;
}

void MetricSources::read_output(std::string_view line, char end, std::string& found) {
  for (Expression& expression : expressions_) {
    if (auto match = expression.pattern.find(line)) expression.match = match;
    if (end == '\r' || !expression.match) continue;
    const MetricPattern::Match match = *std::exchange(expression.match, {});
    if (!match.problem.empty()) {
      problems_.try_emplace("what \"metrics\" found in a line of the output does not count",
                            fmt::format("{}: {}", expression.name, printable(match.problem)));
      continue;
    }
    const std::int64_t step = match.step.value_or(++expression.count);
    // There may be millions, for which an object of JSON takes too long.
    const std::string value =
        std::isfinite(match.value) ? fmt::format("{}", match.value) : json_number(match.value).dump();
    fmt::format_to(std::back_inserter(found), "{{\"step\":{},{}:{}}}\n", step, expression.name, value);
  }
}

// Ends a line first that the program has left incomplete, after which it counts.
void MetricSources::append(std::string_view lines) const {
  const FileDescriptor file = open_output_file(path_, OutputMode::kAppend);
  write_all(file.get(), fmt::format("{}{}", lines_.rest().empty() ? "" : "\n", lines), path_);
}

// Whether its beginning is no longer what was read: programs may open it to write instead of to append, or
// replace it.
bool MetricSources::is_replaced(int file) const {
  std::array<char, kHead> head;
  const ssize_t size = ::pread(file, head.data(), head_.size(), 0);
  return size >= 0 && std::string_view(head.data(), static_cast<std::size_t>(size)) != head_;
}

void MetricSources::poll_file(const Use& use, const std::function<void(int)>& attempt) {
  static const std::string mark = fmt::format("{{\"{}\": ", kAttempt);
  const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct ::stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return;
  if (offset_ > 0 && (static_cast<std::uint64_t>(status.st_size) < offset_ || is_replaced(file.get()))) {
    is_replaced_ = true;
    offset_ = 0;
    lines_ = LineSplitter("\n", kLineLimit);
  }
  // The last line was made when the file changed. When the others were is not known: evenly is nearest to
  // what programs do.
  const double before = looked_;
  looked_ = std::max(before, seconds_since_1970());
  const double changed =
      static_cast<double>(status.st_mtim.tv_sec) + kNanosecond * static_cast<double>(status.st_mtim.tv_nsec);
  const double seconds = std::clamp(changed, before, looked_) - before;
  const double bytes = static_cast<double>(status.st_size) - static_cast<double>(offset_) +
                       static_cast<double>(lines_.rest().size());
  double read = 0;
  const auto use_line = [&](std::string_view line, char) {
    read += static_cast<double>(line.size() + 1);
    if (line.starts_with(mark)) return attempt(std::atoi(std::string(line.substr(mark.size())).c_str()));
    std::optional<MetricReport> report = read_line(line);
    if (!report) return;
    report->wall_time = before + seconds * std::min(1.0, read / bytes);
    use(*std::move(report));
  };
  std::array<char, 1 << 16> part;
  for (;;) {
    const ssize_t size = ::pread(file.get(), part.data(), part.size(), static_cast<off_t>(offset_));
    if (size <= 0) break;
    if (offset_ == 0) head_.assign(part.data(), std::min(kHead, static_cast<std::size_t>(size)));
    offset_ += static_cast<std::uint64_t>(size);
    lines_.add({part.data(), static_cast<std::size_t>(size)}, use_line);
  }
  if (!kept_.empty()) append(std::exchange(kept_, {}));
}

// Nothing if it is no report.
std::optional<MetricReport> MetricSources::read_line(std::string_view line) {
  constexpr std::size_t kShown = 60;
  try {
    return parse_report(line);
  } catch (const DataError& error) {
    if (!line.empty())
      problems_.try_emplace("a line of metrics.jsonl does not count",
                            fmt::format("{}: {}{}", error.what(), printable(line.substr(0, kShown)),
                                        line.size() > kShown ? "…" : ""));
    return std::nullopt;
  }
}

void MetricSources::poll_events(const Use& use) {
  find_events_files();
  for (auto& [path, file] : events_) read_next(path, file);
  const auto time = [](const auto& file) {
    return file.second.next ? file.second.next->wall_time : std::numeric_limits<double>::infinity();
  };
  for (;;) {
    const auto first = std::ranges::min_element(events_, {}, time);
    if (first == events_.end() || !first->second.next) break;
    MetricReport report = *std::exchange(first->second.next, std::nullopt);
    read_next(first->first, first->second);
    use(std::move(report));
  }
  if (!kept_.empty()) append(std::exchange(kept_, {}));
}

void MetricSources::find_events_files() {
  // Programs may also leave very many other files: looking at all takes at most this part of the time.
  constexpr double kPart = 0.05;
  const double begin = steady_seconds();
  if (begin < next_search_) return;
  std::error_code error, ignored;
  fs::recursive_directory_iterator entries(directory_, error), end;
  for (; !error && entries != end; entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    const bool is_own = entries.depth() == 0 && tbwriter::is_event_file_name(name);
    if (name.find(kEventsMark) != std::string::npos && !is_own && entries->is_regular_file(ignored))
      events_.try_emplace(entries->path());
  }
  next_search_ = begin + (steady_seconds() - begin) / kPart;
}

void MetricSources::read_next(const fs::path& path, EventsFile& file) const try {
  const fs::path folder = path.parent_path();
  if (!file.reader) file.reader = std::make_unique<tbwriter::EventReader>(path, file.read);
  while (const auto payload = file.next ? std::nullopt : file.reader->next()) {
    const tbwriter::DecodedEvent event = tbwriter::decode_event(*payload);
    file.latest = std::max(file.latest, event.wall_time);
    MetricReport report{.step = event.step,
                        .values = {},
                        .of_run = part_of(folder) == EventsPart::kSession,
                        .in_events = folder == directory_,
                        .wall_time = file.latest};
    for (const tbwriter::DecodedValue& value : event.values) {
      const bool is_scalar = value.scalar && (value.plugin.empty() || value.plugin == "scalars");
      const std::string tag(value.tag), name = report.in_events ? tag : metric_in(folder, tag);
      if (is_scalar && !name.empty()) report.values.emplace_back(&metric_called(name), *value.scalar);
    }
    if (!report.values.empty() && event.step >= 0) file.next = std::move(report);
  }
  if (file.next) return;
  // Programs may leave more files than a process may have open.
  file.read = file.reader->position();
  file.reader.reset();
} catch (const DataError&) {
  // It may be complete the next time.
}

void MetricSources::start_over(const std::map<std::int64_t, EpochRecord>& kept) {
  for (const auto& [path, file] : events_) {
    if (!file.is_earlier) continue;
    std::string name = path.filename().string();
    name.replace(name.find(kEventsMark), kEventsMark.size(), "tf-events");
    std::error_code ignored;
    fs::rename(path, path.parent_path() / ("earlier-attempt." + name), ignored);
  }
  if (std::erase_if(events_, [](const auto& file) { return file.second.is_earlier; }) == 0) return;
  kept_ += report_lines(kept);
}

void MetricSources::restore(int attempt, const std::map<std::int64_t, EpochRecord>& reported) {
  if (!is_replaced_) return;
  // What was lost comes first, as it did; and a beginning that no program writes tells if this is replaced.
  write_file_atomically(path_, attempt_line(attempt) + report_lines(reported) + read_file(path_),
                        Survives::kKill);
  poll_file([](const MetricReport&) {});
  is_replaced_ = false;
}

}  // namespace sweep
