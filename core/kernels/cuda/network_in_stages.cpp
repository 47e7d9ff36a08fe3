// A network whose layers are on several CUDA devices, or on one device in several stages.
//
// One thread puts the work of all stages on their streams, in an order in which everything that a task waits
// for is on its stream before it; the devices work at their own pace. Ops, their fusion and all sums are
// those of a network on one device, and so are the bits.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/engine/engine_checks.h"
#include "core/kernels/cuda/pipeline_stage.h"
#include "core/kernels/cuda/placed_network.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep::cuda {
namespace {

// Those of `all` that compute anything; the stage before them has the layers of the others.
std::vector<Stage> used_stages(const Network& network, const std::vector<Stage>& all) {
  std::vector<std::size_t> first_layers;
  first_layers.reserve(all.size());
  for (const Stage& stage : all) first_layers.push_back(stage.first_layer);
  const std::vector<bool> used = stages_with_nodes(network, first_layers);
  std::vector<Stage> stages;
  for (std::size_t s = 0; s < all.size(); ++s) {
    if (used[s]) stages.push_back(all[s]);
  }
  stages.front().first_layer = 0;
  return stages;
}

// Of each stage, from 0 in order of first appearance.
std::vector<std::size_t> numbered_devices(const std::vector<Stage>& stages) {
  std::vector<int> known;
  std::vector<std::size_t> numbers;
  for (const Stage& stage : stages) {
    const auto found = std::find(known.begin(), known.end(), stage.device.index);
    numbers.push_back(static_cast<std::size_t>(found - known.begin()));
    if (found == known.end()) known.push_back(stage.device.index);
  }
  return numbers;
}

// With different GPUs, layers might be fused in different ways.
void require_equal_devices(const std::vector<Stage>& stages) {
  const std::vector<DeviceInfo> devices = list_cuda_devices();
  const auto description = [&](const Stage& stage) {
    return devices.at(static_cast<std::size_t>(stage.device.index)).description;
  };
  for (const Stage& stage : stages) {
    if (description(stage) == description(stages.front())) continue;
    throw DeviceError(stage.device.name() + " is another GPU than " + stages.front().device.name() + ", " +
                      description(stage) + " and not " + description(stages.front()) +
                      ", with which it is to train; want GPUs of one model");
  }
}

// NVIDIA's libraries expect arrays that begin at multiples of 256 bytes: so pieces have to, if libraries are
// used.
std::size_t piece_unit(const Network& network, const std::string& kernels) {
  constexpr std::size_t kAlignedFloats = 64;
  if (!kernels.starts_with('{')) return 1;
  std::size_t unit = kAlignedFloats / std::gcd(kAlignedFloats, element_count(network.input()));
  for (const Layer& layer : network.layers())
    unit = std::max(unit, kAlignedFloats / std::gcd(kAlignedFloats, element_count(layer.output)));
  return unit;
}

std::size_t micro_batches_of(const EngineOptions& options) {
  return options.parallel.pipeline ? static_cast<std::size_t>(options.parallel.pipeline->micro_batches) : 1;
}

// A pipeline's parts are under way at the same time, and count as micro-batches; those that wait for each
// other's sums have to be.
RoundOptions round_options(const Network& network, const EngineOptions& options, const GradientParts& parts) {
  const std::size_t micro_batches = micro_batches_of(options);
  const auto most = static_cast<std::size_t>(std::max(1, parts.most));
  const auto layers = network.layers();
  const bool normalizes = std::any_of(layers.begin(), layers.end(),
                                      [](const Layer& layer) { return layer.type == "batch_norm2d"; });
  return {.parts = parts,
          .together = parts.count > 1 && (micro_batches > 1 || normalizes),
          .pieces = (micro_batches + most - 1) / most};
}

class NetworkInStages final : public PlacedNetwork {
 public:
  NetworkInStages(const Network& network, const EngineOptions& options, const std::vector<Stage>& all,
                  const GradientParts& parts, std::size_t fed_samples)
      : network_(network), options_(options), rounds_of_(round_options(network, options, parts)) {
    if (options.parallel.pipeline) order_ = options.parallel.pipeline->schedule;
    const std::vector<Stage> stages = used_stages(network_, all);
    require_equal_devices(stages);
    devices_ = numbered_devices(stages);
    make_stages(stages, fed_samples);
    rounds_of_.unit = piece_unit(network_, kernels_);
    std::vector<std::vector<bool>> whole_batch, none;
    for (const auto& stage : stages_) {
      whole_batch.push_back(stage->whole_batch_ops());
      none.emplace_back(whole_batch.back().size());
    }
    plans_.push_back({StageSchedule(none, devices_), {}});
    plans_.push_back({StageSchedule(whole_batch, devices_), {}});
  }

