#include "core/kernels/cpu/simd/kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/simd/simd_target.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::HWY_NAMESPACE {
std::string target_name() { return hwy::TargetName(HWY_TARGET); }
}  // namespace sweep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep {
HWY_EXPORT(target_name);
std::string simd_target_name() { return HWY_DYNAMIC_DISPATCH(target_name)(); }
std::size_t simd_target_index() { return hwy::GetChosenTarget().GetIndex(); }
std::string simd_library_version() {
  return std::to_string(HWY_MAJOR) + "." + std::to_string(HWY_MINOR) + "." + std::to_string(HWY_PATCH);
}
}  // namespace sweep
#endif  // HWY_ONCE
