// What trainings against PyTorch's do not have: extreme outputs, and equal ones.

#include "core/kernels/cpu/kernels/sample_kernels.h"

#include "tests/support/test.h"

namespace sweep::cpu::loss_test {

struct Loss {
  alignas(64) float loss[kLanes];
  alignas(64) std::int32_t predicted[kLanes];
};

// All 16 images have the same logits; image i has label i % classes.
Loss loss_of(const std::vector<float>& logits) {
  AlignedBuffer block(logits.size() * kLanes), gradient(logits.size() * kLanes);
  alignas(64) std::int32_t labels[kLanes];
  alignas(64) float scale[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (std::size_t c = 0; c < logits.size(); ++c) block.data()[c * kLanes + lane] = logits[c];
    labels[lane] = static_cast<std::int32_t>(lane % logits.size());
    scale[lane] = 0.5f;
  }
  Loss result;
  cross_entropy(block.data(), labels, logits.size(), 0, nullptr, scale, result.loss, result.predicted,
                gradient.data());
  return result;
}

TEST(SoftmaxCrossEntropy, HugeLogitsDoNotOverflow) {
  const Loss result = loss_of({1000.0f, -1000.0f, 999.0f});
  EXPECT_NEAR(result.loss[0], std::log(1 + std::exp(-1.0)), 1e-4);
  EXPECT_NEAR(result.loss[1], 2000 + std::log(1 + std::exp(-1.0)), 1e-3);
}

TEST(SoftmaxCrossEntropy, TheFirstOfEqualLogitsIsPredicted) {
  EXPECT_EQ(loss_of({1, 2, 2, 0}).predicted[0], 1);
}

TEST(RankLabels, PutsALabelWhoseOutputIsNaNLast) {
  AlignedBuffer outputs(3 * kLanes);
  for (std::size_t i = 0; i < kLanes; ++i) {
    outputs.data()[i] = std::numeric_limits<float>::quiet_NaN();
    outputs.data()[kLanes + i] = 1;
    outputs.data()[2 * kLanes + i] = 2;
  }
  alignas(64) std::int32_t labels[kLanes], ranks[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) labels[i] = static_cast<std::int32_t>(i % 3);
  rank_labels(outputs.data(), labels, 3, ranks);
  EXPECT_EQ(ranks[0], 3);
  EXPECT_EQ(ranks[1], 1);
  EXPECT_EQ(ranks[2], 0);
}

TEST(SoftmaxCrossEntropy, OneClassHasNoLoss) { EXPECT_EQ(loss_of({5}).loss[3], 0); }

TEST(LoadPixels, ConvertsEveryByteExactly) {
  // 256 + 3 pixels: all byte values, and a tail that is shorter than 16.
  constexpr std::size_t kPixels = 259;
  std::vector<std::vector<std::uint8_t>> images(kLanes, std::vector<std::uint8_t>(kPixels));
  const std::uint8_t* pointers[kLanes];
  for (std::size_t image = 0; image < kLanes; ++image) {
    for (std::size_t i = 0; i < kPixels; ++i)
      images[image][i] = static_cast<std::uint8_t>(i * 7 + image * 13);
    pointers[image] = images[image].data();
  }
  AlignedBuffer out(kPixels * kLanes);
  load_pixels(pointers, kPixels, out.data());
  for (std::size_t i = 0; i < kPixels; ++i) {
    for (std::size_t image = 0; image < kLanes; ++image) {
      ASSERT_EQ(out.data()[i * kLanes + image], static_cast<float>(images[image][i]) / 255.0f)
          << i << " " << image;
    }
  }
}

}  // namespace sweep::cpu::loss_test
