// The factors of dropout, 16 images at a time.
#include "core/base/random.h"
#include "core/kernels/cpu/kernels/layer_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/dropout.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
using Words = hn::RebindToUnsigned<Lanes>;
using WordVector = hn::Vec<Words>;

// The two halves of 64-bit products.
struct Product {
  WordVector high, low;
};

HWY_INLINE Product multiply_words(Words d, WordVector a, WordVector b) {
  const hn::RepartitionToWide<Words> wide;
  const auto upper = [&](auto x) HWY_ATTR { return hn::ShiftRight<32>(hn::BitCast(wide, x)); };
  const auto even = hn::MulEven(a, b), odd = hn::MulEven(hn::BitCast(d, upper(a)), b);
  return {hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, upper(even))),
          hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even))};
}

// philox4x32() of core/base/random.h, for the images in a vector's lanes.
HWY_INLINE void philox(Words d, WordVector (&counter)[4], const std::array<std::uint32_t, 2>& key) {
  std::uint32_t key0 = key[0], key1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const Product product0 = multiply_words(d, counter[0], hn::Set(d, 0xD2511F53u));
    const Product product1 = multiply_words(d, counter[2], hn::Set(d, 0xCD9E8D57u));
    counter[0] = hn::Xor(hn::Xor(product1.high, counter[1]), hn::Set(d, key0));
    counter[1] = product1.low;
    counter[2] = hn::Xor(hn::Xor(product0.high, counter[3]), hn::Set(d, key1));
    counter[3] = product0.low;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

void dropout_factors(const DropoutDraw& draw, std::size_t elements, float* factors) {
  const Lanes d;
  const Words words;
  const WordVector threshold = hn::Set(words, draw.threshold);
  for (std::size_t element = 0; element < elements; element += 4) {
    for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
      WordVector random[4] = {hn::Set(words, static_cast<std::uint32_t>(element / 4)),
                              hn::Iota(words, draw.first_image + static_cast<std::uint32_t>(lane)),
                              hn::Set(words, draw.step), hn::Set(words, draw.use)};
      philox(words, random, draw.key);
      for (std::size_t i = 0; i < HWY_MIN(std::size_t{4}, elements - element); ++i) {
        const auto is_dropped = hn::RebindMask(d, hn::Lt(random[i], threshold));
        hn::Store(hn::IfThenZeroElse(is_dropped, hn::Set(d, draw.kept)), d,
                  factors + (element + i) * kLanes + lane);
      }
    }
  }
}
#else
void dropout_factors(const DropoutDraw& draw, std::size_t elements, float* factors) {
  for (std::size_t i = 0; i < elements * kLanes; ++i) {
    const std::size_t element = i / kLanes;
    const auto image = static_cast<std::uint32_t>(draw.first_image + i % kLanes);
    const auto random =
        philox4x32({static_cast<std::uint32_t>(element / 4), image, draw.step, draw.use}, draw.key);
    factors[i] = random[element % 4] < draw.threshold ? 0.0f : draw.kept;
  }
}
#endif

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(dropout_factors);

}  // namespace sweep::cpu
#endif  // HWY_ONCE
