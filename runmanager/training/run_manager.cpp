#include "runmanager/training/run_manager.h"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/records/run_records.h"
#include "runmanager/training/run_recorder.h"

namespace sweep {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

// Keeps the records of all runs and checks the order of calls; everything about the open run is
// RunRecorder's. Hidden from the installed header, which must not show TensorBoard's writer.
class RunManager::Implementation {
 public:
  explicit Implementation(RunManagerOptions options) : options_(std::move(options)) {
    if (!options_.clock) options_.clock = steady_seconds;
    if (options_.name.empty())
      options_.name = std::filesystem::absolute(options_.directory).filename().string();
  }

  ~Implementation() {
    if (!recorder_) return;
    try {
      end_run(RunStatus::kInterrupted, "the program ended before the run did");
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", printable(error.what()));
    }
  }

  void begin_run(const Run& run, const TrainedNetwork& trained) {
    RunRecord& record = next_record("begin_run", run);
    recorder_ = std::make_unique<RunRecorder>(recorder_options(), run, trained, grids_, record);
  }

  void resume_run(const Run& run, std::string_view text) {
    RunRecord& record = next_record("resume_run", run);
    const std::string where = "the progress of " + run.name;
    RunProgress progress;
    try {
      const nlohmann::ordered_json json = nlohmann::ordered_json::parse(text);
      progress = {run_record_from_json(json.at("record"), where), run_position_from_json(json)};
    } catch (const nlohmann::json::exception&) {
      throw DataError(where + " is damaged; want what RunManager::progress() returned");
    }
    recorder_ = std::make_unique<RunRecorder>(recorder_options(), run, TrainedNetwork{}, progress, record);
    recorder_->restore_events([](int) { return std::nullopt; });
  }

  std::string progress() {
    RunRecorder& recorder = run("progress");
    const nlohmann::ordered_json position = to_json(recorder.position(/*batches=*/0));
    recorder.flush(Survives::kPowerCut);
    nlohmann::ordered_json json = {{"record", to_json(recorder.record())}};
    json.update(position);
    return json.dump();
  }

  bool keep_completed(const Run& run) {
    if (recorder_) throw std::logic_error("RunManager::keep_completed() before end_run() of the last run");
    const std::filesystem::path file = options_.directory / run.name / kRunRecordFile;
    if (!std::filesystem::exists(file)) return false;
    RunRecord record = read_run_record(file);
    if (record.status != RunStatus::kCompleted || record.params != run.params || record.config != run.config)
      return false;
    records_.put(std::move(record));
    return true;
  }

  void begin_epoch() {
    RunRecorder& recorder = run("begin_epoch");
    if (recorder.in_epoch())
      throw std::logic_error("RunManager::begin_epoch() before end_epoch() of the last one");
    recorder.begin_epoch();
  }

  void end_run(RunStatus status, std::string_view reason) {
    run("end_run");
    // Moved out, so that the run counts as ended even if its files cannot be written.
    const std::unique_ptr<RunRecorder> ended = std::move(recorder_);
    ended->end(status, reason);
  }

  // The open run. `call`: for the message.
  RunRecorder& run(const char* call) const {
    if (!recorder_) throw std::logic_error(fmt::format("RunManager::{}() outside of a run", call));
    return *recorder_;
  }

  // The open run, inside an epoch.
  RunRecorder& epoch(const char* call) const {
    if (!recorder_ || !recorder_->in_epoch())
      throw std::logic_error(fmt::format("RunManager::{}() outside of an epoch", call));
    return *recorder_;
  }

  const std::filesystem::path& directory() const { return options_.directory; }
  const std::vector<RunRecord>& records() const { return records_.all(); }

  void save(const std::filesystem::path& file) const {
    records_.save(options_.directory / file, options_.name, options_.keys, Survives::kPowerCut);
  }

 private:
  // Valid while the run is open, because no other record is added meanwhile.
  RunRecord& next_record(const char* call, const Run& run) {
    if (recorder_)
      throw std::logic_error(fmt::format("RunManager::{}() before end_run() of the last run", call));
    return records_.at(run.name);
  }

  RecorderOptions recorder_options() const {
    return {.directory = options_.directory,
            .clock = options_.clock,
            .provenance = options_.provenance,
            .survives = Survives::kPowerCut};
  }

