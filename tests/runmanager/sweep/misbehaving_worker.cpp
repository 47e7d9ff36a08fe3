// A worker with the CPU engine, which misbehaves if the learning rate says so.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <new>
#include <thread>

#include "core/base/error.h"
#include "core/data/safetensors.h"
#include "runmanager/sweep/worker.h"
#include "tests/runmanager/sweep/misbehaviour.h"

namespace sweep {
namespace {

// Whether this is the first call, over all processes of the test: the environment names a file that marks it.
bool is_first_time() {
  const std::filesystem::path file = std::getenv("MISBEHAVED");
  if (std::filesystem::exists(file)) return false;
  std::ofstream(file) << "once";
  return true;
}

// Waits for the checkpoint of kLastFinishedEpoch, so that the test knows which epochs are finished.
void wait_for_checkpoint() {
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::filesystem::path file = std::filesystem::read_symlink(fd, error);
    if (error || file.filename() != "log.txt") continue;
    for (int tries = 0; tries < 1000; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      try {
        const auto epoch =
            read_safetensors(file.parent_path() / "checkpoint.safetensors").metadata.at("epoch");
        if (epoch == std::to_string(kLastFinishedEpoch)) break;
      } catch (const DataError&) {  // It is not there yet.
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void must_not_throw(const std::function<void()>& body) noexcept { body(); }

class MisbehavingEngine final : public Engine {
 public:
  explicit MisbehavingEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  void train(const Batch& batch, const StepValues& values) override {
    const double learning_rate = values.learning_rate;
    if (learning_rate >= kCrashes && engine_->step_count() == kMisbehavesInStep - 2) wait_for_checkpoint();
    engine_->train(batch, learning_rate < kCrashes ? learning_rate : kGoodRate);
    if (engine_->step_count() == kMisbehavesInStep) misbehave(learning_rate);
  }
  void evaluate(const Batch& batch, std::span<float> outputs, bool counts) override {
    engine_->evaluate(batch, outputs, counts);
  }
  std::vector<LayerProfile> profile(const Batch& batch) override { return engine_->profile(batch); }
  Totals take_totals() override {
    Totals totals = engine_->take_totals();
    if (is_nan_) totals.loss = std::numeric_limits<double>::quiet_NaN();
    return totals;
  }
  std::vector<float> array(const EngineArray& which) const override { return engine_->array(which); }
  void set_array(const EngineArray& which, std::span<const float> values) override {
    engine_->set_array(which, values);
  }
  std::vector<std::string> optimizer_arrays() const override { return engine_->optimizer_arrays(); }
  std::int64_t step_count() const override { return engine_->step_count(); }
  void set_step_count(std::int64_t steps) override { engine_->set_step_count(steps); }

 private:
  void misbehave(double learning_rate) {
    if (learning_rate == kCrashes || (learning_rate == kCrashesOnce && is_first_time())) {
      ::signal(SIGSEGV, SIG_DFL);
      ::raise(SIGSEGV);
    }
    if (learning_rate == kHangs) {
      for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    if (learning_rate == kDiverges) is_nan_ = true;
    if (learning_rate == kWantsMemory) throw std::bad_alloc();
    if (learning_rate == kWantsMemoryAndMustNotThrow) must_not_throw([] { throw std::bad_alloc(); });
    if (learning_rate == kBreaksItsDevice) throw DeviceError("cpu: an illegal address was used");
    if (learning_rate == kLeaves) ::_exit(3);
  }

  std::unique_ptr<Engine> engine_;
  bool is_nan_ = false;
};

}  // namespace
}  // namespace sweep

int main(int argc, char** argv) {
  using namespace sweep;
  return worker_main(argc, argv, {.make_engine = [](const Network& network, const EngineOptions& options) {
                       return std::make_unique<MisbehavingEngine>(make_engine(network, options));
                     }});
}
