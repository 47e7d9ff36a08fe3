// Fuzz target: any bytes are a sweep's directory: for each file a byte for its name, two for its size, and
// its content.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "tests/fuzz/inspected_sweep.h"

namespace {

constexpr std::string_view kNames[] = {
    "sweep.json",
    "results.json",
    "results.csv",
    "run.json",
    "lr=0.1/run.json",
    "lr=0.1/checkpoint.safetensors",
    "lr=0.1/checkpoint.previous.safetensors",
    "lr=0.1/events.out.tfevents.1700000000.host.1.000000",
    "lr=0.1/log.txt",
    "lr=0.2/run.json",
    "lr=0.2/checkpoint.safetensors",
    "lr=0.2/events.out.tfevents.1700000000.host.1.000000",
    "lr=0.2.replaced-1/run.json",
    ".lock",
    "mine/events.out.tfevents.1.other",
    "lr=0.1/run.json.7.tmp",
    ".progress.json",
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::filesystem::remove_all(fuzz_directory());
  std::filesystem::create_directory(fuzz_directory());
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (rest.size() >= 3) {
    const auto byte = [&](std::size_t i) {
      return static_cast<std::size_t>(static_cast<unsigned char>(rest[i]));
    };
    const std::string_view name = kNames[byte(0) % std::size(kNames)];
    const std::size_t length = std::min(byte(1) + 256 * byte(2), rest.size() - 3);
    write_fuzz_file(name, rest.substr(3, length));
    rest.remove_prefix(3 + length);
  }
  inspect_sweep(fuzz_directory());
  return 0;
}
