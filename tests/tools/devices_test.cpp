// What `sweep devices` says of the libraries for CUDA.

#include "tests/support/program_folder.h"

namespace sweep::testing::devices_test {

using CudaLibraries = ProgramFolder;
TEST_F(CudaLibraries, AreNamedWithTheirVersionOrWhyThereIsNone) {
  const Finished text = run({"devices"});
  if (text.out.find("this build has no CUDA") != std::string::npos) GTEST_SKIP() << "this build has no CUDA";
  const json libraries = output({"devices"}).at("libraries");
  ASSERT_EQ(libraries.size(), 3u) << "cuBLASLt, cuDNN and NCCL";
  for (const json& library : libraries) {
    EXPECT_NE(library.at("version").is_null(), library.at("problem").is_null()) << library;
    for (const char* key : {"name", "use", "version", "path", "problem"}) {
      if (library.at(key).is_null()) continue;
      EXPECT_NE(text.out.find(library[key].get<std::string>()), std::string::npos) << text.out << library;
    }
  }
}

}  // namespace sweep::testing::devices_test
