#include "runmanager/config/slurm_spec.h"
#include "core/base/text.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace sweep {
namespace {

constexpr long kMinutesPerHour = 60, kMinutesPerDay = 24 * kMinutesPerHour, kSecondsPerMinute = 60;
constexpr long kLargestNumber = 1000000;  // Far beyond any limit, and no product of it overflows.

std::optional<long> count_of(std::string_view text) {
  const std::optional<long> count = number_in<long>(text);
  return count && !text.starts_with('-') && *count <= kLargestNumber ? count : std::nullopt;
}

// The numbers of "1:2:3"; none if there are more than three, or one of them is no number.
std::vector<long> numbers_of(std::string_view text) {
  std::vector<long> numbers;
  for (const std::string_view part : split(text, ':')) {
    const std::optional<long> number = count_of(part);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers.size() <= 3 ? numbers : std::vector<long>();
}

long with_seconds(long minutes, long seconds) {
  return minutes + (seconds + kSecondsPerMinute - 1) / kSecondsPerMinute;
}

}  // namespace

long slurm_minutes(const std::string& time) {
  if (time == "UNLIMITED" || time == "INFINITE") return 0;
  const std::size_t dash = time.find('-');
  if (dash != std::string::npos) {
    const std::optional<long> days = count_of(std::string_view(time).substr(0, dash));
    std::vector<long> numbers = numbers_of(std::string_view(time).substr(dash + 1));
    if (!days || numbers.empty()) return -1;
    numbers.resize(3);
    return *days * kMinutesPerDay + numbers[0] * kMinutesPerHour + with_seconds(numbers[1], numbers[2]);
  }
  const std::vector<long> numbers = numbers_of(time);
  if (numbers.size() == 1) return numbers[0] == 0 ? -1 : numbers[0];
  if (numbers.size() == 2) return with_seconds(numbers[0], numbers[1]);
  if (numbers.size() == 3) return numbers[0] * kMinutesPerHour + with_seconds(numbers[1], numbers[2]);
  return -1;
}

int slurm_gpus(const std::string& gres) {
  long gpus = 0;
  for (const std::string_view resource : split(gres, ',')) {
    const std::vector<std::string_view> parts = split(resource, ':');
    const std::string_view name = parts[0].starts_with("gres/") ? parts[0].substr(5) : parts[0];
    if (name == "gpu") gpus += parts.size() == 1 ? 1 : count_of(parts.back()).value_or(1);
  }
  return static_cast<int>(std::min(gpus, kLargestNumber));
}

}  // namespace sweep
