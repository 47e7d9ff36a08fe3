#include "runmanager/sweep/joined_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/json/json_text.h"
#include "runmanager/records/run_files.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxFiles = 3;
constexpr std::size_t kShownDigits = 12;  // of a digest

fs::path inputs_path(const fs::path& directory) { return directory / ".inputs.json"; }

// The first run of each data set and file of weights.
std::vector<const RunConfig*> runs_with_own_inputs(const Sweep& sweep) {
  std::vector<const RunConfig*> runs;
  for (const RunConfig& run : sweep.runs) {
    const bool is_known = std::ranges::any_of(runs, [&run](const RunConfig* known) {
      return known->dataset == run.dataset && known->init == run.init;
    });
    if (!is_known) runs.push_back(&run);
  }
  return runs;
}

std::string difference(const std::string& path, const std::string& there, const std::string& here) {
  return fmt::format("\n  {}: SHA-256 {}… there, {}… here", path, there.substr(0, kShownDigits),
                     here.substr(0, kShownDigits));
}

// {"path", "sha256"} each; throws Json::exception if they are not.
void add_differences(const Json& there, const Json& here, std::set<std::string>& found) {
  if (there.size() != here.size())
    found.insert(fmt::format("\n  {} files there, {} here", there.size(), here.size()));
  for (std::size_t i = 0; i < std::min(there.size(), here.size()); ++i) {
    const auto theirs = there.at(i).at("sha256").get<std::string>();
    const auto ours = here.at(i).at("sha256").get<std::string>();
    if (theirs != ours) found.insert(difference(here.at(i).at("path").get<std::string>(), theirs, ours));
  }
}

}  // namespace

void write_inputs(const fs::path& directory, const Sweep& sweep, RunKind& kind) {
  Json list = Json::array();
  for (const RunConfig* run : runs_with_own_inputs(sweep))
    list.push_back({{"run", run->name}, {"files", kind.input_files(*run)}});
  write_file_atomically(inputs_path(directory), json_text(list));
}

std::string differences_from_inputs(const fs::path& directory, const Sweep& sweep, RunKind& kind) {
  std::error_code error;
  if (!fs::exists(inputs_path(directory), error)) return "";
  std::set<std::string> found;
  try {
    for (const Json& entry : read_json_file(inputs_path(directory))) {
      const auto run = std::ranges::find(sweep.runs, entry.at("run").get<std::string>(), &RunConfig::name);
      if (run != sweep.runs.end()) add_differences(entry.at("files"), kind.input_files(*run), found);
    }
  } catch (const Json::exception&) {
    return "";  // What a power cut has left of it.
  }
  std::string text;
  std::size_t named = 0;
  for (const std::string& line : found) {
    if (++named <= kMaxFiles) text += line;
  }
  return named <= kMaxFiles ? text : text + fmt::format("\n  and {} more", named - kMaxFiles);
}

}  // namespace sweep
