// Finds shared libraries on this machine and opens them at run time.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace sweep::cuda {

/// A shared library, open until the process ends.
class LibraryFile {
 public:
  /// Opens the first of `names` ("libcudnn.so.9") that is found: where the dynamic linker looks (packages of
  /// Debian and NVIDIA, LD_LIBRARY_PATH), then in library_directories(). Does not throw.
  explicit LibraryFile(std::vector<std::string> names);

  explicit operator bool() const { return handle_ != nullptr; }
  /// The file that was opened.
  const std::filesystem::path& path() const { return path_; }
  /// Why no file is open: the names, the directories searched, and the dynamic linker's message about a file
  /// that is there but would not open.
  const std::string& problem() const { return problem_; }

  /// The function `name`. If the file has none, returns nullptr and closes the file with a problem().
  template <class Function>
  Function* find(const char* name) {
    return reinterpret_cast<Function*>(symbol(name));
  }
  /// Closes the file, of `library`, if its version, 10000 · major + 100 · minor + patch, has another major
  /// number than `major`. Returns the version as text: "9.19.0".
  std::string require_version(const std::string& library, std::size_t version, int major);
  /// Opens the files that the library itself opens at its first call, in its own directory or where the
  /// dynamic linker looks. If one is missing, closes the file with a problem(): the library would end the
  /// process.
  void require_parts(const std::vector<std::string>& names);
  /// Closes the file, because of `problem`.
  void refuse(const std::string& problem);

 private:
  void* symbol(const char* name);

  void* handle_ = nullptr;
  std::filesystem::path path_;
  std::string problem_;
};

/// An object of a C library, which a function of it destroys.
template <class Pointer, class Status>
using LibraryObject = std::unique_ptr<std::remove_pointer_t<Pointer>, Status (*)(Pointer)>;

/// Declares `member`, a pointer to the function `name` of the library whose LibraryFile is `file`.
#define SWEEP_LIBRARY_FUNCTION(member, name) decltype(::name)* member = file.find<decltype(::name)>(#name)

/// Existing directories that may hold CUDA libraries but that the dynamic linker does not search: next to the
/// program, of PyPI wheels (nvidia/*/lib) in the environment that the program was installed into, of CUDA
/// toolkits, and of wheels in the environments of VIRTUAL_ENV, CONDA_PREFIX and the first python3 on PATH, in
/// ~/.local, and system-wide.
std::vector<std::filesystem::path> library_directories();

}  // namespace sweep::cuda
