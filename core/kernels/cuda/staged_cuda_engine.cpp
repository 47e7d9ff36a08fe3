// The engine of a network whose layers are on several CUDA devices, which have each batch for themselves.
#include "core/kernels/cuda/cuda_engine.h"
#include "core/kernels/cuda/network_engine.h"
#include "core/kernels/cuda/network_in_stages.h"

namespace sweep {
namespace {

class StagedCudaEngine final : public cuda::NetworkEngine<cuda::NetworkInStages> {
 public:
  StagedCudaEngine(const Network& network, const EngineOptions& options, const std::vector<Stage>& stages)
      : NetworkEngine(network, options, options, stages, cuda::BatchShares{.turns = cuda::turns_of(options)},
                      options.batch_size) {}

  void train(const Batch& batch, const StepValues& values) override {
    check(batch);
    if (batch.size() == 0) return;
    trained_.train(batch, batch.size(), next_step(batch, values));
  }
};

}  // namespace

std::unique_ptr<Engine> make_staged_cuda_engine(const Network& network, const EngineOptions& options,
                                                const std::vector<Stage>& stages) {
  return std::make_unique<StagedCudaEngine>(network, options, stages);
}

}  // namespace sweep
