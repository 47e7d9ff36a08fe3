#include "core/kernels/cpu/cpu_engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/kernels/cpu/block.h"
#include "core/kernels/cpu/loss_kernels.h"
#include "core/kernels/cpu/optimizer_kernels.h"
#include "core/kernels/cpu/pixel_kernels.h"
#include "core/kernels/cpu/program.h"
#include "core/kernels/cpu/thread_pool.h"

namespace sweep {
namespace {

using cpu::AlignedBuffer;
using cpu::kLanes;
using cpu::part_begin;
using cpu::round_to_line;

std::size_t block_count(std::size_t images) { return (images + kLanes - 1) / kLanes; }

// How many partial sums a batch's gradient is made of. A function of the batch and the network alone, so that
// the bits do not depend on threads: enough for many cores, but no more memory than 256 MB and no sum of
// fewer than 4 blocks where the batch is large, because adding the sums up costs a pass over all of them.
std::size_t partial_count(std::size_t blocks, std::size_t parameter_floats) {
  constexpr std::size_t kMemory = (std::size_t{256} << 20) / sizeof(float);
  const std::size_t wanted = std::clamp<std::size_t>(blocks / 4, std::min<std::size_t>(blocks, 16), 64);
  return std::clamp<std::size_t>(kMemory / std::max<std::size_t>(parameter_floats, 1), 1,
                                 std::max<std::size_t>(wanted, 1));
}

// What one partial sum counts, padded so that threads do not share cache lines.
struct alignas(64) PartialTotals {
  double loss = 0;
  std::int64_t correct = 0;
};

// PyTorch's names of an optimizer's arrays, those that `options` need.
std::vector<std::string> state_names(const OptimizerOptions& options) {
  if (const auto* sgd = std::get_if<SgdOptions>(&options)) {
    return sgd->momentum != 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{};
  }
  if (const auto* rmsprop = std::get_if<RmspropOptions>(&options)) {
    std::vector<std::string> names = {"square_avg"};
    if (rmsprop->centered) names.emplace_back("grad_avg");
    if (rmsprop->momentum != 0) names.emplace_back("momentum_buffer");
    return names;
  }
  return {"exp_avg", "exp_avg_sq"};
}

enum class Task { kTrain, kEvaluate, kPredict };

class CpuEngine final : public Engine {
 public:
  CpuEngine(const Network& network, const EngineOptions& options)
      : network_(network),
        options_(options),
        program_(network_),
        pool_(options.threads > 0 ? options.threads : available_cores()),
        classes_(static_cast<std::size_t>(network_.output()[0])),
        plane_(element_count(network_.input()) / static_cast<std::size_t>(network_.input()[0])),
        parameters_(program_.parameter_floats()),
        gradient_(program_.parameter_floats()) {
    const std::size_t floats = program_.parameter_floats();
    const std::size_t partials = partial_count(block_count(options_.batch_size), floats);
    partials_ = AlignedBuffer(partials * floats);
    totals_.resize(partials);
    for (std::size_t t = 0; t < pool_.size(); ++t) workspaces_.push_back(program_.make_workspace());
    state_names_ = state_names(options_.optimizer);
    for (std::size_t i = 0; i < state_names_.size(); ++i) state_.emplace_back(floats);
  }

  void train(const Batch& batch, double learning_rate) override {
    check(batch);
    if (batch.size() == 0) return;
    run_blocks(Task::kTrain, batch, {});
    step(partial_count(block_count(batch.size()), program_.parameter_floats()), learning_rate);
  }

  void evaluate(const Batch& batch) override {
    check(batch);
    run_blocks(Task::kEvaluate, batch, {});
  }

  void predict(const Batch& batch, std::span<float> outputs) override {
    check(batch);
    if (outputs.size() != batch.size() * classes_) {
      throw ShapeError("predict: room for " + std::to_string(outputs.size()) +
                       " outputs, but the batch has " + std::to_string(batch.size()) + " samples of " +
                       std::to_string(classes_));
    }
    run_blocks(Task::kPredict, batch, outputs);
  }

  // Everything is written to memory of its own: a training with profiles has the bits of one without.
  std::vector<LayerProfile> profile(const Batch& batch) override {
    check(batch);
    cpu::Workspace workspace = program_.make_workspace();
    AlignedBuffer gradient(program_.parameter_floats());
    std::vector<double> seconds(program_.op_count());
    const std::size_t blocks = block_count(batch.size());
    // The first block goes twice: once to bring code and data into the caches, without being counted.
    pool_.run(1, [&](std::size_t, std::size_t) noexcept {
      PartialTotals totals;
      if (blocks > 0) run_block(Task::kTrain, batch, 0, workspace, gradient.data(), totals, {});
      for (std::size_t block = 0; block < blocks; ++block)
        run_block(Task::kTrain, batch, block, workspace, gradient.data(), totals, {}, seconds.data());
    });
    std::vector<LayerProfile> layers;
    for (const Layer& layer : network_.layers()) layers.push_back({.layer = layer.name});
    for (std::size_t op = 0; op < program_.op_count(); ++op) {
      LayerProfile& layer = layers[program_.first_layer(op)];
      layer.seconds = seconds[op];
      layer.bytes = blocks * program_.block_bytes(op) + program_.parameter_bytes(op);
    }
    return layers;
  }

