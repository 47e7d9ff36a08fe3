// Fuzz target: any bytes are the sweep.json in a sweep's directory.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/inspected_sweep.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const FuzzDirectory directory;
  static const bool first = [] {
    directory.write(
        "lr=0.1/run.json",
        R"({"name":"lr=0.1","status":"completed","params":{"lr":0.1},"config":{"lr":0.1},"metrics":{},)"
        R"("epochs":[],"seconds":{},"error":null,"device":"cpu"})");
    return true;
  }();
  static_cast<void>(first);
  directory.write("sweep.json", {reinterpret_cast<const char*>(data), size});
  inspect_sweep(directory.path());
  return 0;
}
