#include "tools/commands/get_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <iostream>
#include <ostream>
#include <set>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/data/fetch/fetch_dataset.h"
#include "core/data/known_datasets.h"
#include "runmanager/config/problems.h"
#include "runmanager/terminal/live_region.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/training/stop_signals.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

const KnownDataset& require_known(const std::string& name) {
  if (const KnownDataset* known = find_known_dataset(name)) return *known;
  std::vector<std::string> names;
  for (const KnownDataset& known : known_datasets()) names.emplace_back(known.name);
  throw ConfigError(
      fmt::format("data get: got \"{}\", want {}{}", name, listed(names), suggestion(name, names)));
}

// The data set in the user's own place, if all of it is there.
bool is_there_already(const KnownDataset& known, const fs::path& place) {
  std::error_code ignored;
  if (!fs::exists(place, ignored)) return false;
  try {
    load_dataset({.name = std::string(known.name), .path = place});
    return true;
  } catch (const DataError&) {
    return false;
  }
}

}  // namespace

std::string sample_text(const Dataset& dataset) {
  return fmt::format("[{}] of {}", fmt::join(dataset.shape, ", "),
                     dataset.train.set->samples.index() == 0 ? "uint8" : "float32");
}

int get_dataset(const std::string& name, std::ostream& out) {
  const KnownDataset& known = require_known(name);
  const fs::path place = user_dataset_place(name);
  if (place.empty())
    throw ConfigError("data get: neither XDG_CACHE_HOME nor HOME says where the user's cache is");
  if (is_there_already(known, place)) {
    out << fmt::format("{} is there already: {}\n", name, printable(place.string()));
    return kExitDone;
  }
  const Terminal terminal = Terminal::of_process();
  LiveRegion region(terminal);
  const StopSignals signals;
  FetchOptions options;
  if (const char* mirror = std::getenv("SWEEP_DATA_MIRROR")) options.mirror = mirror;
  options.progress = [&](const std::string& file, std::uint64_t done) {
    if (terminal.interactive)
      region.draw({fmt::format("{}: {}: {:.1f} MB", name, file, 1e-6 * static_cast<double>(done))});
    return StopSignals::requested() == 0;
  };
  const bool is_done = fetch_dataset(known, place, options);
  region.clear();
  if (!is_done) {
    terminal.write(
        fmt::format("sweep: stopped by {}; nothing was kept\n", signal_name(StopSignals::requested())));
    return 128 + StopSignals::requested();
  }
  const Dataset dataset = load_dataset({.name = name, .path = place});
  out << fmt::format("{} is in {}: {} samples {}, {} to test\n", name, printable(place.string()),
                     dataset.train.count, sample_text(dataset), dataset.test.count);
  return kExitDone;
}

int get_missing_datasets(const Sweep& sweep) {
  std::set<std::string> missing;
  for (const RunConfig& run : sweep.runs) {
    const DatasetSpec& data = run.dataset;
    if (run.command || !data.path.empty() || find_known_dataset(data.name) == nullptr) continue;
    try {
      find_dataset(data.name, data.format);
    } catch (const DataError&) {
      missing.insert(data.name);
    }
  }
  for (const std::string& name : missing) {
    if (const int code = get_dataset(name, std::cerr); code != kExitDone) return code;
  }
  return kExitDone;
}

}  // namespace sweep
