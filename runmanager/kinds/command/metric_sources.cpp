#include "runmanager/kinds/command/metric_sources.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "runmanager/config/metrics.h"
#include "runmanager/kinds/command/command_words.h"
#include "runmanager/records/provenance.h"
#include "runmanager/text/json_output.h"
#include "tbwriter/event_files.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kAttempt = "sweep_attempt";
constexpr std::string_view kEventsMark = "tfevents";  // in the names of all events files

// Python writes NaN and Infinity, which JSON does not have.
std::string with_quoted_numbers(std::string_view line) {
  std::string text;
  bool in_string = false;
  while (!line.empty()) {
    std::string_view part = line.substr(0, in_string && line[0] == '\\' ? 2 : 1), quote;
    if (part == "\"") in_string = !in_string;
    for (const std::string_view number : {"NaN", "-Infinity", "Infinity"}) {
      if (in_string || !line.starts_with(number)) continue;
      part = number;
      quote = "\"";
    }
    text.append(quote).append(part).append(quote);
    line.remove_prefix(part.size());
  }
  return text;
}

// Throws DataError if the line is no report, or was cut.
MetricReport parse_report(std::string_view line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) json = Json::parse(with_quoted_numbers(line), nullptr, false);
  if (!json.is_object()) throw DataError("it is no object of JSON");
  const char* const position = json.contains("step") ? "step" : "epoch";
  MetricReport report;
  for (const auto& [key, value] : json.items()) {
    const std::optional<double> number = number_in_json(value);
    if (!number) continue;
    if (key == position) {
      report.step = step_in(*number);
      // Fractions of epochs are no steps.
      if (key == "step" && !report.step)
        throw DataError(fmt::format("its step, {}, is no whole number from 0 to 1e15", *number));
    } else if (key == kAttempt) {
      report.attempt = static_cast<int>(step_in(*number).value_or(0));
    } else if (key != "epoch") {
      report.values.emplace_back(&metric_called(key), *number);
    }
  }
  if (report.values.empty() && report.attempt == 0) throw DataError("it has no number that is a metric");
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

// Calls use(line, end) for each line of a text that comes in pieces, up to one of the characters `ends`. Only
// the first `limit` bytes of a line count. `line`: the one whose end has not come yet.
template <typename Use>
void add_to_lines(std::string& line, std::string_view text, const char* ends, std::size_t limit,
                  const Use& use) {
  for (;;) {
    const std::size_t end = text.find_first_of(ends);
    line += text.substr(0, std::min(end, limit - line.size()));
    if (end == std::string_view::npos) return;
    use(line, text[end]);
    line.clear();
    text.remove_prefix(end + 1);
  }
}

std::string attempt_line(int attempt) { return fmt::format("{{\"{}\": {}}}\n", kAttempt, attempt); }

// That of the keys of the part's metrics; nothing if it is no part of the data.
std::optional<std::string> prefix_of(EventsPart part) {
  if (part == EventsPart::kTraining) return "";
  if (part == EventsPart::kValidation) return "validation_";
  return part == EventsPart::kTest ? std::optional("test_") : std::nullopt;
}

// Whether a directory was called by the name that a tag had before "_" took the place of blanks and others.
bool is_named_as(std::string_view name, std::string_view tag) {
  return std::ranges::equal(name, tag, [](char in_name, char in_tag) {
    const auto byte = static_cast<unsigned char>(in_name);
    const bool is_illegal = byte < 0x80 && std::isalnum(byte) == 0 &&
                            std::string_view("-./").find(in_name) == std::string_view::npos;
    return in_name == in_tag || (in_tag == '_' && is_illegal);
  });
}

}  // namespace

EventsPart part_of(const std::filesystem::path& directory) {
  const std::string name = directory.filename().string();
  if (name == "train") return EventsPart::kTraining;
  if (name == "validation" || name == "val") return EventsPart::kValidation;
  if (name == "test") return EventsPart::kTest;
  // add_hparams() calls its directories after a time with a fraction.
  const bool is_time = name.find_first_not_of("0123456789.") == std::string::npos &&
                       std::ranges::count(name, '.') == 1 && name.find('.') >= 9;
  return is_time ? EventsPart::kSession : EventsPart::kRun;
}

std::string metric_of(const std::string& tag, EventsPart part) {
  std::string prefix = prefix_of(part).value_or("");
  if (prefix_of(part) && (tag.starts_with("batch_") || tag.ends_with("_vs_iterations"))) return "";
  if (metric_tagged(tag) != nullptr) return tag;
  std::string name = lower_case(tag);
  for (char& c : name)
    if (c == ' ' || c == '/') c = '_';
  const auto take = [&name](std::string_view start) {
    if (!name.starts_with(start)) return false;
    name.erase(0, start.size());
    return true;
  };
  take("epoch_");
  if (take("val_") || take("valid_") || take("validation_"))
    prefix = "validation_";
  else if (take("test_"))
    prefix = "test_";
  else if (!take("train_"))
    take("training_");
  const std::string key = prefix + (name == "acc" ? "accuracy" : name);
  return find_metric(key) != nullptr ? key : prefix_of(part).value_or("") + tag;
}

