// A run of a small network whose files tests look at.
#pragma once

#include "proto/tensorboard/hparams.pb.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/training/run_tracker.h"
#include "tests/support/run_world.h"

namespace sweep::test {

class RunFiles : public ::testing::Test {
 protected:
  std::filesystem::path sweep_directory() const { return temporary_.path() / "sweep"; }
  std::filesystem::path run_directory() const { return sweep_directory() / run_.name; }
  std::vector<proto::Event> events() const { return tbwriter::read_run(run_directory()); }
  std::vector<proto::Summary::Value> values_of(const std::string& tag) const {
    return tbwriter::values_of(events(), tag);
  }
  RunRecord record() const { return read_run_record(run_directory() / "run.json"); }

  proto::SessionStatus last_status() const {
    const auto ends = values_of("_hparams_/session_end_info");
    proto::HParamsPluginData end;
    EXPECT_EQ(ends.size(), 1u);
    EXPECT_TRUE(end.ParseFromString(ends.at(0).metadata().plugin_data().content()));
    return end.session_end_info().status();
  }

  // Batches of `samples` samples with `correct` right ones.
  static void track(RunTracker& run, double loss, std::int64_t correct, std::int64_t samples) {
    run.track({.loss = loss * static_cast<double>(samples), .correct = correct, .samples = samples});
  }

  TemporaryDirectory temporary_;
  double seconds_ = 100;  // the clock's
  Dataset data_ = small_dataset();
  Network network_{small_network(), {1, 4, 4}};
  DataLoader loader_{data_.train, {.batch_size = 10}};
  sweep::Run run_ =
      RunBuilder::get_runs({{"lr", {0.5}}, {"shuffle", {true}}, {"n", {3}}, {"device", {"cpu"}}}).at(0);
};

}  // namespace sweep::test
