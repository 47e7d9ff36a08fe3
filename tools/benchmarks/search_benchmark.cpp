// Minimises the functions of search_functions.h and measures what a suggestion takes. search_quality.py runs
// it.
#include <algorithm>
#include <cstddef>
#include <ctime>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runmanager/search/sampler.h"
#include "tools/benchmarks/search_functions.h"

namespace {

using namespace sweep;
using Json = nlohmann::ordered_json;

constexpr char kUsage[] =
    "usage: search_benchmark [--method random|tpe] [--trials N] [--seed FIRST] [--seeds N] [--after N] "
    "[--table FILE] [--goals 1|2]\n"
    "Prints the least value of each seed and function and the point, or of two goals the values of all "
    "trials,\n"
    "and the processor's milliseconds per suggestion of the second half of the trials; with --after also "
    "those\n"
    "after N observations of random points. With --goals 1 only the first goal of the table counts. JSON.\n";
constexpr int kTimed = 50;  // suggestions, with --after

struct Options {
  std::string method = "tpe", table;
  std::size_t trials = 100, seed = 0, seeds = 20, after = 0, goals = 2;
};

Options parse(int argc, char** argv) {
  Options options;
  const std::map<std::string, std::size_t*> numbers{{"--trials", &options.trials},
                                                    {"--seed", &options.seed},
                                                    {"--seeds", &options.seeds},
                                                    {"--after", &options.after},
                                                    {"--goals", &options.goals}};
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(name + " needs a value");
    if (name == "--method") {
      options.method = argv[i + 1];
    } else if (name == "--table") {
      options.table = argv[i + 1];
    } else if (const auto number = numbers.find(name); number != numbers.end()) {
      *number->second = std::stoul(argv[i + 1]);
    } else {
      throw std::invalid_argument("unknown option " + name);
    }
  }
  if (options.method != "tpe" && options.method != "random")
    throw std::invalid_argument("unknown method " + options.method);
  if (options.trials == 0) throw std::invalid_argument("--trials has to be 1 at least");
  return options;
}

Sampler make_sampler(const std::string& method, const SearchFunction& function, std::uint64_t seed) {
  return {function.domain, {.seed = seed, .learns = method == "tpe"}};
}

Json point_json(const SearchPoint& point) {
  Json json = Json::array();
  for (const auto& value : point) json.push_back(value ? Json(*value) : Json());
  return json;
}

// Measures processor time, which other programs on the machine disturb less.
class Stopwatch {
 public:
  double milliseconds() const { return 1e3 * static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t start_ = std::clock();
};

Observation observed(const SearchFunction& function, SearchPoint point) {
  Observation trial{.point = std::move(point)};
  trial.value = function.value(trial.point);
  if (function.second) trial.others = {function.second(trial.point)};
  return trial;
}

Json search(const Options& options, const SearchFunction& function, std::uint64_t seed) {
  const auto sampler = make_sampler(options.method, function, seed);
  std::vector<Observation> trials;
  const std::size_t untimed = options.trials / 2;
  double milliseconds = 0;
  for (std::size_t trial = 0; trial < options.trials; ++trial) {
    const Stopwatch watch;
    std::optional<SearchPoint> point = sampler.suggest(trial, trials);
    if (trial >= untimed) milliseconds += watch.milliseconds();
    if (!point) throw std::runtime_error("the space is exhausted");
    trials.push_back(observed(function, *std::move(point)));
  }
  Json result = {{"seed", seed}, {"ms", milliseconds / static_cast<double>(options.trials - untimed)}};
  if (function.second) {
    for (const Observation& trial : trials) result["values"].push_back({*trial.value, trial.others[0]});
    result["point"] = point_json(trials.back().point);
    return result;
  }
  const auto best =
      std::ranges::min_element(trials, {}, [](const Observation& trial) { return *trial.value; });
  result["best"] = *best->value;
  result["point"] = point_json(best->point);
  return result;
}

// Milliseconds per suggestion after `after` observations of random points.
double time_after(const Options& options, const SearchFunction& function) {
  const auto random = Sampler(function.domain, {.seed = options.seed});
  std::vector<Observation> trials;
  while (trials.size() < options.after) {
    std::optional<SearchPoint> point = random.suggest(trials.size(), trials);
    if (!point) throw std::runtime_error("the space is exhausted");
    trials.push_back(observed(function, *std::move(point)));
  }
  const auto sampler = make_sampler(options.method, function, options.seed);
  const Stopwatch watch;
  for (int i = 0; i < kTimed; ++i)
    if (!sampler.suggest(trials.size() + static_cast<std::size_t>(i), trials))
      throw std::runtime_error("the space is exhausted");
  return watch.milliseconds() / kTimed;
}

int run(const Options& options) {
  Json functions = Json::array();
  std::vector<SearchFunction> all(search_functions().begin(), search_functions().end());
  if (!options.table.empty()) {
    all.push_back(measured_function(options.table));
    if (options.goals == 1) all.back().second = nullptr;
  }
  for (const SearchFunction& function : all) {
    Json entry{{"name", function.name}, {"minimum", function.minimum}, {"runs", Json::array()}};
    for (std::size_t i = 0; i < options.seeds; ++i)
      entry["runs"].push_back(search(options, function, options.seed + i));
    if (options.after > 0 &&
        (!is_enumerable(function.domain) || all_points(function.domain).size() > options.after + kTimed))
      entry["ms_after"] = time_after(options, function);
    functions.push_back(std::move(entry));
  }
  std::cout << Json{{"method", options.method}, {"trials", options.trials}, {"functions", functions}}.dump(1)
            << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "search_benchmark: " << error.what() << '\n' << kUsage;
    return 2;
  }
}
