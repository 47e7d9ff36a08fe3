// A network on one of several devices that share each batch.
#include <optional>

#include "core/kernels/cuda/group_exchange.h"
#include "core/kernels/cuda/placed_network.h"

namespace sweep::cuda {
namespace {

ProgramOptions shared_program(const Network& network, const EngineOptions& options, const Device& device,
                              const GradientParts& parts) {
  ProgramOptions program = program_options(options, device.index, parts);
  program.augment = {};  // of batches that the host has changed
  program.exchanges_by_part = parts.most > 1 && gradient_is_worth_a_round(network);
  return program;
}

class NetworkOnDevice final : public PlacedNetwork {
 public:
  NetworkOnDevice(const Network& network, const EngineOptions& options, const Device& device,
                  const GradientParts& parts, std::size_t fed_samples)
      : optimizer_(options.optimizer),
        runner_(network, shared_program(network, options, device, parts), fed_samples, options.placement) {}

  ~NetworkOnDevice() override {
    try {
      wait();
    } catch (const std::exception&) {
      // Its exchanges were aborted, so that memory can be freed. Who began it has been told.
    }
  }
  NetworkOnDevice(const NetworkOnDevice&) = delete;
  NetworkOnDevice& operator=(const NetworkOnDevice&) = delete;

  std::size_t device_count() const override { return 1; }

  void join(std::span<const DeviceGroupId> groups, int rank, const std::vector<int>& first_parts,
            double deadline) override {
    runner_.select();
    group_.emplace(groups[0], rank, static_cast<int>(first_parts.size()) - 1, deadline);
    exchange_.emplace(*group_, runner_.stream(), first_parts);
  }

  bool is_prepared(std::size_t samples) const override {
    return runner_.program().is_recorded(Task::kTrainParts, 1, static_cast<int>(samples));
  }

  bool prepare(const Batch& batch) override {
    runner_.select();
    const bool is_resident = runner_.feed().make_resident(runner_.stream(), batch.set);
    runner_.program().record(runner_.stream(), Task::kTrainParts, 1, static_cast<int>(batch.size()),
                             runner_.feed().inputs());
    return is_resident;
  }

  bool is_resident(const Batch& batch) const override { return runner_.feed().is_resident(batch.set); }

  void train(const Batch& own, std::size_t samples, const StepInput& input) override {
    runner_.flush();
    runner_.feed().add(runner_.stream(), own, input);
    const StepInputs inputs = runner_.feed().upload(runner_.stream());
    runner_.program().train_parts(runner_.stream(), static_cast<int>(samples), inputs, exchange_.value());
  }

  void evaluate(const Batch& batch) override { runner_.evaluate(batch); }
  void run_and_download(Task task, const Batch& batch, std::span<float> outputs) override {
    runner_.run_and_download(task, batch, outputs);
  }

  const std::string& kernels() const override { return runner_.program().kernels(); }
  std::vector<DeviceTotals> take_totals() override { return runner_.take_totals(); }
  std::vector<float> parameters() override { return runner_.download(runner_.program().parameters()); }
  void set_parameters(std::span<const float> values) override {
    runner_.upload(values, runner_.program().parameters(), "set_parameters", "parameters");
  }
  std::vector<float> buffers() override { return runner_.download(runner_.program().buffers()); }
  void set_buffers(std::span<const float> values) override {
    runner_.upload(values, runner_.program().buffers(), "set_buffers", "of running statistics");
  }
  std::vector<float> gradients() override { return runner_.download(runner_.program().gradient()); }
  std::vector<OptimizerState> optimizer_state() override { return runner_.optimizer_state(optimizer_); }
  void set_optimizer_state(std::span<const OptimizerState> state) override {
    runner_.set_optimizer_state(state, optimizer_);
  }

  void wait() override {
    runner_.flush();
    if (group_) {
      group_->wait(runner_.stream());
    } else {
      runner_.stream().wait();
    }
  }
  void abort() noexcept override {
    if (group_) group_->abort();
  }
  double take_exchange_seconds() override { return exchange_ ? exchange_->take_seconds() : 0; }

 private:
  const OptimizerOptions optimizer_;
  DeviceRunner runner_;
  std::optional<DeviceGroup> group_;
  std::optional<GroupExchange> exchange_;
};

}  // namespace

std::unique_ptr<PlacedNetwork> make_network_on_device(const Network& network, const EngineOptions& options,
                                                      const Device& device, const GradientParts& parts,
                                                      std::size_t fed_samples) {
  return std::make_unique<NetworkOnDevice>(network, options, device, parts, fed_samples);
}

}  // namespace sweep::cuda