  Totals take_totals() override { return std::exchange(sums_, {}); }

  std::vector<float> parameters() const override { return exported(parameters_); }

  void set_parameters(std::span<const float> values) override {
    import(values, parameters_, "set_parameters");
    pool_.run(program_.prepare_parts(),
              [&](std::size_t part, std::size_t) noexcept { program_.prepare(parameters_.data(), part); });
  }

  std::vector<float> gradients() const override { return exported(gradient_); }

  std::vector<OptimizerState> optimizer_state() const override {
    std::vector<OptimizerState> state;
    for (std::size_t i = 0; i < state_.size(); ++i) state.push_back({state_names_[i], exported(state_[i])});
    return state;
  }

  std::int64_t step_count() const override { return steps_; }

  void set_optimizer_state(std::span<const OptimizerState> state, std::int64_t step_count) override {
    const bool same =
        std::equal(state.begin(), state.end(), state_names_.begin(), state_names_.end(),
                   [](const OptimizerState& s, const std::string& name) { return s.name == name; });
    if (!same) throw ConfigError("set_optimizer_state: these are not the arrays of this optimizer");
    for (std::size_t i = 0; i < state_.size(); ++i) import(state[i].values, state_[i], "set_optimizer_state");
    steps_ = step_count;
  }

 private:
  void check(const Batch& batch) const {
    if (batch.size() > options_.batch_size) {
      throw ShapeError("a batch of " + std::to_string(batch.size()) + " samples for an engine made for " +
                       std::to_string(options_.batch_size));
    }
    if (batch.pixels.size() != batch.labels.size() * program_.input_elements()) {
      throw ShapeError("samples of another size than the network's input " + to_string(network_.input()));
    }
  }

  void import(std::span<const float> values, AlignedBuffer& own, const char* what) const {
    if (values.size() != network_.parameter_count()) {
      throw ShapeError(std::string(what) + ": " + std::to_string(values.size()) + " values for " +
                       std::to_string(network_.parameter_count()) + " parameters");
    }
    program_.import_parameters(values, own.data());
  }

  std::vector<float> exported(const AlignedBuffer& own) const {
    std::vector<float> values(network_.parameter_count());
    program_.export_parameters(own.data(), values);
    return values;
  }

  // Takes all blocks of a batch through the network, each partial sum's blocks in order on one thread.
  void run_blocks(Task task, const Batch& batch, std::span<float> outputs) {
    const std::size_t blocks = block_count(batch.size());
    const std::size_t floats = program_.parameter_floats();
    const std::size_t partials = partial_count(blocks, floats);
    pool_.run(std::min(partials, blocks), [&](std::size_t part, std::size_t thread) noexcept {
      float* gradient = partials_.data() + part * floats;
      if (task == Task::kTrain) std::memset(gradient, 0, floats * sizeof(float));
      totals_[part] = {};
      const std::size_t end = part_begin(blocks, partials, part + 1);
      for (std::size_t block = part_begin(blocks, partials, part); block < end; ++block) {
        run_block(task, batch, block, workspaces_[thread], gradient, totals_[part], outputs);
      }
    });
    if (task == Task::kPredict) return;
    for (std::size_t part = 0; part < std::min(partials, blocks); ++part) {
      sums_.loss += totals_[part].loss;
      sums_.correct += totals_[part].correct;
    }
    sums_.samples += static_cast<std::int64_t>(batch.size());
  }

