// Passes that do not train.
#include "runmanager/training/evaluation.h"

#include "tests/support/run_world.h"
#include "tests/support/test.h"

namespace sweep::evaluation_test {

TEST(Evaluation, WeighsClassesOverAllSamplesWhateverTheBatches) {
  const Dataset data = small_dataset();
  const Network network(small_network(), data.shape);
  LossOptions loss;
  for (std::size_t c = 0; c < data.class_names.size(); ++c)
    loss.class_weights.push_back(c == 1 ? 0.0f : c % 2 == 0 ? 10.0f : 0.1f);
  const auto mean_loss = [&](std::size_t batch_size) {
    const auto engine = make_engine(
        network,
        {.device = parse_device("cpu"), .batch_size = batch_size, .transform = data.transform, .loss = loss});
    engine->set_parameters(initial_parameters(network, 1));
    const Totals totals = evaluate_samples(*engine, data.train, batch_size, loss.class_weights, [] {});
    std::vector<float> outputs(data.train.count * element_count(network.output()));
    const Totals other = evaluate_samples(
        *engine, data.train, batch_size, loss.class_weights, [] {}, &outputs);
    EXPECT_EQ(totals.loss, other.loss);
    EXPECT_EQ(outputs,
              predict_samples(*engine, data.train, element_count(network.output()), batch_size, [] {}));
    EXPECT_EQ(totals.samples, static_cast<std::int64_t>(data.train.count));
    return totals.loss / static_cast<double>(totals.samples);
  };
  const double whole = mean_loss(data.train.count);
  EXPECT_NEAR(mean_loss(1), whole, 1e-6);  // a batch may have no weight
  EXPECT_NEAR(mean_loss(3), whole, 1e-6);
  EXPECT_NEAR(mean_loss(7), whole, 1e-6);
}

}  // namespace sweep::evaluation_test