std::optional<std::string> above_tag(const std::string& directory, const std::string& tag) {
  const std::size_t above = directory.size() - std::min(directory.size(), tag.size() + 1);
  if (!is_named_as(std::string_view(directory).substr(above), "/" + tag)) return std::nullopt;
  return directory.substr(0, above);
}

std::string metric_in(const std::filesystem::path& subdirectory, const std::string& tag) {
  const EventsPart part = part_of(subdirectory);
  if (prefix_of(part)) return metric_of(tag, part);
  std::string folder = tag;
  std::ranges::replace(folder, '/', '_');
  const std::string name = subdirectory.filename().string();
  if (above_tag(subdirectory.parent_path().string(), tag)) return tag + "_" + name;
  const bool is_series = is_named_as(std::string_view(name).substr(0, folder.size() + 1), folder + "_");
  return is_series ? tag + name.substr(folder.size()) : tag;
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
  if (const std::string found = found_in(text); !found.empty()) append(found);
}

void MetricSources::end_attempt() {
  const std::string found = found_in("\n");
  if (!found.empty() || !file_line_.empty()) append(found);
  next_search_ = 0;
}

// Lines of kMetricsFile.
std::string MetricSources::found_in(std::string_view output) {
  constexpr std::size_t kLimit = std::size_t{1} << 16;
  std::string found;
  const auto read_line = [&](std::string_view line, char end) {
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
  };
  if (!expressions_.empty()) add_to_lines(output_line_, output, "\r\n", kLimit, read_line);
  return found;
}

// Ends a line first that the program has left incomplete, after which it counts.
void MetricSources::append(std::string_view lines) const {
  const FileDescriptor file = open_output_file(path_, OutputMode::kAppend);
  write_all(file.get(), fmt::format("{}{}", file_line_.empty() ? "" : "\n", lines), path_);
}

void MetricSources::poll_file(const Use& use) {
  constexpr std::size_t kHead = 64, kShown = 60, kLimit = std::size_t{1} << 24;
  constexpr double kNanosecond = 1e-9;
  const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct ::stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return;
  // Programs may open it to write instead of to append, or replace it.
  std::string head(head_.size(), '\0');
  const bool has_other_head = ::pread(file.get(), head.data(), head.size(), 0) >= 0 && head != head_;
  if (has_other_head || static_cast<std::uint64_t>(status.st_size) < offset_) {
    is_replaced_ = true;
    offset_ = 0;
    file_line_.clear();
  }
  // The last line was made when the file changed. When the others were is not known: evenly is nearest to
  // what programs do.
  const double before = looked_;
  looked_ = std::max(before, seconds_since_1970());
  const double changed =
      static_cast<double>(status.st_mtim.tv_sec) + kNanosecond * static_cast<double>(status.st_mtim.tv_nsec);
  const double seconds = std::clamp(changed, before, looked_) - before;
  const double bytes = static_cast<double>(status.st_size) - static_cast<double>(offset_) +
                       static_cast<double>(file_line_.size());
  double read = 0;
  const auto use_line = [&](std::string_view line, char) {
    read += static_cast<double>(line.size() + 1);
    MetricReport report;
    try {
      report = parse_report(line);
    } catch (const DataError& error) {
      if (!line.empty())
        problems_.try_emplace("a line of metrics.jsonl does not count",
                              fmt::format("{}: {}", error.what(), printable(shown_text(line, kShown))));
      return;
    }
    report.wall_time = before + seconds * std::min(1.0, read / bytes);
    use(std::move(report));
  };
  std::array<char, 1 << 16> part;
  for (;;) {
    const ssize_t size = ::pread(file.get(), part.data(), part.size(), static_cast<off_t>(offset_));
    if (size <= 0) break;
    if (offset_ == 0) head_.assign(part.data(), std::min(kHead, static_cast<std::size_t>(size)));
    offset_ += static_cast<std::uint64_t>(size);
    add_to_lines(file_line_, {part.data(), static_cast<std::size_t>(size)}, "\n", kLimit, use_line);
  }
  if (!kept_.empty()) append(std::exchange(kept_, {}));
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
  const auto put_away = [](const auto& entry) {
    const auto& [path, file] = entry;
    if (!file.is_earlier) return false;
    std::string name = path.filename().string();
    name.replace(name.find(kEventsMark), kEventsMark.size(), "tf-events");
    std::error_code ignored;
    fs::rename(path, path.parent_path() / ("earlier-attempt." + name), ignored);
    return true;
  };
  if (std::erase_if(events_, put_away) > 0) kept_ += report_lines(kept);
}

void MetricSources::restore(int attempt, const std::map<std::int64_t, EpochRecord>& reported) {
  if (!is_replaced_) return;
  std::error_code ignored;
  const std::string written = fs::exists(path_, ignored) ? read_file(path_) : "";  // or removed since
  // What was lost comes first, as it did; and a beginning that no program writes tells if this is replaced.
  write_file_atomically(path_, attempt_line(attempt) + report_lines(reported) + written, Survives::kKill);
  poll_file([](const MetricReport&) {});
  is_replaced_ = false;
}

}  // namespace sweep
