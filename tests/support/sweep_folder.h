// A folder with sweep files for one test, which loads them.
#pragma once

#include "runmanager/sweepfile/sweep_file.h"
#include "tests/support/test.h"

namespace sweep::testing {

/// Removed with the object. error() returns messages without the path of the folder.
class SweepFolder {
 public:
  SweepFolder() {
    write("net.json",
          R"({"layers": [{"type": "flatten"}, {"name": "fc1", "type": "linear", "out_features": 32},
 {"type": "relu"}, {"name": "out", "type": "linear", "out_features": 10}]})");
  }

  const std::filesystem::path& path() const { return directory_.path(); }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    return directory_.write(name, text);
  }

  Sweep load(const std::string& text, const std::vector<std::string>& overrides = {},
             LoadOptions options = {}) const {
    if (!options.cuda_device_count) options.cuda_device_count = 0;
    return load_sweep(write("s.json", text), overrides, options);
  }

  /// Returns the message of the ConfigError or DataError; if there is none, fails the test and returns "".
  std::string error(const std::string& text, const std::vector<std::string>& overrides = {},
                    LoadOptions options = {}) const {
    SCOPED_TRACE(text);
    return without_folder(test::message_of<Error>([&] { load(text, overrides, options); }));
  }

  /// Returns a good file with `more` after its data set and network: `"lr": 0.1, "params": {…}`.
  static std::string with(const std::string& more) {
    return "{\"dataset\": \"fashion-mnist\", \"network\": \"net.json\",\n" + more + "}";
  }

  std::string without_folder(std::string message) const {
    const std::string folder = path().string() + "/";
    for (std::size_t at; (at = message.find(folder)) != std::string::npos;) message.erase(at, folder.size());
    return message;
  }

 private:
  test::TemporaryDirectory directory_;
};

/// A fixture.
struct InSweepFolder : ::testing::Test {
  const SweepFolder folder;
};

inline std::vector<std::string> names_of(const Sweep& sweep) {
  std::vector<std::string> names;
  for (const RunConfig& run : sweep.runs) names.push_back(run.name);
  return names;
}

}  // namespace sweep::testing

namespace sweep {
using testing::names_of, testing::SweepFolder;
}  // namespace sweep
