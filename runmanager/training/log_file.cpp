#include "runmanager/training/log_file.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "runmanager/config/metrics.h"
#include "runmanager/records/run_files.h"

namespace sweep {
namespace {

// "loss 0.5, accuracy 0.85" or "validation loss 0.4, accuracy 0.8", with everything that is measured.
std::string part_text(const EpochRecord& epoch, MetricPart part) {
  constexpr std::string_view kValidation = "validation_";
  const bool is_validation = part == MetricPart::kValidation;
  std::string text;
  for (const Metric& metric : metrics()) {
    const std::optional<double> value = epoch[metric];
    if (metric.part != part || !is_quality(metric) || !value) continue;
    const Metric& in_training = metric_named(metric.key.substr(is_validation ? kValidation.size() : 0));
    text += fmt::format("{}{} {:.6g}",
                        !text.empty()   ? ", "
                        : is_validation ? "validation "
                                        : "",
                        in_training.title, shown(*value));
  }
  return text;
}

// "loss 0.5, accuracy 0.85".
std::string test_text(const std::map<std::string, double>& metrics) {
  constexpr std::string_view kTest = "test_";
  const auto loss = metrics.find("test_loss");
  std::string text = loss == metrics.end() ? "" : fmt::format("loss {:.6g}", shown(loss->second));
  for (const auto& [name, value] : metrics) {
    if (name.starts_with(kTest) && name != "test_loss")
      text += fmt::format(", {} {:.6g}", name.substr(kTest.size()), shown(value));
  }
  return text;
}

}  // namespace

LogFile::LogFile(const std::filesystem::path& path, bool is_new, std::uint64_t kept)
    : path_(path),
      file_(open_output_file(path, is_new ? OutputMode::kNew : OutputMode::kAppend)),
      kept_(kept) {
  // An earlier start may have been killed within a line.
  if (const std::string last = tail(1); !last.empty()) last_ = last[0];
}

// The last bytes of the file; fewer if it cannot be read.
std::string LogFile::tail(std::size_t count) const try {
  std::string text(count, '\0');
  const FileDescriptor reader = open_regular_file(path_);
  const off_t size = ::lseek(reader.get(), 0, SEEK_END);
  const ssize_t read =
      ::pread(reader.get(), text.data(), count, std::max<off_t>(0, size - static_cast<off_t>(count)));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read)));
  return text;
} catch (const DataError&) {
  return "";
}

void LogFile::append(std::string_view text) try {
  write_all(file_.get(), text, path_);
  last_ = text.back();
} catch (const IoError&) {
  // It is lost.
}

void LogFile::write(std::string_view level, std::string_view text) {
  end_line();
  using std::chrono::system_clock;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(system_clock::now());
  append(fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03} {} {}\n", fmt::localtime(system_clock::to_time_t(now)),
                     now.time_since_epoch().count() % 1000, level, text));
}

void LogFile::write_output(std::string_view text) {
  if (text.empty()) return;
  append(text);
  // Three times, so that the end is moved only once per kept_ bytes.
  const auto size = static_cast<std::uint64_t>(::lseek(file_.get(), 0, SEEK_END));
  if (size > 3 * kept_) leave_out_middle(size);
}

void LogFile::end_line() {
  if (last_ != '\n') append("\n");
}

void LogFile::leave_out_middle(std::uint64_t size) {
  const std::string last = tail(kept_);
  if (last.size() != kept_) return;  // It stays long.
  left_out_ += size - 2 * kept_;
  if (::ftruncate(file_.get(), static_cast<off_t>(kept_)) != 0 || ::lseek(file_.get(), 0, SEEK_END) < 0)
    return;
  append(fmt::format("\n[... about {} bytes are left out here ...]\n", left_out_) + last);
}

std::string end_of_log(const std::filesystem::path& run_directory) {
  std::string text;
  try {
    text = read_file(run_directory / kLogFile);
  } catch (const DataError&) {
    return "";
  }
  constexpr std::size_t kLinesShown = 3, kMaxShown = 2000;  // A program may have written a long line.
  std::string_view rest = std::string_view(text).substr(0, text.find_last_not_of('\n') + 1);
  std::string shown;
  for (std::size_t lines = 0; lines < kLinesShown && !rest.empty(); ++lines) {
    const std::size_t begin = rest.rfind('\n') + 1;  // 0 if there is none
    std::string_view line = rest.substr(begin);
    line = line.substr(0, line.find_last_not_of('\r') + 1);
    line.remove_prefix(line.rfind('\r') + 1);  // Progress bars overwrite it.
    shown = fmt::format("\n{}{}", line, shown);
    rest = rest.substr(0, begin > 0 ? begin - 1 : 0);
  }
  if (shown.size() > kMaxShown) shown = "\n…" + shown.substr(shown.size() - kMaxShown);
  return shown.empty() ? "" : "\nlog.txt ends with:" + shown;
}

std::string epoch_text(const EpochRecord& epoch) {
  std::string text = part_text(epoch, MetricPart::kTraining);
  const std::string validation = part_text(epoch, MetricPart::kValidation);
  if (!text.empty() && !validation.empty()) text += ", ";
  text = fmt::format("epoch {}: {}{}", epoch.epoch, text, validation);
  if (epoch.epoch == 0) return text;
  return text + fmt::format(", {:.3g} s, {} images/s", epoch["epoch_seconds"].value_or(0),
                            human_count(epoch["images_per_second"].value_or(0)));
}

void log_end(LogFile& log, const std::map<std::string, double>& metrics, RunStatus status,
             const std::string& reason) {
  if (metrics.contains("test_loss")) log.info("test: {}", test_text(metrics));
  if (status == RunStatus::kCompleted) return log.info("completed");
  if (status == RunStatus::kFailed) return log.error("{}: {}", to_string(status), reason);
  log.warn("{}: {}", to_string(status), reason);
}

}  // namespace sweep