  RunManagerOptions options_;
  RunRecords records_;
  ImageGridCache grids_;
  std::unique_ptr<RunRecorder> recorder_;  // empty between runs
};

RunManager::RunManager(RunManagerOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(options))) {}
RunManager::~RunManager() = default;

void RunManager::begin_run(const Run& run, const Network& network, const DataLoader& loader) {
  implementation_->begin_run(run, {&network, &loader});
}
void RunManager::begin_run(const Run& run) { implementation_->begin_run(run, {}); }
std::string RunManager::progress() { return implementation_->progress(); }
void RunManager::resume_run(const Run& run, std::string_view progress) {
  implementation_->resume_run(run, progress);
}
bool RunManager::keep_completed(const Run& run) { return implementation_->keep_completed(run); }
void RunManager::track_setup(double seconds, std::optional<Placement> placement) {
  implementation_->run("track_setup").track_setup(seconds, placement);
}
void RunManager::begin_epoch() { implementation_->begin_epoch(); }
void RunManager::track_loss(double mean_loss, const Batch& batch) {
  implementation_->epoch("track_loss").track_loss(mean_loss, batch);
}
void RunManager::track_num_correct(std::span<const float> outputs, const Batch& batch) {
  implementation_->epoch("track_num_correct").track_num_correct(outputs, batch);
}
void RunManager::track_loss(double mean_loss, std::int64_t samples) {
  implementation_->epoch("track_loss").track_loss(mean_loss, samples);
}
void RunManager::track_num_correct(std::int64_t count) {
  implementation_->epoch("track_num_correct").track_num_correct(count);
}
void RunManager::track_epoch_metric(std::string_view name, double value) {
  implementation_->epoch("track_epoch_metric").track_epoch_metric(name, value);
}
void RunManager::track_histogram(std::string_view tag, std::span<const float> values) {
  implementation_->epoch("track_histogram").track_histogram(tag, values);
}
void RunManager::track_image(std::string_view tag, std::span<const std::uint8_t> pixels, const Shape& shape) {
  implementation_->epoch("track_image").track_image(tag, pixels, shape);
}
void RunManager::track(const Totals& totals) { implementation_->epoch("track").track(totals); }
void RunManager::track(Engine& engine) { implementation_->epoch("track").track(engine); }
void RunManager::track_batch(const Totals& totals, std::int64_t batch) {
  implementation_->epoch("track_batch").track_batch(totals, batch);
}
void RunManager::track_learning_rate(double learning_rate) {
  implementation_->run("track_learning_rate").track_learning_rate(learning_rate);
}
void RunManager::track_parameters(std::span<const float> values, std::span<const float> gradients) {
  implementation_->epoch("track_parameters").track_parameters(values, gradients);
}
void RunManager::track_parameters(const Engine& engine) {
  implementation_->epoch("track_parameters").track_parameters(engine);
}
void RunManager::track_profile(std::span<const LayerProfile> layers, std::int64_t samples) {
  implementation_->epoch("track_profile").track_profile(layers, samples);
}
void RunManager::end_training() { implementation_->epoch("end_training").end_training(); }
void RunManager::track_device_seconds(double seconds) {
  implementation_->epoch("track_device_seconds").track_device_seconds(seconds);
}
void RunManager::track_communication_seconds(double seconds) {
  implementation_->epoch("track_communication_seconds").track_communication_seconds(seconds);
}
void RunManager::track_validation(const Totals& totals, double variation) {
  implementation_->epoch("track_validation").track_validation(totals, variation);
}
const EpochRecord& RunManager::end_epoch() { return implementation_->epoch("end_epoch").end_epoch(); }
void RunManager::track_predictions(const Subset& samples, std::span<const float> outputs,
                                   std::span<const std::string> class_names, std::string_view part) {
  implementation_->run("track_predictions").track_predictions(samples, outputs, class_names, part);
}
void RunManager::track_metric(std::string_view name, double value) {
  implementation_->run("track_metric").track_metric(name, value);
}
void RunManager::end_run(RunStatus status, std::string_view reason) {
  implementation_->end_run(status, reason);
}
const std::filesystem::path& RunManager::directory() const { return implementation_->directory(); }
const std::filesystem::path& RunManager::run_directory() const {
  return implementation_->run("run_directory").directory();
}
const RunRecord& RunManager::record() const { return implementation_->run("record").record(); }
const std::vector<RunRecord>& RunManager::records() const { return implementation_->records(); }
void RunManager::save(const std::filesystem::path& file) const { implementation_->save(file); }

}  // namespace sweep
