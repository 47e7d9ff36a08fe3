// The built program in a folder of its own, and what it leaves there. For tests with SWEEP_PROGRAM.
#pragma once

#include <nlohmann/json.hpp>

#include "core/data/known_datasets.h"
#include "tests/support/program.h"
#include "tests/support/sweep_folder.h"

#if defined(SWEEP_PROGRAM)
namespace sweep::testing {

using nlohmann::json;

/// A fixture. Paths are below the folder, where the program is started.
class ProgramFolder : public ::testing::Test {
 protected:
  ProgramFolder() {  // What `sweep data get` has brought stays visible.
    if (!std::filesystem::exists(downloaded_)) return;
    std::filesystem::create_directories(user_cache_directory());
    std::filesystem::create_directory_symlink(downloaded_, user_cache_directory() / "fashion-mnist");
  }

  /// Runs `sweep WORDS…`, which must end with `code`.
  Finished run(const std::vector<std::string>& words, int code = 0) const {
    return checked(run_program(words, folder_.path()), words, code);
  }
  /// Writes NAME.json and runs it: one that trains a network of these layers on `dataset` on the CPU, by
  /// Adam, from seed 1. `settings`: further keys. All are texts of JSON.
  Finished train(const std::string& name, const std::string& dataset, const std::string& layers,
                 const std::string& settings = "\"epochs\": 1", int code = 0) const {
    folder_.write(name + ".json", R"({"dataset": )" + dataset + R"(, "network": {"layers": [)" + layers +
                                      R"(]}, "device": "cpu", "seed": 1, "optimizer": "adam", )" + settings +
                                      "}");
    return run({name + ".json"}, code);
  }
  /// Runs a line of shell in which $SWEEP is the program.
  Finished run_shell(const std::string& line, int code = 0) const {
    const std::string all = "SWEEP='" + program_path(SWEEP_PROGRAM) + "'; " + line;
    return checked(run_program("/bin/sh", {"-c", all}, folder_.path()), {line}, code);
  }
  /// What `sweep WORDS… --json` prints.
  json output(std::vector<std::string> words, int code = 0) const {
    words.emplace_back("--json");
    return json::parse(run(words, code).out);
  }

  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
  std::string content(const std::string& name) const { return read_file(path(name)); }
  bool exists(const std::string& name) const { return std::filesystem::exists(path(name)); }
  json read_json(const std::string& name) const { return json::parse(content(name)); }
  /// The record of a run: "SWEEP/RUN" below runs/.
  json record(const std::string& run) const { return read_json("runs/" + run + "/run.json"); }
  /// The runs of runs/SWEEP/results.json.
  json results(const std::string& sweep) const {
    return read_json("runs/" + sweep + "/results.json").at("runs");
  }
  /// The first picture that TensorBoard shows of a run, as a PNG file; "" if there is none.
  std::string first_picture(const std::string& run) const {
    for (const auto& file : std::filesystem::directory_iterator(path("runs/" + run))) {
      if (!file.path().filename().string().starts_with("events.out")) continue;
      const std::string events = read_file(file.path());
      const std::size_t begin = events.find("\x89PNG");
      if (begin != std::string::npos) return events.substr(begin, events.find("IEND", begin) + 8 - begin);
    }
    return "";
  }

  SweepFolder folder_;
  const std::filesystem::path downloaded_ = user_cache_directory() / "fashion-mnist";
  const test::Environment cache_{"XDG_CACHE_HOME", path("cache").string()};

 private:
  static Finished checked(Finished finished, const std::vector<std::string>& words, int code) {
    EXPECT_EQ(finished.code, code) << ::testing::PrintToString(words) << '\n' << finished.out << finished.err;
    return finished;
  }
};

}  // namespace sweep::testing
#endif
