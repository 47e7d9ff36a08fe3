// Opens NVIDIA's libraries that are installed on this machine and looks every function up. Needs no GPU.

#include "core/engine/device.h"
#include "core/kernels/cuda/libraries/library_file.h"
#if defined(SWEEP_HAVE_CUBLASLT)
#include "core/kernels/cuda/libraries/cublaslt.h"
#endif
#if defined(SWEEP_HAVE_CUDNN)
#include "core/kernels/cuda/libraries/cudnn.h"
#endif

#include "tests/support/test.h"

namespace sweep::cuda::libraries_test {

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
  EXPECT_THAT(library.version, StartsWith(version));
  EXPECT_TRUE(fs::is_regular_file(library.path)) << library.path;
  EXPECT_THAT(library.path, HasSubstr(installed.filename().string()));
}

TEST(CudaLibraries, CublasLtHasEveryFunctionThatIsUsed) {
  expect_opened("cuBLASLt", SWEEP_INSTALLED_CUBLASLT, "13.");
}
TEST(CudaLibraries, CudnnHasEveryFunctionThatIsUsed) { expect_opened("cuDNN", SWEEP_INSTALLED_CUDNN, "9."); }

// What is described to a library is checked by it, sizes of attributes included, before any device is asked.
#if defined(SWEEP_HAVE_CUBLASLT)
TEST(CudaLibraries, CublasLtTakesDescriptionsOfProducts) {
  const CublasLt& lt = cublaslt();
  if (!lt.file) GTEST_SKIP() << lt.file.problem();
  const auto succeed = [](cublasStatus_t status) { ASSERT_EQ(status, CUBLAS_STATUS_SUCCESS); };
  cublasLtMatmulDesc_t product = nullptr;
  succeed(lt.desc_create(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    return lt.desc_set(product, attribute, &value, sizeof value);
  };
  succeed(set(CUBLASLT_MATMUL_DESC_TRANSA, std::int32_t{CUBLAS_OP_T}));
  for (const cublasLtEpilogue_t epilogue :
       {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_BIAS,
        CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_BGRADB})
    succeed(set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::uint32_t>(epilogue)));
  const void* bias = &product;
  succeed(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
  EXPECT_EQ(set(CUBLASLT_MATMUL_DESC_EPILOGUE, std::uint64_t{1}), CUBLAS_STATUS_INVALID_VALUE)
      << "of another size";
  succeed(lt.desc_destroy(product));
  cublasLtMatrixLayout_t layout = nullptr;
  succeed(lt.layout_create(&layout, CUDA_R_32F, 3, 5, 3));
  succeed(lt.layout_destroy(layout));
  cublasLtMatmulPreference_t preference = nullptr;
  succeed(lt.preference_create(&preference));
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    succeed(lt.preference_set(preference, attribute, &value, sizeof value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kMaxWorkspace});
  for (const int schemes : {CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, CUBLASLT_REDUCTION_SCHEME_MASK})
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<std::uint32_t>(schemes));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t{4});
  cublasLtMatmulAlgo_t algorithm{};
  std::uint32_t chosen = 0;
  std::size_t written = 0;
  succeed(lt.algo_get(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &chosen, sizeof chosen, &written));
  EXPECT_EQ(written, sizeof chosen);
  succeed(lt.preference_destroy(preference));
}
#endif

