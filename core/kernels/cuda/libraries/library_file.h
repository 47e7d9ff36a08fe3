// Finds NVIDIA's libraries on this machine and opens them at run time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sweep::cuda {

/// A shared library that stays open until the process ends.
class LibraryFile {
 public:
  /// Opens the first of `names` ("libcudnn.so.9") that is found: where the dynamic linker looks (Debian's and
  /// NVIDIA's packages, LD_LIBRARY_PATH), beside the program, and in library_directories(). Never throws.
  explicit LibraryFile(std::vector<std::string> names);

  explicit operator bool() const { return handle_ != nullptr; }
  /// Where it was found.
  const std::filesystem::path& path() const { return path_; }
  /// Why there is none: the names and where they were looked for, and what the dynamic linker said of a file
  /// that is there but could not be opened.
  const std::string& problem() const { return problem_; }

  /// Sets `function` to the symbol `name`, or closes the file with a problem() if it has none.
  template <class Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(symbol(name));
  }
  /// Closes it for good, because of `problem`.
  void refuse(const std::string& problem);

 private:
  void* symbol(const char* name);

  void* handle_ = nullptr;
  std::filesystem::path path_;
  std::string problem_;
};

/// Folders that may hold CUDA libraries and that the dynamic linker does not know: of the program, of the
/// toolkit, and of PyPI's wheels (nvidia/*/lib) in the environments that VIRTUAL_ENV, CONDA_PREFIX and the
/// first python3 on PATH stand for, in ~/.local and in the system's. Only those that exist.
std::vector<std::filesystem::path> library_directories();

}  // namespace sweep::cuda
