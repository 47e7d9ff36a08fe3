#include "runmanager/records/earlier_starts/attempts.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/error.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// "checkpoint.ATTEMPT.safetensors", "checkpoint.ATTEMPT.previous.safetensors", "best.ATTEMPT.safetensors".
const std::regex& name_of_attempt() {
  static const std::regex name(R"((checkpoint|best)\.([0-9a-f]{16}-[0-9]+)(\.previous)?\.safetensors)");
  return name;
}

struct AttemptFile {
  fs::path path;
  std::string attempt, usual_name;
  fs::file_time_type written;
};

std::vector<AttemptFile> attempt_files(const fs::path& run_directory) {
  std::vector<AttemptFile> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(run_directory)) {
    const std::string name = entry.path().filename().string();
    std::smatch parts;
    if (entry.is_symlink() || !std::regex_match(name, parts, name_of_attempt())) continue;
    files.push_back({entry.path(), parts[2], fmt::format("{}{}.safetensors", parts[1].str(), parts[3].str()),
                     entry.last_write_time()});
  }
  return files;
}

void adopt_newest(const fs::path& run_directory) {
  const std::vector<AttemptFile> files = attempt_files(run_directory);
  if (files.empty()) return;
  const auto newest = std::ranges::max_element(files, {}, &AttemptFile::written);
  for (const AttemptFile& file : files) {
    if (file.attempt == newest->attempt)
      fs::rename(file.path, run_directory / file.usual_name);
    else
      fs::remove(file.path);
  }
}

}  // namespace

void adopt_attempts(const fs::path& sweep_directory) {
  const fs::path claims = sweep_directory / ".claims";
  std::error_code error;
  if (fs::symlink_status(claims, error).type() != fs::file_type::directory) return;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(sweep_directory)) {
      if (!entry.is_symlink() && entry.is_directory() && entry.path() != claims) adopt_newest(entry.path());
    }
    fs::remove_all(claims);
  } catch (const fs::filesystem_error& failed) {
    throw IoError(fmt::format("{}: cannot be brought to the names of this version: {}",
                              failed.path1().string(), failed.code().message()));
  }
}

}  // namespace sweep
