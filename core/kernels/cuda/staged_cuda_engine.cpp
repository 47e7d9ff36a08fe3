// An engine whose layers are on several CUDA devices, or on one device in several stages.
//
// One thread puts the work of all stages on their streams, in an order in which everything that a task waits
// for is on its stream before it; the devices work at their own pace. Ops, their fusion and all sums are
// those of the engine on one device, and so are the bits.
#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/error.h"
#include "core/engine/engine_checks.h"
#include "core/engine/stages.h"
#include "core/kernels/cuda/cuda_engine.h"
#include "core/kernels/cuda/pipeline_stage.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep {
namespace {

using cuda::Array;
using cuda::ArrayShare;
using cuda::BatchParts;
using cuda::PipelineStage;
using cuda::StageSchedule;
using cuda::Task;

// Those of `all` that compute anything; the stage before them has the layers of the others.
std::vector<Stage> used_stages(const Network& network, const std::vector<Stage>& all) {
  std::vector<std::size_t> first_layers;
  first_layers.reserve(all.size());
  for (const Stage& stage : all) first_layers.push_back(stage.first_layer);
  const std::vector<bool> used = cuda::stages_with_nodes(network, first_layers);
  std::vector<Stage> stages;
  for (std::size_t s = 0; s < all.size(); ++s) {
    if (used[s]) stages.push_back(all[s]);
  }
  stages.front().first_layer = 0;
  return stages;
}

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

// NVIDIA's libraries expect arrays that begin at multiples of 256 bytes: so parts have to, if libraries are
// used.
std::size_t part_unit(const Network& network, const std::string& kernels) {
  constexpr std::size_t kAlignedFloats = 64;
  if (!kernels.starts_with('{')) return 1;
  std::size_t unit = kAlignedFloats / std::gcd(kAlignedFloats, element_count(network.input()));
  for (const Layer& layer : network.layers())
    unit = std::max(unit, kAlignedFloats / std::gcd(kAlignedFloats, element_count(layer.output)));
  return unit;
}

class StagedCudaEngine final : public Engine {
 public:
  StagedCudaEngine(const Network& network, const EngineOptions& options, const std::vector<Stage>& all)
      : network_(network), options_(options) {
    check_loss(options.loss, network_);
    if (options.parallel.pipeline) {
      micro_batches_ = static_cast<std::size_t>(options.parallel.pipeline->micro_batches);
      order_ = options.parallel.pipeline->schedule;
    }
    const std::vector<Stage> stages = used_stages(network_, all);
    require_equal_devices(stages);
    make_stages(stages);
    const std::vector<std::size_t> devices = numbered_devices(stages);
    std::vector<std::vector<bool>> whole_batch, none;
    for (const auto& stage : stages_) {
      whole_batch.push_back(stage->whole_batch_ops());
      none.emplace_back(whole_batch.back().size());
    }
    plans_.push_back({StageSchedule(none, devices), {}});
    plans_.push_back({StageSchedule(whole_batch, devices), {}});
    unit_ = part_unit(network_, kernels());
  }

  ~StagedCudaEngine() override {
    // A stage's memory may be read by another one's stream.
    for (const auto& stage : stages_) {
      try {
        stage->runner().select();
        stage->runner().stream().wait();
      } catch (const DeviceError&) {
        // The call that met the error has reported it.
      }
    }
  }
  StagedCudaEngine(const StagedCudaEngine&) = delete;
  StagedCudaEngine& operator=(const StagedCudaEngine&) = delete;

  Device device() const override { return options_.device; }

  void train(const Batch& batch, double learning_rate) override {
    check_batch(batch, network_, options_.batch_size, options_.loss);
    if (batch.size() == 0) return;
    ++steps_;
    cuda::StepInput input = stages_.back()->runner().step_input(batch);
    input.step = static_cast<std::uint32_t>(steps_ - 1);
    input.factors = cuda::step_factors(options_.optimizer, learning_rate, steps_);
    run(Task::kTrain, batch, input);
    for (const auto& stage : stages_) stage->finish_gradients();
    for (const auto& stage : stages_) stage->take_step();
  }

  void set_momentum(double momentum) override {
    options_.optimizer = changed_momentum(options_.optimizer, momentum);
  }

  void evaluate(const Batch& batch) override {
    check_batch(batch, network_, options_.batch_size, options_.loss);
    if (batch.size() > 0) run(Task::kEvaluate, batch, stages_.back()->runner().step_input(batch));
  }

  void predict(const Batch& batch, std::span<float> outputs) override {
    run_and_download(Task::kPredict, batch, outputs);
  }

  void evaluate_and_predict(const Batch& batch, std::span<float> outputs) override {
    run_and_download(Task::kEvaluate, batch, outputs);
  }

  std::string kernels() const override { return stages_.front()->program().kernels(); }

  Totals take_totals() override {
    PipelineStage& last = *stages_.back();
    return cuda::sum_of(last.runner().take_totals(0, last.program().totals().size()));
  }

  std::int64_t batches_between_totals() const override { return 128; }  // as an engine on one device

  std::vector<float> parameters() const override {
    return gathered(network_.parameter_count(), &cuda::Program::parameter_share, &cuda::Program::parameters);
  }
  void set_parameters(std::span<const float> values) override {
    check_count(values.size(), network_.parameter_count(), "set_parameters", "parameters");
    for (const auto& stage : stages_)
      stage->runner().upload(share_of(values, stage->program().parameter_share()),
                             stage->program().parameters(), "set_parameters", "parameters");
  }

