// A folder with sweep files for one test, and what loading them gives.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "runmanager/sweep_file.h"

namespace sweep::testing {

/// Gone with the object. Files in it are named without the folder in what error() returns.
class SweepFolder {
 public:
  SweepFolder() {
    static std::atomic<int> count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("sweep_folder_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path_);
    write("net.json",
          R"({"layers": [{"type": "flatten"}, {"name": "fc1", "type": "linear", "out_features": 32},
 {"type": "relu"}, {"name": "out", "type": "linear", "out_features": 10}]})");
  }
  SweepFolder(const SweepFolder&) = delete;
  SweepFolder& operator=(const SweepFolder&) = delete;
  ~SweepFolder() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::filesystem::remove(path_ / name);  // ext4 takes a file that is overwritten to the disk at once.
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

  Sweep load(const std::string& text, const std::vector<std::string>& overrides = {},
             LoadOptions options = {}) const {
    if (!options.cuda_device_count) options.cuda_device_count = 0;
    return load_sweep(write("s.json", text), overrides, options);
  }

  /// The message of the ConfigError or DataError; "" with a test failure if there is none.
  std::string error(const std::string& text, const std::vector<std::string>& overrides = {},
                    LoadOptions options = {}) const {
    try {
      load(text, overrides, options);
    } catch (const Error& error) {
      return without_folder(error.what());
    }
    ADD_FAILURE() << "accepted: " << text;
    return "";
  }

  /// The settings of a good file, and `more` after them: `"lr": 0.1, "params": {…}`.
  static std::string with(const std::string& more) {
    return "{\"dataset\": \"fashion-mnist\", \"network\": \"net.json\",\n" + more + "}";
  }

  std::string without_folder(std::string message) const {
    const std::string folder = path_.string() + "/";
    for (std::size_t at; (at = message.find(folder)) != std::string::npos;) message.erase(at, folder.size());
    return message;
  }

 private:
  std::filesystem::path path_;
};

inline std::vector<std::string> names_of(const Sweep& sweep) {
  std::vector<std::string> names;
  for (const RunConfig& run : sweep.runs) names.push_back(run.name);
  return names;
}

}  // namespace sweep::testing
