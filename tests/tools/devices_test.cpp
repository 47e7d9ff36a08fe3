// What `sweep devices` says of the libraries for CUDA.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace sweep::testing {
namespace {

using nlohmann::json;

TEST(CudaLibraries, AreNamedWithTheirVersionOrWhyThereIsNone) {
  const Finished text = run_program({"devices"}, "."), finished = run_program({"devices", "--json"}, ".");
  ASSERT_EQ(text.code, 0) << text.err;
  ASSERT_EQ(finished.code, 0) << finished.err;
  if (text.out.find("this build has no CUDA") != std::string::npos) GTEST_SKIP() << "this build has no CUDA";
  const json libraries = json::parse(finished.out).at("libraries");
  ASSERT_EQ(libraries.size(), 3u) << "cuBLASLt, cuDNN and NCCL";
  for (const json& library : libraries) {
    EXPECT_NE(library.at("version").is_null(), library.at("problem").is_null()) << library;
    for (const char* key : {"name", "use", "version", "path", "problem"}) {
      if (library.at(key).is_null()) continue;
      EXPECT_NE(text.out.find(library[key].get<std::string>()), std::string::npos) << text.out << library;
    }
  }
}

}  // namespace
}  // namespace sweep::testing
