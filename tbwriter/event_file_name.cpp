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

SessionName next_session(const std::vector<std::string>& existing, double now) {
  SessionName session{std::clamp<std::int64_t>(static_cast<std::int64_t>(now), 0, kLastSecond), host_name(),
                      ::getpid()};
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
