// A small search over a small network, and what has to be the same however it was interrupted.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweep/sweep_runner.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "tests/support/quarters.h"
#include "tests/support/run_world.h"
#include "tests/support/tensor_bytes.h"

namespace sweep::test {

// What a sweep has come to, as far as interruptions must not change it.
struct Outcome {
  std::vector<std::string> names;              // in the order of the trials
  std::map<std::string, std::string> ends;     // by name: status, epochs and their losses
  std::map<std::string, std::string> weights;  // by name: the checkpoint
};

// The settings of sweeps over quarters whose networks train in a moment.
inline Json quarters_file() {
  return Json::parse(R"({
    "name": "quarters",
    "dataset": {"name": "quarters", "path": "data", "validation": 40},
    "network": {"name": "net", "layers": [
      {"name": "flatten", "type": "flatten"},
      {"name": "hidden", "type": "linear", "out_features": 8},
      {"name": "relu", "type": "relu"},
      {"name": "out", "type": "linear", "out_features": 4}]},
    "optimizer": "adam", "epochs": 4, "seed": 3, "batch_size": 20})");
}

class Search : public testing::Test, protected Quarters {
 protected:
  void write(const Json& search, const Json& params, const Json& more = Json::object()) {
    Json file = quarters_file();
    file["search"] = search;
    file["params"] = params;
    file.update(more);
    write_file_atomically(directory_ / "quarters.json", file.dump());
  }

  SweepOutcome run_in_workers(int workers, const std::string& logdir,
                              const std::vector<std::string>& overrides = {}) {
    environment_.worker_command = {SWEEP_MISBEHAVING_WORKER, "worker"};
    options_.jobs = workers;
    SweepOutcome outcome = run(logdir, overrides);
    environment_.worker_command.clear();
    options_.jobs = 1;
    return outcome;
  }

  static Outcome outcome_of(const SweepOutcome& sweep) {
    Outcome outcome;
    for (const RunRecord& run : sweep.runs) {
      outcome.names.push_back(run.name);
      // As on disk, so that what was shown and what is kept are the same.
      const RunRecord kept = read_run_record(sweep.directory / run.name / "run.json");
      EXPECT_EQ(kept.status, run.status) << run.name;
      std::string end(to_string(kept.status));
      for (const EpochRecord& epoch : kept.epochs)
        end += fmt::format(" {:a}/{:a}", *epoch["loss"], epoch["validation_loss"].value_or(-1));
      outcome.ends[run.name] = end;
      outcome.weights[run.name] = tensor_bytes(sweep.directory / run.name / "checkpoint.safetensors");
    }
    return outcome;
  }

  static void expect_same(const Outcome& found, const Outcome& expected, const std::string& what = "") {
    EXPECT_EQ(found.names, expected.names) << what;
    EXPECT_EQ(found.ends, expected.ends) << what;
    for (const std::string& name : found.names)
      EXPECT_TRUE(same_bytes(found.weights.at(name), expected.weights.at(name))) << what << name;
  }

  // The same trials and bits when it is stopped at the n-th time that it asks, again and again until it is
  // through, and in any number of workers.
  void expect_same_however_trained(std::size_t trials) {
    const Outcome expected = outcome_of(run("whole"));
    ASSERT_EQ(expected.names.size(), trials);
    for (const int interval : {11, 70}) {
      const std::string logdir = fmt::format("runs{}", interval);
      SweepOutcome sweep;
      int starts = 0;
      do {
        // A little longer each time, so that it gets through.
        sweep = run_stopping(interval + starts, logdir, this->sweep());
        ASSERT_LT(++starts, 400);
      } while (sweep.exit_code == 143);
      EXPECT_EQ(sweep.exit_code, 0);
      EXPECT_GE(starts, 3);
      expect_same(outcome_of(sweep), expected, fmt::format("every {}", interval));
    }
    for (const int workers : {1, 3}) {
      const std::string what = fmt::format("workers{}", workers);
      expect_same(outcome_of(run_in_workers(workers, what)), expected, what);
    }
  }

  static std::size_t count(const SweepOutcome& sweep, RunStatus status) {
    return static_cast<std::size_t>(
        std::ranges::count(sweep.runs, status, [](const RunRecord& run) { return run.status; }));
  }
};

}  // namespace sweep::test
