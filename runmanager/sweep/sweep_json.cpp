#include "runmanager/sweep/sweep_json.h"

#include <iterator>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/readers/sha256.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/text/json_document.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kProvenance = "provenance", *kChecksum = "content_sha256";

Json sweep_json(const Sweep& sweep, const Json& program) {
  Json file = sweep.resolved.is_object() ? sweep.resolved : Json::object();
  Json runs = Json::array(), excluded = Json::array();
  for (const RunConfig& run : sweep.runs) runs.push_back(run.name);
  for (const ExcludedRun& run : sweep.excluded) {
    excluded.push_back({{"params", to_json(run.params)}, {"reason", run.reason}});
  }
  file["runs"] = std::move(runs);
  file["excluded"] = std::move(excluded);
  file["file"] = sweep.file.string();
  file[kProvenance] = program;
  return file;
}

std::string checksum_of(const Json& json) {
  const std::string text = json_text(json);
  Sha256 sha256;
  sha256.update(text);
  return sha256.finish();
}

bool is_checksum(const Json& value) {
  constexpr std::size_t kDigits = 64;
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string sweep_file_text(const Sweep& sweep, const Json& program) {
  Json file = sweep_json(sweep, program);
  file[kProvenance][kChecksum] = checksum_of(file);
  return json_text(file);
}

std::string sweep_record_text(const std::filesystem::path& file) {
  std::error_code error;
  const bool is_there = std::filesystem::exists(file, error);
  if (!is_there && (!error || error == std::errc::filename_too_long)) return "";
  std::string text = read_file(file);
  // One of the two may be damaged.
  for (const char* key : {"\"runs\"", "\"provenance\""})
    if (text.find(key) != std::string::npos) return text;
  try {
    parse_json(text, file.string());
  } catch (const ConfigError&) {
    return text;  // What is no JSON is a damaged one.
  }
  throw ConfigError(file.string() +
                    ": was not written by a sweep, so it is not replaced; name the file "
                    "itself, or give another --name or --logdir");
}

std::string sweep_file_problem(const std::string& text, Json json) {
  const std::string problem = "is damaged: its checksum is not that of its content";
  if (!json.is_object() || json.empty()) return "";
  // Names may be damaged as well, so the checksum is found by its place.
  const auto provenance = std::prev(json.end());
  const bool has_members = provenance->is_object() && !provenance->empty();
  const bool is_named = has_members && std::prev(provenance->end()).key() == kChecksum;
  if (!has_members || (!is_named && !is_checksum(*std::prev(provenance->end())))) return "";
  const Json written = *std::prev(provenance->end());
  if (!is_named || provenance.key() != kProvenance || json_text(json) != text) return problem;
  provenance->erase(std::prev(provenance->end()));
  return written == checksum_of(json) ? "" : problem;
}

}  // namespace sweep