  void run_block(Task task, const Batch& batch, std::size_t block, cpu::Workspace& workspace, float* gradient,
                 PartialTotals& totals, std::span<float> outputs,
                 double* op_seconds = nullptr) const noexcept {
    const std::size_t first = block * kLanes, images = std::min(kLanes, batch.size() - first);
    const std::uint8_t* pointers[kLanes];
    alignas(64) std::int32_t labels[kLanes];
    alignas(64) float scale[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      // Lanes beyond the batch repeat its last image, and their gradient is scaled to zero.
      const std::size_t row = batch.rows[first + std::min(lane, images - 1)];
      pointers[lane] = batch.pixels.data() + row * program_.input_elements();
      labels[lane] = batch.labels[row];
      scale[lane] = lane < images ? 1.0f / static_cast<float>(batch.size()) : 0.0f;
    }
    cpu::load_pixels(pointers, program_.input_elements(), workspace.input.data());
    if (!options_.transform.mean.empty()) {
      cpu::normalize_pixels(options_.transform.mean, options_.transform.std, plane_, workspace.input.data());
    }
    const cpu::Pass pass{task == Task::kTrain, options_.seed, steps_, first};
    const float* logits = program_.forward(pass, parameters_.data(), workspace, op_seconds);
    if (task == Task::kPredict) {
      for (std::size_t i = 0; i < images; ++i) {
        for (std::size_t c = 0; c < classes_; ++c)
          outputs[(first + i) * classes_ + c] = logits[c * kLanes + i];
      }
      return;
    }
    alignas(64) float loss[kLanes];
    alignas(64) std::int32_t predicted[kLanes];
    const bool train = task == Task::kTrain;
    float* grad_logits = train ? program_.output_gradient(workspace) : nullptr;
    if (options_.loss.kind == LossOptions::Kind::kMse) {
      cpu::mean_squared_error(logits, labels, classes_, scale, loss, predicted, grad_logits);
    } else {
      cpu::softmax_cross_entropy(logits, labels, classes_, static_cast<float>(options_.loss.label_smoothing),
                                 scale, loss, predicted, grad_logits);
    }
    for (std::size_t i = 0; i < images; ++i) {
      totals.loss += static_cast<double>(loss[i]);
      totals.correct += predicted[i] == labels[i] ? 1 : 0;
    }
    if (train) program_.backward(parameters_.data(), workspace, gradient, op_seconds);
  }

  // Adds the partial gradients up in order and updates the parameters; threads share the parameters' range.
  void step(std::size_t partials, double learning_rate) {
    ++steps_;
    const std::size_t floats = program_.parameter_floats();
    const std::size_t lines = floats / kLanes;
    constexpr std::size_t kLinesPerPart = 64;
    const std::size_t parts = (lines + kLinesPerPart - 1) / kLinesPerPart;
    const auto begin_of = [&](std::size_t part) { return part_begin(lines, parts, part) * kLanes; };
    norms_.resize(parts);
    pool_.run(parts, [&](std::size_t part, std::size_t) noexcept {
      const std::size_t begin = begin_of(part), count = begin_of(part + 1) - begin;
      cpu::reduce_gradients(partials_.data() + begin, partials, floats, count, gradient_.data() + begin);
      if (options_.clip_norm > 0) {
        norms_[part] = cpu::sum_of_squares(gradient_.data() + begin, count);
      } else {
        update(begin, count, learning_rate);
      }
    });
    if (options_.clip_norm > 0) {
      double squares = 0;
      for (const double part : norms_) squares += part;
      // As torch.nn.utils.clip_grad_norm_.
      const double factor = std::min(1.0, options_.clip_norm / (std::sqrt(squares) + 1e-6));
      pool_.run(parts, [&](std::size_t part, std::size_t) noexcept {
        const std::size_t begin = begin_of(part), count = begin_of(part + 1) - begin;
        if (factor < 1) cpu::scale_values(static_cast<float>(factor), count, gradient_.data() + begin);
        update(begin, count, learning_rate);
      });
    }
    pool_.run(program_.prepare_parts(),
              [&](std::size_t part, std::size_t) noexcept { program_.prepare(parameters_.data(), part); });
  }

  void update(std::size_t begin, std::size_t count, double learning_rate) noexcept {
    const float* gradient = gradient_.data() + begin;
    float* parameters = parameters_.data() + begin;
    const auto state = [&](const char* name) -> float* {
      const auto found = std::find(state_names_.begin(), state_names_.end(), name);
      return found == state_names_.end()
                 ? nullptr
                 : state_[static_cast<std::size_t>(found - state_names_.begin())].data() + begin;
    };
    if (const auto* sgd = std::get_if<SgdOptions>(&options_.optimizer)) {
      cpu::sgd_step(*sgd, learning_rate, steps_ == 1, count, gradient, state("momentum_buffer"), parameters);
    } else if (const auto* rmsprop = std::get_if<RmspropOptions>(&options_.optimizer)) {
      cpu::rmsprop_step(*rmsprop, learning_rate, count, gradient, state("square_avg"), state("grad_avg"),
                        state("momentum_buffer"), parameters);
    } else {
      cpu::adam_step(std::get<AdamOptions>(options_.optimizer), learning_rate, steps_, count, gradient,
                     state("exp_avg"), state("exp_avg_sq"), parameters);
    }
  }

  const Network network_;
  const EngineOptions options_;
  cpu::Program program_;
  cpu::ThreadPool pool_;
  std::size_t classes_, plane_;  // outputs; pixels of one channel
  AlignedBuffer parameters_, gradient_, partials_;
  std::vector<AlignedBuffer> state_;
  std::vector<std::string> state_names_;
  std::vector<cpu::Workspace> workspaces_;  // one per thread
  std::vector<PartialTotals> totals_;       // one per partial sum
  std::vector<double> norms_;               // squared, of each part of the gradient
  Totals sums_;
  std::int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_cpu_engine(const Network& network, const EngineOptions& options) {
  return std::make_unique<CpuEngine>(network, options);
}

}  // namespace sweep
