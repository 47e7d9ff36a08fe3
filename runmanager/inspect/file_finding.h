// The result of checking one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sweep {

/// What was found in one file. The texts are messages for the user.
struct FileFinding {
  std::string path = {};                   // relative to the directory that is checked
  std::vector<std::string> problems = {};  // damage: what is wrong, where, and what is lost
  std::vector<std::string> notes = {};  // no damage, but worth knowing, as a torn last record of a killed run
  std::optional<std::uint64_t> records = {};  // of an events file: the number that can be read
  std::uint64_t bytes = 0;                    // size of the file

  bool damaged() const { return !problems.empty(); }
};

/// `message` without the "PATH: " that error messages begin with; a finding has the path already.
inline std::string without_path(std::string message, const std::filesystem::path& path) {
  if (message.starts_with(path.string() + ": ")) message.erase(0, path.string().size() + 2);
  return message;
}

}  // namespace sweep
