// Fuzz target: after a first byte that says which, any bytes are the results.json, the results.csv or the
// sweep.json in a sweep's directory.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/inspected_sweep.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const bool first = [] {
    write_fuzz_file(
        "lr=0.1/run.json",
        R"({"name":"lr=0.1","status":"completed","params":{"lr":0.1},"config":{"lr":0.1},"metrics":{},)"
        R"("epochs":[{"epoch":1,"loss":0.5,"accuracy":1.0,"number_correct":4,"epoch_seconds":1,)"
        R"("run_seconds":2,"images_per_second":3}],"seconds":{"run":2},"error":null,"device":"cpu"})");
    return true;
  }();
  static_cast<void>(first);
  write_fuzz_file("results.json", "");
  write_fuzz_file("results.csv", "");
  write_fuzz_file("sweep.json", R"({"runs":["lr=0.1"]})");
  constexpr const char* kNames[] = {"results.json", "results.csv", "sweep.json"};
  write_fuzz_file(kNames[data[0] % 3], {reinterpret_cast<const char*>(data) + 1, size - 1});
  inspect_sweep(fuzz_directory());
  return 0;
}
