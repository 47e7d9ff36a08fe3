#include "runmanager/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/cache_folder.h"
#include "runmanager/config/params.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// One file per sweep's directory, in the user's cache; empty without a cache.
fs::path file_of(const fs::path& directory) {
  const fs::path cache = user_cache_directory();
  if (cache.empty()) return {};
  std::error_code error;
  const std::string text = fs::weakly_canonical(fs::absolute(directory, error), error).string();
  return cache / "predictions" / (hash_of(text) + ".json");
}

}  // namespace

void save_prediction(const SweepPlan& plan) {
  const fs::path file = file_of(plan.directory);
  const std::optional<double> seconds = plan.seconds();
  if (file.empty() || !seconds || *seconds <= 0) return;
  Json json = {{"directory", plan.directory.string()}, {"jobs", plan.jobs}, {"seconds", *seconds}};
  Json runs = Json::array();
  for (const PlannedRun& run : plan.runs) {
    if (run.trains()) runs.push_back(run.config->name);
  }
  json["runs"] = std::move(runs);
  try {
    fs::create_directories(file.parent_path());
    write_file_atomically(file, json.dump() + "\n");
  } catch (const std::exception&) {
    // The plan was printed; only the comparison is lost.
  }
}

std::string compare_with_prediction(const fs::path& directory, std::span<const RunRecord> runs, int jobs,
                                    double seconds) {
  const fs::path file = file_of(directory);
  std::error_code error;
  if (file.empty() || !fs::exists(file, error)) return "";
  try {
    const Json json = Json::parse(read_file(file));
    fs::remove(file, error);
    const auto expected = json.at("seconds").get<double>();
    if (json.at("jobs").get<int>() != jobs) return "";
    for (const Json& name : json.at("runs")) {
      const auto found = std::ranges::find(runs, name.get<std::string>(), &RunRecord::name);
      if (found == runs.end() || found->status != RunStatus::kCompleted) return "";
    }
    return fmt::format("Predicted {:.3g} s, took {:.3g} s ({:+.1f} %)", expected, seconds,
                       100 * (seconds - expected) / expected);
  } catch (const std::exception&) {
    return "";  // From another version, or damaged: as good as none.
  }
}

}  // namespace sweep
