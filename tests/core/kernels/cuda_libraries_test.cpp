// NVIDIA's libraries as they are installed on this machine: opened, with every function that is used of them.
// Nothing here needs a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "core/device.h"
#include "core/kernels/cuda/library_file.h"

namespace sweep::cuda {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

LibraryInfo library_called(const std::string& name) {
  for (const LibraryInfo& library : list_libraries()) {
    if (library.name == name) return library;
  }
  return {.name = name, .use = "", .problem = "is not in the list"};
}

// `installed` is where the build found the library, empty if nowhere.
void expect_opened(const std::string& name, const fs::path& installed, const std::string& version) {
  if (installed.empty()) GTEST_SKIP() << name << " is not installed beside the toolkit";
  const LibraryInfo library = library_called(name);
  EXPECT_EQ(library.problem, "");
  EXPECT_THAT(library.version, testing::StartsWith(version));
  EXPECT_TRUE(fs::is_regular_file(library.path)) << library.path;
  EXPECT_THAT(library.path, HasSubstr(installed.filename().string()));
}

TEST(CudaLibraries, CublasLtHasEveryFunctionThatIsUsed) {
  expect_opened("cuBLASLt", SWEEP_INSTALLED_CUBLASLT, "13.");
}
TEST(CudaLibraries, CudnnHasEveryFunctionThatIsUsed) { expect_opened("cuDNN", SWEEP_INSTALLED_CUDNN, "9."); }

constexpr const char* kName = "libsweep_test_library.so.9";

// A variable of the environment as long as the object lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class LibrarySearch : public testing::Test {
 protected:
  LibrarySearch() { fs::create_directories(root_); }
  ~LibrarySearch() override { fs::remove_all(root_); }

  fs::path installed(const fs::path& directory) const {
    fs::create_directories(directory);
    fs::copy_file(SWEEP_TEST_LIBRARY, directory / kName);
    return directory / kName;
  }

  const fs::path root_ =
      fs::path(testing::TempDir()) /
      (std::string("sweep-libraries-") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(LibrarySearch, FindsWhatPipHasInstalledInAVirtualEnvironment) {
  for (const char* package : {"cudnn", "cublas", "cu13"}) {
    const fs::path environment = root_ / package;
    const fs::path file = installed(environment / "lib/python3.12/site-packages/nvidia" / package / "lib");
    const Variable variable("VIRTUAL_ENV", environment.string());
    EXPECT_THAT(library_directories(), Contains(file.parent_path()));
    const LibraryFile library({kName});
    EXPECT_EQ(library.path(), file) << library.problem();
  }
}

TEST_F(LibrarySearch, FindsWhatIsInTheEnvironmentOfTheFirstPython) {
  const fs::path file = installed(root_ / "lib/python3.11/site-packages/nvidia/cudnn/lib");
  fs::create_directories(root_ / "bin");
  std::ofstream(root_ / "bin/python3") << "";
  const Variable path("PATH", "/nowhere:" + (root_ / "bin").string() + ":/usr/bin");
  EXPECT_EQ(LibraryFile({kName}).path(), file);
}

TEST_F(LibrarySearch, FindsWhatIsBesideTheProgram) {
  const fs::path directory = fs::read_symlink("/proc/self/exe").parent_path();
  EXPECT_THAT(library_directories(), Contains(directory));
}

TEST_F(LibrarySearch, SaysWhichNamesWereLookedForAndWhere) {
  const LibraryFile library({"libnothing.so.1", "libnothing.so.2"});
  EXPECT_FALSE(library);
  EXPECT_THAT(library.problem(), HasSubstr("libnothing.so.1, libnothing.so.2"));
  for (const fs::path& directory : library_directories())
    EXPECT_THAT(library.problem(), HasSubstr(directory.string()));
}

TEST_F(LibrarySearch, SaysWhatIsWrongWithAFileThatIsNoLibrary) {
  const fs::path directory = root_ / "lib/python3.12/site-packages/nvidia/cudnn/lib";
  fs::create_directories(directory);
  std::ofstream(directory / kName) << "not a library";
  const Variable variable("VIRTUAL_ENV", root_.string());
  const LibraryFile library({kName});
  EXPECT_FALSE(library);
  EXPECT_THAT(library.problem(), HasSubstr((directory / kName).string()));
}

TEST_F(LibrarySearch, ALibraryWithoutAFunctionIsNotUsed) {
  installed(root_ / "lib/python3.12/site-packages/nvidia/cudnn/lib");
  const Variable variable("VIRTUAL_ENV", root_.string());
  LibraryFile library({kName});
  int (*function)() = nullptr;
  library.find("sweep_test_function", function);
  ASSERT_NE(function, nullptr) << library.problem();
  EXPECT_EQ(function(), 42);
  library.find("sweep_missing_function", function);
  EXPECT_EQ(function, nullptr);
  EXPECT_FALSE(library);
  EXPECT_THAT(library.problem(), HasSubstr("has no function sweep_missing_function"));
}

}  // namespace
}  // namespace sweep::cuda