  std::vector<float> buffers() const override {
    return gathered(network_.buffer_count(), &cuda::Program::buffer_share, &cuda::Program::buffers);
  }
  void set_buffers(std::span<const float> values) override {
    check_count(values.size(), network_.buffer_count(), "set_buffers", "of running statistics");
    for (const auto& stage : stages_)
      stage->runner().upload(share_of(values, stage->program().buffer_share()), stage->program().buffers(),
                             "set_buffers", "of running statistics");
  }

  std::vector<float> gradients() const override {
    return gathered(network_.parameter_count(), &cuda::Program::parameter_share, &cuda::Program::gradient);
  }

  std::vector<OptimizerState> optimizer_state() const override {
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

  std::int64_t step_count() const override { return steps_; }

  void set_optimizer_state(std::span<const OptimizerState> state, std::int64_t step_count) override {
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
    steps_ = step_count;
  }

 private:
  struct Plan {
    StageSchedule schedule;
    std::map<std::pair<std::size_t, bool>, std::vector<cuda::SegmentTask>> tasks;  // by parts and training
  };

  void make_stages(const std::vector<Stage>& stages) {
    cuda::StageLayers layers{.first_layers = {}, .index = 0, .in_parts = micro_batches_ > 1};
    for (const Stage& stage : stages) layers.first_layers.push_back(stage.first_layer);
    for (; layers.index < stages.size(); ++layers.index) {
      cuda::ProgramOptions program =
          cuda::program_options(options_, stages[layers.index].device.index, cuda::GradientParts{});
      program.augment = {};  // of batches that the host has changed
      program.stage = layers;
      // All have the kernels that the first one chooses.
      if (layers.index > 0) program.kernels = kernels();
      const cuda::FedArrays fed{.samples = layers.index == 0, .targets = layers.index + 1 == stages.size()};
      stages_.push_back(
          std::make_unique<PipelineStage>(network_, program, options_.batch_size, options_.placement, fed));
      if (layers.index == 0 || stages_.back()->program().kernels() == program.kernels) continue;
      throw DeviceError(stages[layers.index].device.name() + ": it has not the kernels of " +
                        stages.front().device.name() + ", with which it is to train; want GPUs of one model");
    }
    PipelineStage::link(stages_);
    PipelineStage::join_optimizers(stages_);
  }

  void run(Task task, const Batch& batch, const cuda::StepInput& input) {
    const BatchParts parts(batch.size(), micro_batches_, unit_);
    const bool training = task == Task::kTrain;
    Plan& plan = plans_[training && parts.count() > 1 ? 1 : 0];
    for (const auto& stage : stages_) stage->begin(task, batch, input, parts);
    auto found = plan.tasks.find({parts.count(), training});
    if (found == plan.tasks.end()) {
      found = plan.tasks
                  .emplace(std::pair(parts.count(), training),
                           plan.schedule.tasks(parts.count(), order_, training))
                  .first;
    }
    for (const cuda::SegmentTask& each : found->second)
      stages_[plan.schedule.segments()[each.segment].stage]->run(plan.schedule, each);
  }

  void run_and_download(Task task, const Batch& batch, std::span<float> outputs) {
    check_batch(batch, network_, options_.batch_size, options_.loss);
    check_outputs(outputs, batch, network_);
    if (batch.size() == 0) return;
    run(task, batch, task == Task::kPredict ? cuda::StepInput{} : stages_.back()->runner().step_input(batch));
    PipelineStage& last = *stages_.back();
    last.runner().select();
    last.runner().stream().download(outputs.data(), last.program().outputs(), outputs.size_bytes());
  }

  // What a stage's arrays hold of those of the whole network.
  static std::span<const float> share_of(std::span<const float> all, const ArrayShare& share) {
    return all.subspan(share.base, share.end - share.base);
  }
  static void gather(const std::vector<float>& own, const ArrayShare& share, std::vector<float>& all) {
    std::copy(own.begin() + static_cast<std::ptrdiff_t>(share.first - share.base), own.end(),
              all.begin() + static_cast<std::ptrdiff_t>(share.first));
  }

  std::vector<float> gathered(std::size_t count, const ArrayShare& (cuda::Program::*share)() const,
                              const Array<float>& (cuda::Program::*array)() const) const {
    std::vector<float> all(count);
    for (const auto& stage : stages_) {
      const cuda::Program& program = stage->program();
      gather(stage->runner().download((program.*array)()), (program.*share)(), all);
    }
    return all;
  }

  const Network network_;
  EngineOptions options_;  // only the momentum changes
  std::size_t micro_batches_ = 1, unit_ = 1;
  PipelineSchedule order_ = PipelineSchedule::kGpipe;
  std::vector<std::unique_ptr<PipelineStage>> stages_;
  std::vector<Plan> plans_;  // for whole batches and evaluation; for training in parts
  std::int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_staged_cuda_engine(const Network& network, const EngineOptions& options,
                                                const std::vector<Stage>& stages) {
  return std::make_unique<StagedCudaEngine>(network, options, stages);
}

}  // namespace sweep
