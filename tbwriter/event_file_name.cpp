#include "tbwriter/event_file_name.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "core/base/error.h"

namespace sweep::tbwriter {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr std::int64_t kLastSecond = 9'999'999'999;  // ten digits; the year 2286

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  std::string host = name.data();
  for (char& c : host) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '-';
  }
  return host;
}

}  // namespace

std::vector<std::string> list_event_files(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  if (!std::filesystem::exists(directory, error)) return names;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.find("tfevents") != std::string::npos) names.push_back(std::move(name));
  }
  if (error) throw IoError(directory.string() + ": cannot list: " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_event_file_name(std::string_view name) {
  constexpr std::size_t kSecondDigits = 10, kCounterDigits = 6;
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  const auto only_digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  // The host may have dots, so the process and the counter are looked for from the end.
  const auto cut_last = [&name] {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return std::string_view();
    const std::string_view last = name.substr(dot + 1);
    name = name.substr(0, dot);
    return last;
  };
  const std::string_view counter = cut_last(), process = cut_last();
  return counter.size() >= kCounterDigits && only_digits(counter) && only_digits(process) &&
         name.size() > kSecondDigits + 1 && only_digits(name.substr(0, kSecondDigits)) &&
         name[kSecondDigits] == '.';
}

SessionName next_session(const std::vector<std::string>& existing, double now) {
  // Clamped before the cast, which is undefined for NaN and for numbers that no integer holds.
  const double seconds_now = now > 0 ? std::min(now, static_cast<double>(kLastSecond)) : 0;
  SessionName session{static_cast<std::int64_t>(seconds_now), host_name(), ::getpid()};
  for (const std::string& name : existing) {
    if (!name.starts_with(kPrefix)) continue;
    std::int64_t seconds = 0;
    const char* first = name.data() + kPrefix.size();
    const auto [last, failure] = std::from_chars(first, name.data() + name.size(), seconds);
    if (failure == std::errc{} && last - first == 10)
      session.seconds = std::max(session.seconds, seconds + 1);
    // Other programs may write numbers of other widths, which sort by their first digits.
    if (session.seconds > kLastSecond || event_file_name(session, 0) <= name) {
      throw IoError(name + ": no event file can have a later name; move this one out of the run's directory");
    }
  }
  return session;
}

std::string event_file_name(const SessionName& session, unsigned counter) {
  std::array<char, 32> seconds, number;
  std::snprintf(seconds.data(), seconds.size(), "%010lld", static_cast<long long>(session.seconds));
  std::snprintf(number.data(), number.size(), "%06u", counter);
  return std::string(kPrefix) + seconds.data() + "." + session.host + "." + std::to_string(session.process) +
         "." + number.data();
}

}  // namespace sweep::tbwriter
