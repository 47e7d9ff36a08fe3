// Functions that searches are compared on; search_quality.py has the same.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "runmanager/search/search_space.h"

namespace sweep {

struct SearchFunction {
  std::string name;
  SearchDomain domain;
  double minimum;  // of the value over the domain; unused by the ZDT functions, which have two goals
  std::function<double(const SearchPoint& point)> value{};   // pure
  std::function<double(const SearchPoint& point)> second{};  // the same of a second goal, if it has two
};

/// Branin, Hartmann 6, Rosenbrock 4, Ackley 5, one of mixed kinds of dimensions, one with conditions; ZDT 1
/// to 3, which have two goals.
std::span<const SearchFunction> search_functions();

/// A function of two goals that was measured, of a JSON file: {"name", "sizes": [values of each dimension],
/// "values": [[…, …], …]}, the last dimension fastest. Throws DataError or what the JSON's access throws.
SearchFunction measured_function(const std::string& path);

}  // namespace sweep
