#include "core/engine/device.h"

#include "core/kernels/cuda/runtime/cuda_devices.h"
#include "tests/support/test.h"

namespace sweep::device_test {

TEST(ParseDevice, ReadsEveryForm) {
  EXPECT_EQ(parse_device("cpu"), (Device{DeviceType::kCpu, 0}));
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceType::kCuda, 0}));
  EXPECT_EQ(parse_device("cuda:0"), parse_device("cuda"));
  EXPECT_EQ(parse_device("cuda:12"), (Device{DeviceType::kCuda, 12}));
  EXPECT_EQ(parse_device("cuda:3").name(), "cuda:3");
  EXPECT_EQ(parse_device("cuda:0").name(), "cuda");
}

TEST(ParseDevice, OtherTextSaysWhatIsAllowed) {
  for (const char* text :
       {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1 ", "cpu0", "cuda:99999999999", "auto:1"}) {
    EXPECT_THAT([&] { parse_device(text); }, ThrowsMessage<ConfigError>(HasSubstr("cuda:N"))) << text;
  }
}

TEST(ParseDevice, AutoIsCudaWhereItCanTrainElseTheCpu) {
  EXPECT_EQ(parse_device("auto").type, cuda_unavailable_reason() ? DeviceType::kCpu : DeviceType::kCuda);
}

TEST(Devices, TheCpuIsFirstAndUsable) {
  const std::vector<DeviceInfo> devices = list_devices();
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0].device, parse_device("cpu"));
  EXPECT_GE(devices[0].cores, 1);
  EXPECT_GT(devices[0].memory_bytes, 0u);
  EXPECT_FALSE(devices[0].capability.empty());
  EXPECT_EQ(devices[0].capability.find("AVX3"), std::string::npos) << devices[0].capability;
  EXPECT_EQ(unavailable_reason(parse_device("cpu")), std::nullopt);
}

TEST(Devices, CodeRunsOnWhatItWasBuiltForAndOnWhatCanTakeIt) {
  EXPECT_TRUE(runs_code_for("75-real;90", "7.5"));
  EXPECT_TRUE(runs_code_for("80-real", "8.6")) << "machine code runs on later minor versions";
  EXPECT_FALSE(runs_code_for("86-real", "8.0"));
  EXPECT_FALSE(runs_code_for("80-real,90-real", "7.5"));
  EXPECT_FALSE(runs_code_for("80-real", "9.0"));
  EXPECT_TRUE(runs_code_for("80", "12.0")) << "PTX is compiled for later ones";
  EXPECT_TRUE(runs_code_for("80-virtual", "10.3"));
  EXPECT_FALSE(runs_code_for("120", "10.0"));
  EXPECT_TRUE(runs_code_for("120", "12.1"));
  EXPECT_TRUE(runs_code_for("native", "7.0"));
}

TEST(Devices, ADeviceThatIsNotThereHasAReason) {
  EXPECT_NE(unavailable_reason(parse_device("cuda:4000")), std::nullopt);
}

TEST(CudaDevices, StayAtTheirIndexIfOneBeforeThemDoesNotAnswer) {
  const std::vector<DeviceInfo> devices =
      describe_cuda_devices(3, [](int index) -> std::optional<DeviceInfo> {
        if (index == 1) return std::nullopt;
        DeviceInfo info;
        info.description = "GPU " + std::to_string(index);
        return info;
      });
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[2].description, "GPU 2");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(devices[static_cast<std::size_t>(i)].device, (Device{DeviceType::kCuda, i}));
  EXPECT_EQ(devices[1].capability, "");
}

}  // namespace sweep::device_test
