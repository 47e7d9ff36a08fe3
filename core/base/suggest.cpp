#include "core/base/suggest.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

#include "core/base/text.h"

namespace sweep {
namespace {

// Optimal string alignment distance: d[i][j] is the distance of the first i letters of `a` to the first j of
// `b`. Time and memory O(a.size() * b.size()).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = d[i - 1][j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

bool is_beginning(std::string_view beginning, std::string_view word) {
  constexpr std::size_t kMinLetters = 3;
  return beginning.size() >= kMinLetters && beginning.size() < word.size() &&
         lower_case(std::string(word)).starts_with(lower_case(std::string(beginning)));
}

}  // namespace

std::string nearest_name(std::string_view wrong, std::span<const std::string> candidates) {
  // A longer text is not a typing mistake, and the comparison is quadratic.
  constexpr std::size_t kMaxLength = 64;
  if (wrong.size() > kMaxLength) return "";
  std::string best;
  // At most two edits, or a third of a longer name.
  std::size_t best_distance = std::max<std::size_t>(2, wrong.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    std::size_t distance = edit_distance(wrong, candidate);
    // The beginning of a name is most likely that name, and one with more after it possibly.
    if (is_beginning(wrong, candidate)) distance = 1;
    if (is_beginning(candidate, wrong)) distance = std::min<std::size_t>(distance, 2);
    // A name in which every letter has to be replaced is not similar.
    if (distance < best_distance && distance < std::max(wrong.size(), candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view nearest, std::string_view before) {
  return nearest.empty() ? "" : std::string(before) + " you mean \"" + std::string(nearest) + "\"?";
}

std::string typed_program(const std::string& own_name) {
  const char* script = std::getenv("SWEEP_TYPED_AS");
  return script != nullptr && *script != '\0' ? script : own_name;
}

}  // namespace sweep
