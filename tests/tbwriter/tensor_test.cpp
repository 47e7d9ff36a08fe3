// add_tensor, read back by the classes generated from TensorBoard's own definitions.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tbwriter/summary_writer.h"
#include "tests/support/event_files.h"

namespace sweep::tbwriter {
namespace {

struct Written {
  proto::Tensor tensor;
  proto::SummaryMetadata metadata;
};

Written written(Values values, const std::vector<std::int64_t>& shape) {
  const TemporaryDirectory directory;
  {
    SummaryWriter writer(directory / "run");
    writer.add_tensor("t", values, shape, 3, {.description = "numbers"});
    writer.close();
  }
  const auto found = values_of(read_run(directory / "run"), "t");
  EXPECT_EQ(found.size(), 1u);
  return found.empty() ? Written{} : Written{found[0].tensor(), found[0].metadata()};
}

std::vector<std::int64_t> shape_of(const proto::Tensor& tensor) {
  std::vector<std::int64_t> extents;
  for (const auto& dim : tensor.tensor_shape().dim()) extents.push_back(dim.size());
  return extents;
}

template <class Number>
std::vector<Number> numbers_of(const proto::Tensor& tensor) {
  std::vector<Number> numbers(tensor.tensor_content().size() / sizeof(Number));
  std::memcpy(numbers.data(), tensor.tensor_content().data(), numbers.size() * sizeof(Number));
  return numbers;
}

TEST(AddTensor, KeepsNumbersShapeTypeAndDescription) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const auto [tensor, metadata] = written(values, {2, 3});
  EXPECT_EQ(tensor.dtype(), 1) << "DT_FLOAT";
  EXPECT_EQ(shape_of(tensor), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(numbers_of<float>(tensor), values);
  EXPECT_EQ(metadata.plugin_data().plugin_name(), "tensor") << "as PyTorch's writer calls it";
  EXPECT_EQ(metadata.data_class(), proto::DATA_CLASS_TENSOR);
  EXPECT_EQ(metadata.summary_description(), "numbers");
}

TEST(AddTensor, KeepsEveryTypeAsItLiesInMemory) {
  const std::vector<double> doubles{0.1, -std::numeric_limits<double>::infinity()};
  EXPECT_EQ(written(doubles, {2}).tensor.dtype(), 2) << "DT_DOUBLE";
  EXPECT_EQ(numbers_of<double>(written(doubles, {2}).tensor), doubles);
  const std::vector<std::int64_t> integers{std::numeric_limits<std::int64_t>::min(), 7};
  EXPECT_EQ(written(integers, {2}).tensor.dtype(), 9) << "DT_INT64";
  EXPECT_EQ(numbers_of<std::int64_t>(written(integers, {2}).tensor), integers);
  const std::vector<std::int32_t> small{std::numeric_limits<std::int32_t>::min(), 7};
  EXPECT_EQ(written(small, {2}).tensor.dtype(), 3) << "DT_INT32";
  EXPECT_EQ(numbers_of<std::int32_t>(written(small, {2}).tensor), small);
  const std::vector<Half> halves{{0x3C00}};
  EXPECT_EQ(written(halves, {1}).tensor.dtype(), 19) << "DT_HALF";
  EXPECT_EQ(numbers_of<std::uint16_t>(written(halves, {1}).tensor), (std::vector<std::uint16_t>{0x3C00}));
}

TEST(AddTensor, StoresBFloat16AsFloatsThatEveryReaderKnows) {
  const std::vector<BFloat16> brains{{0x3F80}, {0xC000}};
  EXPECT_EQ(written(brains, {2}).tensor.dtype(), 1) << "DT_FLOAT";
  EXPECT_EQ(numbers_of<float>(written(brains, {2}).tensor), (std::vector<float>{1, -2}));
}

TEST(AddTensor, KeepsNanAsItIs) {
  const std::vector<float> values{std::nanf("")};
  EXPECT_TRUE(std::isnan(numbers_of<float>(written(values, {1}).tensor).at(0)));
}

TEST(AddTensor, OfRankZeroIsOneNumberAndOfNoElementsNone) {
  const auto scalar = written(std::vector<float>{7}, {}).tensor;
  EXPECT_TRUE(scalar.has_tensor_shape());
  EXPECT_EQ(shape_of(scalar), std::vector<std::int64_t>{});
  EXPECT_EQ(numbers_of<float>(scalar), std::vector<float>{7});
  const auto none = written(std::vector<float>{}, {3, 0}).tensor;
  EXPECT_EQ(shape_of(none), (std::vector<std::int64_t>{3, 0}));
  EXPECT_TRUE(none.tensor_content().empty());
}

TEST(AddTensor, RefusesAShapeThatDoesNotFitAndWritesNothing) {
  const TemporaryDirectory directory;
  const std::vector<float> values(6);
  const std::vector<std::vector<std::int64_t>> shapes{
      {5}, {}, {-2, -3}, {2, 3, 0}, {std::int64_t{1} << 33, std::int64_t{1} << 33}};
  SummaryWriter writer(directory / "run");
  const std::vector<std::int64_t> none_or_2_to_the_64{std::int64_t{1} << 32, std::int64_t{1} << 32},
      minus_one{-1};
  EXPECT_THROW(writer.add_tensor("t", std::vector<float>{}, none_or_2_to_the_64), UsageError);
  EXPECT_THROW(writer.add_tensor("t", std::vector<float>{}, minus_one), UsageError);
  for (const auto& shape : shapes) EXPECT_THROW(writer.add_tensor("t", values, shape), UsageError);
  writer.close();
  EXPECT_TRUE(values_of(read_run(directory / "run"), "t").empty());
}

}  // namespace
}  // namespace sweep::tbwriter
