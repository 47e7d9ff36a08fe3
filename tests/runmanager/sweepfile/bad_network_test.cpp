// Every mistake in a network is reported at its layer, with what was found and what is allowed, before
// anything trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sweep_folder.h"

namespace sweep {
namespace {

using ::testing::HasSubstr;
using testing::SweepFolder;

TEST(BadNetwork, IsReportedAtTheLayer) {
  const SweepFolder folder;
  const auto error = [&](const std::string& layers) {
    return folder.error("{\"dataset\": \"mnist\", \"network\": {\"layers\": [\n" + layers + "]}}");
  };
  EXPECT_THAT(error(R"({"type": "convd"})"),
              HasSubstr("s.json:2:10: network.layers.0.type: got \"convd\", want conv2d, linear"));
  EXPECT_THAT(error(R"({"type": "convd"})"), HasSubstr("did you mean \"conv2d\"?"));
  EXPECT_THAT(error(R"({"name": "a"})"), HasSubstr("s.json:2:1: network.layers.0: a layer needs a \"type\""));
  EXPECT_EQ(error(R"({"type": "linear", "out_features": 10, "bais": true})"),
            "s.json:2:40: network.layers.0.bais: linear has no argument \"bais\", allowed: out_features, "
            "bias, did you mean \"bias\"?");
  EXPECT_EQ(error(R"({"type": "relu", "p": 1})"),
            "s.json:2:18: network.layers.0.p: relu has no argument \"p\", it takes none");
  EXPECT_EQ(error(R"({"type": "linear"})"),
            "s.json:2:1: network.layers.0: linear needs \"out_features\", an integer >= 1 and <= 1048576");
  EXPECT_EQ(error(R"({"type": "conv2d", "out_channels": 2.5, "kernel_size": 3})"),
            "s.json:2:36: network.layers.0.out_channels: got 2.5, want an integer >= 1 and <= 1048576");
  EXPECT_EQ(error(R"({"type": "conv2d", "out_channels": 2, "kernel_size": [3, 0]})"),
            "s.json:2:54: network.layers.0.kernel_size: got a list of 2, want an integer, or a pair of "
            "integers, >= 1 and <= 128");
  EXPECT_THAT(error(R"({"name": "a.b", "type": "relu"})"),
              HasSubstr("network.layers.0.name: got \"a.b\", want a name of letters"));
  EXPECT_THAT(error(R"({"name": "7", "type": "relu"})"), HasSubstr("which reads like the index of a layer"));
  EXPECT_THAT(error(R"({"name": "a", "type": "relu"}, {"name": "a", "type": "relu"})"),
              HasSubstr("s.json:2:32: network.layers.1: a second layer is called \"a\""));
  EXPECT_THAT(error(""), HasSubstr("network.layers: got an empty list, want a list with at least one layer"));
}

TEST(BadNetwork, ShapesThatDoNotFitAreReportedAtTheLayer) {
  const SweepFolder folder;
  const auto error = [&](const std::string& layers) {
    return folder.error("{\"dataset\": \"mnist\", \"network\": {\"layers\": [\n" + layers + "]}}");
  };
  EXPECT_THAT(error("{\"type\": \"relu\"},\n{\"name\": \"fc\", \"type\": \"linear\", \"out_features\": 10}"),
              HasSubstr("s.json:3:1: network.layers.1: layer \"fc\" (linear): needs an input of shape "
                        "[features], but gets [1, 28, 28]"));
  EXPECT_THAT(error("{\"name\": \"c\", \"type\": \"conv2d\", \"out_channels\": 4, \"kernel_size\": 29}"),
              HasSubstr("s.json:2:1: network.layers.0: layer \"c\" (conv2d): kernel_size [29, 29] is larger "
                        "than its input"));
  EXPECT_THAT(error("{\"type\": \"relu\"}"),
              HasSubstr("s.json:2:1: network.layers.0: network \"network\" ends with shape [1, 28, 28]"));
  EXPECT_THAT(
      error("{\"type\": \"flatten\"},\n{\"type\": \"linear\", \"out_features\": 9}"),
      HasSubstr(
          "s.json:3:1: network.layers.1: the network ends with 9 outputs, want at least 10, one per class"));
}

TEST(BadNetwork, MistakesInANetworkFileNameThatFile) {
  const SweepFolder folder;
  const std::string file = "{\"dataset\": \"mnist\", \"network\": \"nets/n.json\"}";
  folder.write("nets/n.json",
               "{\"layers\": [{\"type\": \"flatten\"},\n {\"type\": \"liner\", \"out_features\": 10}]}");
  EXPECT_THAT(folder.error(file), HasSubstr("nets/n.json:2:11: layers.1.type: got \"liner\", want "));
  folder.write("nets/n.json", "{\"layers\": [,]}");
  EXPECT_EQ(folder.error(file), "nets/n.json:1:13: a value is missing before this comma");
  folder.write("nets/n.json", "[]");
  EXPECT_THAT(folder.error(file),
              HasSubstr("nets/n.json:1:1: got an empty list, want an object: a network with \"layers\""));
  folder.write("nets/n.json",
               "{\"layers\": [{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out_features\": 1}]}");
  EXPECT_THAT(folder.error(file), HasSubstr("nets/n.json:1:34: layers.1: the network ends with 1 outputs"));
}

TEST(BadNetwork, AMissingNetworkFileIsReportedWhereItIsNamedWithTheNearestName) {
  const SweepFolder folder;
  EXPECT_THAT(folder.error("{\"dataset\": \"mnist\", \"network\": \"nte.json\"}"),
              HasSubstr("s.json:1:33: network: got \"nte.json\", want a network file; nte.json: cannot open: "
                        "No such file or "
                        "directory, did you mean \"net.json\"?"));
}

}  // namespace
}  // namespace sweep
