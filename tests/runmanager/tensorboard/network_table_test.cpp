#include "runmanager/tensorboard/text_tables.h"

#include "tests/support/run_world.h"
#include "tests/support/test.h"

namespace sweep::network_table_test {

TEST(NetworkTable, HasARowPerLayerAndTheSums) {
  NetworkSpec spec;
  spec.layers = {{.name = "conv1",
                  .type = "conv2d",
                  .arguments = {{"out_channels", std::int64_t{6}}, {"kernel_size", std::int64_t{5}}}},
                 {.name = "relu1", .type = "relu"},
                 {.name = "flat", .type = "flatten"},
                 {.name = "out", .type = "linear", .arguments = {{"out_features", std::int64_t{10}}}}};
  // conv1: 6·(25 + 1) = 156 parameters, 2·25·6·24·24 = 172,800 operations; out: 3,456·10 + 10 = 34,570
  // parameters, 2·34,560 = 69,120 operations.
  const auto lines = lines_of(network_table(Network(spec, {1, 28, 28})));
  EXPECT_THAT(lines,
              ElementsAre("| layer | type | arguments | output | parameters | FLOPs |",
                          "| --- | --- | --- | --- | --- | --- |", "| input |  |  | 1 × 28 × 28 |  |  |",
                          "| conv1 | conv2d | out\\_channels 6, kernel\\_size \\[5, 5\\] | 6 × 24 × 24 | 156 "
                          "| 172\u202F800 |",
                          "| relu1 | relu |  | 6 × 24 × 24 |  |  |", "| flat | flatten |  | 3456 |  |  |",
                          "| out | linear | out\\_features 10 | 10 | 34\u202F570 | 69\u202F120 |",
                          "| all |  |  |  | 34\u202F726 | 241\u202F920 |"));
}

}  // namespace sweep::network_table_test
