// Numbers of every type, in histograms and in tensors, which the classes generated from TensorBoard's own
// definitions read back.
#include "tbwriter/values.h"

#include <bit>

#include "tbwriter/histogram.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/event_files.h"

namespace sweep::tbwriter::values_test {

TEST(Half, HasTheValuesOfIeee754) {  // numpy.frombuffer(..., dtype=numpy.float16)
  EXPECT_EQ(to_float(Half{0x3C00}), 1.0f);
  EXPECT_EQ(to_float(Half{0xC000}), -2.0f);
  EXPECT_EQ(to_float(Half{0x7BFF}), 65504.0f);
  EXPECT_EQ(to_float(Half{0x0400}), 0x1p-14f);
  EXPECT_EQ(to_float(Half{0x0001}), 0x1p-24f);
  EXPECT_EQ(to_float(Half{0x3555}), 0.333251953125f);
  EXPECT_TRUE(std::signbit(to_float(Half{0x8000})));
  EXPECT_EQ(to_float(Half{0xFC00}), -INFINITY);
  EXPECT_TRUE(std::isnan(to_float(Half{0x7E00})));
}

TEST(BFloat16, IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(to_float(BFloat16{0x3F80}), 1.0f);
  EXPECT_EQ(to_float(BFloat16{0xC040}), -3.0f);
  EXPECT_EQ(to_float(BFloat16{0x7F80}), INFINITY);
  EXPECT_TRUE(std::isnan(to_float(BFloat16{0x7FC0})));
}

template <class Number>
std::vector<Number> cast(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

TEST(Values, OfEveryTypeMakeTheSameHistogram) {
  const std::vector<float> floats{1, 2, 0, 8}, parts{1, -2, 0.5f, 0, 8};
  const std::vector<Half> halves{{0x3C00}, {0xC000}, {0x3800}, {0}, {0x4800}};
  std::vector<BFloat16> brains;
  for (const float value : parts)
    brains.push_back({static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16)});
  const auto expect_same = [](const Values& values, const Values& expected) {
    const Histogram histogram = make_histogram(values), wanted = make_histogram(expected);
    EXPECT_EQ(histogram.limits, wanted.limits);
    EXPECT_EQ(histogram.counts, wanted.counts);
    EXPECT_EQ(histogram.sum, wanted.sum);
  };
  EXPECT_EQ(make_histogram(parts).sum, 7.5);
  const auto doubles = cast<double>(parts);
  for (const Values values : {Values(doubles), Values(halves), Values(brains)}) expect_same(values, parts);
  const auto bytes = cast<std::uint8_t>(floats);
  const auto integers = cast<std::int32_t>(floats);
  auto large = cast<std::int64_t>(floats);
  for (const Values values : {Values(bytes), Values(integers), Values(std::span(large))})
    expect_same(values, floats);
}

// Fails the test unless the values are written as `type`, and have the bytes of `kept`.
template <class Number>
void expect_tensor(const Values& values, const std::vector<std::int64_t>& shape, proto::DataType type,
                   const std::vector<Number>& kept) {
  const auto add = [&](SummaryWriter& writer) { writer.add_tensor("t", values, shape, 3); };
  const proto::Tensor tensor = event_of(add).summary().value(0).tensor();
  EXPECT_EQ(tensor.dtype(), type);
  std::vector<std::int64_t> extents;
  for (const auto& dim : tensor.tensor_shape().dim()) extents.push_back(dim.size());
  EXPECT_TRUE(tensor.has_tensor_shape());
  EXPECT_EQ(extents, shape);
  ASSERT_EQ(tensor.tensor_content().size(), kept.size() * sizeof(Number));
  EXPECT_EQ(std::memcmp(tensor.tensor_content().data(), kept.data(), kept.size() * sizeof(Number)), 0);
}

template <class Number>
void expect_kept(const std::vector<Number>& values, const std::vector<std::int64_t>& shape,
                 proto::DataType type) {
  expect_tensor(values, shape, type, values);
}

TEST(AddTensor, KeepsEveryTypeAndShapeAsItLiesInMemoryExceptBFloat16) {
  expect_kept<float>({1, 2, 3, 4, 5, std::nanf("")}, {2, 3}, proto::DT_FLOAT);
  expect_kept<double>({0.1, -INFINITY}, {2}, proto::DT_DOUBLE);
  expect_kept<std::int64_t>({std::numeric_limits<std::int64_t>::min(), 7}, {2}, proto::DT_INT64);
  expect_kept<std::int32_t>({std::numeric_limits<std::int32_t>::min(), 7}, {2}, proto::DT_INT32);
  expect_kept<std::uint8_t>({0, 255}, {2}, proto::DT_UINT8);
  expect_kept<Half>({{0x3C00}}, {1}, proto::DT_HALF);
  expect_kept<float>({7}, {}, proto::DT_FLOAT);
  expect_kept<float>({}, {3, 0}, proto::DT_FLOAT);
  // Which every reader knows.
  expect_tensor<float>(std::vector<BFloat16>{{0x3F80}, {0xC000}}, {2}, proto::DT_FLOAT, {1, -2});
}

}  // namespace sweep::tbwriter::values_test
