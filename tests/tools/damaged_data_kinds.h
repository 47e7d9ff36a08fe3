// The kinds of damaged data that the program is tested with.
#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/sweep_folder.h"

namespace sweep::testing {

enum class Fate {
  kRefused,  // exit code 2 and one line, from every command
  kSkipped,  // one file less, and a line that names it
  kRead,     // converted as documented: nothing is missing
};

struct Kind {
  std::string name;
  Fate fate;
  std::function<void(const SweepFolder&)> write;
  std::string says;  // the beginning of the line, without the folder: the file's name and what is wrong
  std::string path = "data";
  std::string dataset = "own";
  bool obeys_permissions = false;
  std::size_t samples = 10;  // that are read, unless it is refused
};

inline void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

/// Where Debian's package has Fashion-MNIST, which kinds of another data set than "own" need.
inline constexpr char kDebiansFashion[] = "/usr/share/datasets/fashion-mnist";

std::vector<Kind> kinds_of_damage();

}  // namespace sweep::testing