  ~NetworkInStages() override {
    try {
      wait();
    } catch (const std::exception&) {
      // The call that met the error has reported it. A stage's memory may be read by another one's stream.
      abort();
      wait_for_streams();
    }
    leave();
  }
  NetworkInStages(const NetworkInStages&) = delete;
  NetworkInStages& operator=(const NetworkInStages&) = delete;

  std::size_t device_count() const override {
    return *std::max_element(devices_.begin(), devices_.end()) + 1;
  }

  // Stages on one device have one group: what several had under way could wait for each other.
  void join(std::span<const DeviceGroupId> groups, int rank, const std::vector<int>& first_parts,
            double deadline) override {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s]->runner().select();
      const std::size_t device = devices_[s];
      if (device == groups_.size())
        groups_.push_back(std::make_unique<DeviceGroup>(groups[device], rank,
                                                        static_cast<int>(first_parts.size()) - 1, deadline));
      stages_[s]->join(*groups_[device], first_parts);
    }
  }

  bool is_prepared(std::size_t samples) const override { return rounds_.contains(samples); }

  bool prepare(const Batch& batch) override {
    bool is_resident = true;
    for (const auto& stage : stages_) {
      for (const StageRound& round : rounds(batch.size())) stage->prepare(round);
      is_resident = stage->runner().feed().make_resident(stage->runner().stream(), batch.set) && is_resident;
    }
    return is_resident;
  }

  bool is_resident(const Batch& batch) const override {
    return std::all_of(stages_.begin(), stages_.end(),
                       [&](const auto& stage) { return stage->runner().feed().is_resident(batch.set); });
  }

  // Kernels are loaded when they are first launched, which may wait for the device in the driver. So the host
  // waits for the exchanges of the first batch of a size: later ones load no kernel.
  void train(const Batch& own, std::size_t samples, const StepInput& input) override {
    feed(own, input);
    const std::vector<StageRound>& all = rounds(samples);
    const bool waits = !groups_.empty() && trained_.insert(samples).second;
    for (const StageRound& round : all) {
      run(Task::kTrain, round, waits);
      for (const auto& stage : stages_) stage->finish_round();
    }
    // The last stage is done first.
    for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) (*stage)->exchange_gradients();
    for (const auto& stage : stages_) stage->sum_squares();
    for (const auto& stage : stages_) stage->take_step();
  }

  void evaluate(const Batch& batch) override {
    const StepInput input = step_input(batch, options_.loss);
    for_each_piece(batch, largest_pass(), [&](const Batch& piece, std::size_t /*begin*/) {
      evaluate(Task::kEvaluate, piece, input);
    });
  }

  void run_and_download(Task task, const Batch& batch, std::span<float> outputs) override {
    if (batch.size() == 0) return;
    const StepInput input = task == Task::kPredict ? StepInput{} : step_input(batch, options_.loss);
    const std::size_t count = outputs.size() / batch.size();  // of a sample
    for_each_piece(batch, largest_pass(), [&](const Batch& piece, std::size_t begin) {
      evaluate(task, piece, input);
      PipelineStage& last = *stages_.back();
      last.runner().select();
      last.runner().stream().download(outputs.data() + begin * count, last.program().outputs(),
                                      piece.size() * count * sizeof(float));
    });
  }

  const std::string& kernels() const override { return kernels_; }
  std::vector<DeviceTotals> take_totals() override { return stages_.back()->runner().take_totals(); }

  std::vector<float> parameters() override {
    return gathered(network_.parameter_count(), &Program::parameter_share, &Program::parameters);
  }
  void set_parameters(std::span<const float> values) override {
    check_count(values.size(), network_.parameter_count(), "set_parameters", "parameters");
    for (const auto& stage : stages_)
      stage->runner().upload(share_of(values, stage->program().parameter_share()),
                             stage->program().parameters(), "set_parameters", "parameters");
  }

  std::vector<float> buffers() override {
    return gathered(network_.buffer_count(), &Program::buffer_share, &Program::buffers);
  }
  void set_buffers(std::span<const float> values) override {
    check_count(values.size(), network_.buffer_count(), "set_buffers", "of running statistics");
    for (const auto& stage : stages_)
      stage->runner().upload(share_of(values, stage->program().buffer_share()), stage->program().buffers(),
                             "set_buffers", "of running statistics");
  }

  std::vector<float> gradients() override {
    return gathered(network_.parameter_count(), &Program::parameter_share, &Program::gradient);
  }

  std::vector<OptimizerState> optimizer_state() override {
    std::vector<OptimizerState> all;
    for (const std::string& name : state_names(options_.optimizer))
      all.push_back({name, std::vector<float>(network_.parameter_count())});
    for (const auto& stage : stages_) {
      const std::vector<OptimizerState> own = stage->runner().optimizer_state(options_.optimizer);
      for (std::size_t i = 0; i < all.size(); ++i)
        gather(own[i].values, stage->program().parameter_share(), all[i].values);
    }
    return all;
  }

  void set_optimizer_state(std::span<const OptimizerState> state) override {
    check_optimizer_state(state, options_.optimizer);
    for (const OptimizerState& array : state)
      check_count(array.values.size(), network_.parameter_count(), "set_optimizer_state", "parameters");
    for (const auto& stage : stages_) {
      std::vector<OptimizerState> own;
      for (const OptimizerState& array : state) {
        const auto values = share_of(array.values, stage->program().parameter_share());
        own.push_back({array.name, {values.begin(), values.end()}});
      }
      stage->runner().set_optimizer_state(own, options_.optimizer);
    }
  }

  void wait() override {
    for (const auto& stage : stages_) stage->wait();
  }
  void abort() noexcept override {
    for (const auto& group : groups_) group->abort();
  }
  double take_exchange_seconds() override {
    double longest = 0;
    for (const auto& stage : stages_) longest = std::max(longest, stage->take_exchange_seconds());
    return longest;
  }

 private:
  struct Plan {
    StageSchedule schedule;
    std::map<std::pair<std::size_t, bool>, std::vector<SegmentTask>> tasks;  // by pieces and training
  };

  void make_stages(const std::vector<Stage>& stages, std::size_t fed_samples) {
    ProgramOptions program = program_options(options_, stages.front().device.index, rounds_of_.parts);
    program.augment = {};  // of batches that the host has changed
    program.parts_together = rounds_of_.together;
    use_device(program.device);
    // All stages have the kernels that are chosen for the whole network.
    kernels_ = kernels_of_network(network_, program);
    program.kernels = kernels_;
    program.stage.in_pieces = rounds_of_.pieces > 1;
    program.stage.first_layers.clear();
    for (const Stage& stage : stages) program.stage.first_layers.push_back(stage.first_layer);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      program.device = stages[s].device.index;
      program.stage.index = s;
      const FedArrays fed{.samples = s == 0, .targets = s + 1 == stages.size()};
      stages_.push_back(
          std::make_unique<PipelineStage>(network_, program, fed_samples, options_.placement, fed));
      if (stages_.back()->program().kernels() == kernels_) continue;
      throw DeviceError(stages[s].device.name() + ": it has not the kernels of " +
                        stages.front().device.name() + ", with which it is to train; want GPUs of one model");
    }
    PipelineStage::link(stages_);
    PipelineStage::join_optimizers(stages_);
  }

  std::size_t largest_pass() const { return stages_.front()->runner().largest_pass(); }

  const std::vector<StageRound>& rounds(std::size_t samples) {
    auto found = rounds_.find(samples);
    if (found == rounds_.end()) found = rounds_.emplace(samples, training_rounds(samples, rounds_of_)).first;
    return found->second;
  }

  void feed(const Batch& batch, const StepInput& input) {
    for (const auto& stage : stages_) stage->feed(batch, input);
  }

  void evaluate(Task task, const Batch& piece, const StepInput& input) {
    feed(piece, input);
    evaluated_ = evaluation_round(piece.size(), rounds_of_);
    run(task, evaluated_, false);
  }

  void run(Task task, const StageRound& round, bool waits) {
    const bool training = task == Task::kTrain;
    const bool waits_for_all = training && (round.pieces.size() > 1 || rounds_of_.parts.count > 1);
    Plan& plan = plans_[waits_for_all ? 1 : 0];
    for (const auto& stage : stages_) stage->begin(task, round, waits);
    const std::pair key(round.pieces.size(), training);
    auto found = plan.tasks.find(key);
    if (found == plan.tasks.end())
      found = plan.tasks.emplace(key, plan.schedule.tasks(round.pieces.size(), order_, training)).first;
    for (const SegmentTask& each : found->second)
      stages_[plan.schedule.segments()[each.segment].stage]->run(plan.schedule, each);
  }

  void wait_for_streams() noexcept {
    for (const auto& stage : stages_) {
      try {
        stage->runner().select();
        stage->runner().stream().wait();
      } catch (const std::exception&) {
        // As above.
      }
    }
  }

  // All ranks in the same order, each device as the current one.
  void leave() noexcept {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (devices_[s] >= groups_.size() || groups_[devices_[s]] == nullptr) continue;
      try {
        stages_[s]->runner().select();
      } catch (const std::exception&) {
        // As above.
      }
      groups_[devices_[s]].reset();
    }
  }

  // What a stage's arrays hold of those of the whole network.
  static std::span<const float> share_of(std::span<const float> all, const ArrayShare& share) {
    return all.subspan(share.base, share.end - share.base);
  }
  static void gather(const std::vector<float>& own, const ArrayShare& share, std::vector<float>& all) {
    std::copy(own.begin() + static_cast<std::ptrdiff_t>(share.first - share.base), own.end(),
              all.begin() + static_cast<std::ptrdiff_t>(share.first));
  }

  std::vector<float> gathered(std::size_t count, const ArrayShare& (Program::*share)() const,
                              const Array<float>& (Program::*array)() const) {
    std::vector<float> all(count);
    for (const auto& stage : stages_) {
      const Program& program = stage->program();
      gather(stage->runner().download((program.*array)()), (program.*share)(), all);
    }
    return all;
  }

  const Network network_;
  const EngineOptions options_;
  RoundOptions rounds_of_;
  PipelineSchedule order_ = PipelineSchedule::kGpipe;
  std::string kernels_;
  std::vector<std::size_t> devices_;  // of each stage, from 0
  std::vector<std::unique_ptr<PipelineStage>> stages_;
  std::vector<std::unique_ptr<DeviceGroup>> groups_;       // by device; none without join()
  std::vector<Plan> plans_;                                // for evaluation; where ops need the whole batch
  std::map<std::size_t, std::vector<StageRound>> rounds_;  // by the samples of a batch
  std::set<std::size_t> trained_;
  StageRound evaluated_;  // the last
};

}  // namespace

std::unique_ptr<PlacedNetwork> make_network_in_stages(const Network& network, const EngineOptions& options,
                                                      const std::vector<Stage>& stages,
                                                      const GradientParts& parts, std::size_t fed_samples) {
  return std::make_unique<NetworkInStages>(network, options, stages, parts, fed_samples);
}

}  // namespace sweep::cuda
