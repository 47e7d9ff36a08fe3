#include "core/parallel/engine_message.h"

#include "tests/support/test.h"
#include "tests/support/test_networks.h"

namespace sweep::engine_message_test {

EngineOptions unusual_options() {
  EngineOptions options;
  options.threads = 3;
  options.batch_size = 77;
  options.optimizer = RmspropOptions{.alpha = 0.5, .centered = true};
  options.transform = {{0.5F}, {0.25F}};
  options.seed = 1234567890123;
  options.loss.class_weights = {1, 2, 3};
  options.augment.steps = {{AugmentKind::kCutout, 4}};
  options.deterministic = false;
  options.parallel.data = 4;
  options.parallel.model = {{"conv*", "cpu:1"}};
  options.parallel.pipeline = PipelineOptions{.stages = 2, .first_layers = {"fc"}, .micro_batches = 9};
  options.accumulation_steps = 6;
  return options;
}

TEST(EngineMessage, SaysAllOfAnEngine) {
  const Network network(test::small_residual(), {3, 8, 8});
  const std::vector<std::byte> message = encode_engine(network, unusual_options());
  const SentEngine sent = decode_engine(message);
  EXPECT_EQ(sent.network.parameter_count(), network.parameter_count());
  EXPECT_EQ(sent.network.layers().back().name, network.layers().back().name);
  EXPECT_EQ(sent.options.parallel, unusual_options().parallel);
  EXPECT_EQ(std::get<RmspropOptions>(sent.options.optimizer).alpha, 0.5);
  EXPECT_EQ(sent.options.loss.class_weights, unusual_options().loss.class_weights);
  EXPECT_EQ(encode_engine(sent.network, sent.options), message);
}

TEST(EngineMessage, RefusesDamage) {
  std::vector<std::byte> message = encode_engine(Network(test::mlp(), {1, 28, 28}), unusual_options());
  for (std::size_t size = 0; size < message.size(); size += 7)
    EXPECT_THROW(decode_engine(std::span(message).first(size)), DataError);
  message.push_back({});
  EXPECT_THROW(decode_engine(message), DataError);
}

}  // namespace sweep::engine_message_test