#if defined(SWEEP_HAVE_CUDNN)
TEST(CudaLibraries, CudnnTakesDescriptionsOfConvolutions) {
  const Cudnn& library = cudnn();
  if (!library.file) GTEST_SKIP() << library.file.problem();
  const auto succeed = [](cudnnStatus_t status) { ASSERT_EQ(status, CUDNN_STATUS_SUCCESS); };
  cudnnTensorDescriptor_t tensor = nullptr;
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t conv = nullptr;
  succeed(library.tensor_create(&tensor));
  succeed(library.filter_create(&filter));
  succeed(library.conv_create(&conv));
  succeed(library.tensor_set(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 4, 9, 7));
  succeed(library.filter_set(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 6, 2, 3, 2));
  succeed(library.conv_set(conv, 1, 1, 2, 2, 1, 2, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  succeed(library.conv_set_groups(conv, 2));
  succeed(library.conv_set_math(conv, CUDNN_FMA_MATH));
  succeed(library.conv_destroy(conv));
  succeed(library.filter_destroy(filter));
  succeed(library.tensor_destroy(tensor));
}
#endif

constexpr const char* kName = "libsweep_test_library.so.9";

class LibrarySearch : public testing::Test {
 protected:
  fs::path installed(const fs::path& directory) const {
    fs::create_directories(directory);
    fs::copy_file(SWEEP_TEST_LIBRARY, directory / kName);
    return directory / kName;
  }

  const test::TemporaryDirectory directory_;
  const fs::path root_ = directory_.path();
  // In a virtual environment.
  const fs::path packages_ = root_ / "lib/python3.12/site-packages/nvidia/cudnn/lib";
  const test::Environment environment_{"VIRTUAL_ENV", root_.string()};
};

TEST_F(LibrarySearch, FindsWhatPipHasInstalledInAVirtualEnvironment) {
  for (const char* package : {"cudnn", "cublas", "cu13"}) {
    const fs::path environment = root_ / package;
    const fs::path file = installed(environment / "lib/python3.12/site-packages/nvidia" / package / "lib");
    const test::Environment variable("VIRTUAL_ENV", environment.string());
    EXPECT_THAT(library_directories(), Contains(file.parent_path()));
    const LibraryFile library({kName});
    EXPECT_EQ(library.path(), file) << library.problem();
  }
}

TEST_F(LibrarySearch, FindsWhatIsInTheEnvironmentOfTheFirstPython) {
  const test::Environment no_environment("VIRTUAL_ENV", nullptr);
  const fs::path file = installed(root_ / "lib/python3.11/site-packages/nvidia/cudnn/lib");
  fs::create_directories(root_ / "bin");
  std::ofstream(root_ / "bin/python3") << "";
  const test::Environment path("PATH", "/nowhere:" + (root_ / "bin").string() + ":/usr/bin");
  EXPECT_EQ(LibraryFile({kName}).path(), file);
}

TEST_F(LibrarySearch, FindsWhatIsBesideTheProgram) {
  const fs::path directory = fs::read_symlink("/proc/self/exe").parent_path();
  EXPECT_THAT(library_directories(), Contains(directory));
}

// A wheel puts the program into PREFIX/bin, and NVIDIA's wheels are in PREFIX/lib/python3.*/site-packages.
TEST_F(LibrarySearch, FindsTheWheelsNextToTheProgramFirst) {
  const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path python = bin.parent_path() / "lib/python3.99";
  const fs::path file = installed(python / "site-packages/nvidia/cudnn/lib");
  installed(packages_);
  const LibraryFile library({kName});
  fs::remove_all(python);
  EXPECT_EQ(library.path(), file) << library.problem();
}

TEST_F(LibrarySearch, SaysWhichNamesWereLookedForAndWhere) {
  const LibraryFile library({"libnothing.so.1", "libnothing.so.2"});
  EXPECT_FALSE(library);
  EXPECT_THAT(library.problem(), HasSubstr("libnothing.so.1, libnothing.so.2"));
  for (const fs::path& directory : library_directories())
    EXPECT_THAT(library.problem(), HasSubstr(directory.string()));
}

TEST_F(LibrarySearch, SaysWhatIsWrongWithAFileThatIsNoLibrary) {
  fs::create_directories(packages_);
  std::ofstream(packages_ / kName) << "not a library";
  const LibraryFile library({kName});
  EXPECT_FALSE(library);
  EXPECT_THAT(library.problem(), HasSubstr((packages_ / kName).string()));
}

TEST_F(LibrarySearch, ALibraryWithoutAFunctionIsNotUsed) {
  installed(packages_);
  LibraryFile library({kName});
  const auto function = library.find<int()>("sweep_test_function");
  ASSERT_NE(function, nullptr) << library.problem();
  EXPECT_EQ(function(), 42);
  EXPECT_EQ(library.find<int()>("sweep_missing_function"), nullptr);
  EXPECT_FALSE(library);
  EXPECT_THAT(library.problem(), HasSubstr("has no function sweep_missing_function"));
}

TEST_F(LibrarySearch, ALibraryWithoutOneOfItsPartsIsNotUsed) {
  installed(packages_);
  fs::copy_file(SWEEP_TEST_LIBRARY, packages_ / "libsweep_test_part.so.9");
  LibraryFile library({kName});
  library.require_parts({"libsweep_test_part.so.9"});
  EXPECT_TRUE(library) << library.problem();
  library.require_parts({"libsweep_test_part.so.9", "libsweep_missing_part.so.9"});
  EXPECT_FALSE(library);
  EXPECT_THAT(library.problem(), HasSubstr("has no part libsweep_missing_part.so.9"));
}

}  // namespace sweep::cuda::libraries_test
