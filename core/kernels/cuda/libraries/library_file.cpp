#include "core/kernels/cuda/libraries/library_file.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace sweep::cuda {
namespace {

namespace fs = std::filesystem;

// Lazy, as functions are looked up one by one. Local: symbols must not replace those of another version that
// the process has loaded.
constexpr int kMode = RTLD_LAZY | RTLD_LOCAL;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The entries of `directory` whose names start with `prefix`, sorted; none if it cannot be read.
std::vector<fs::path> entries(const fs::path& directory, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

class Directories {
 public:
  void add(const fs::path& directory) {
    std::error_code error;
    if (!fs::is_directory(directory, error)) return;
    // /usr/local/cuda is a link to a directory next to it: list that once
    const bool known = std::any_of(list_.begin(), list_.end(), [&](const fs::path& other) {
      return fs::equivalent(other, directory, error);
    });
    if (!known) list_.push_back(directory);
  }
  // The layout of the wheels nvidia-cudnn-cu13 and nvidia-cublas: nvidia/cudnn/lib, nvidia/cu13/lib.
  void add_packages(const fs::path& packages) {
    for (const fs::path& part : entries(packages / "nvidia", "")) add(part / "lib");
  }
  // A Python environment: PREFIX/lib/python3.12/site-packages.
  void add_python(const fs::path& prefix) {
    for (const fs::path& python : entries(prefix / "lib", "python3")) {
      add_packages(python / "site-packages");
      add_packages(python / "dist-packages");
    }
  }
  std::vector<fs::path> take() { return std::move(list_); }

 private:
  std::vector<fs::path> list_;
};

// Prefix of the first python3 on PATH; empty if there is none.
fs::path python_prefix() {
  std::istringstream path(environment("PATH"));
  for (std::string directory; std::getline(path, directory, ':');) {
    std::error_code error;
    if (!directory.empty() && fs::exists(fs::path(directory) / "python3", error))
      return fs::path(directory).parent_path();
  }
  return {};
}

fs::path path_of(void* handle, const std::string& name) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name[0] == '\0') return name;
  return map->l_name;
}

std::string linker_error() {
  const char* error = ::dlerror();
  return error != nullptr ? error : "unknown error";
}

}  // namespace

std::vector<fs::path> library_directories() {
  Directories directories;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (!error) {
    directories.add(program);
    directories.add(program.parent_path() / "lib");
    directories.add_python(program.parent_path());
  }
  for (const fs::path& toolkit : entries("/usr/local", "cuda")) {
    directories.add(toolkit / "lib64");
    directories.add(toolkit / "lib");
    for (const fs::path& target : entries(toolkit / "targets", "")) directories.add(target / "lib");
  }
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = environment(variable);
    if (prefix.empty()) continue;
    directories.add_python(prefix);
    directories.add(fs::path(prefix) / "lib");
  }
  if (const fs::path prefix = python_prefix(); !prefix.empty()) directories.add_python(prefix);
  if (const std::string home = environment("HOME"); !home.empty())
    directories.add_python(fs::path(home) / ".local");
  directories.add_python("/usr/local");
  directories.add_packages("/usr/lib/python3/dist-packages");
  return directories.take();
}

LibraryFile::LibraryFile(std::vector<std::string> names) {
  std::string wanted, damaged;
  for (const std::string& name : names) {
    wanted += (wanted.empty() ? "" : ", ") + name;
    handle_ = ::dlopen(name.c_str(), kMode);
    if (handle_ == nullptr) {
      // That there is no such file is clear from the list of names; any other error is worth reporting.
      const std::string error = linker_error();
      if (error.find("No such file") == std::string::npos) damaged += "; " + error;
    }
    if (handle_ != nullptr) {
      path_ = path_of(handle_, name);
      return;
    }
  }
  const std::vector<fs::path> directories = library_directories();
  for (const fs::path& directory : directories) {
    for (const std::string& name : names) {
      std::error_code error;
      if (!fs::exists(directory / name, error)) continue;
      handle_ = ::dlopen((directory / name).c_str(), kMode);
      if (handle_ != nullptr) {
        path_ = path_of(handle_, directory / name);
        return;
      }
      damaged += "; " + linker_error();
    }
  }
  problem_ = "looked for " + wanted + " where the dynamic linker does";
  for (const fs::path& directory : directories) problem_ += ", in " + directory.string();
  problem_ += damaged;
}

// The parts stay open, so that the library finds them by their names.
void LibraryFile::require_parts(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (handle_ == nullptr) return;
    const fs::path beside = path_.parent_path() / name;
    if (::dlopen(beside.c_str(), kMode) != nullptr || ::dlopen(name.c_str(), kMode) != nullptr) continue;
    refuse("has no part " + name + ": " + linker_error());
  }
}

std::string LibraryFile::require_version(const std::string& library, std::size_t version, int major) {
  const std::string text = std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
                           std::to_string(version % 100);
  if (version / 10000 != static_cast<std::size_t>(major))
    refuse("is " + library + " " + text + ", not " + std::to_string(major));
  return text;
}

void LibraryFile::refuse(const std::string& problem) {
  if (handle_ == nullptr) return;
  ::dlclose(handle_);
  handle_ = nullptr;
  problem_ = path_.string() + ": " + problem;
}

void* LibraryFile::symbol(const char* name) {
  if (handle_ == nullptr) return nullptr;
  void* address = ::dlsym(handle_, name);
  if (address == nullptr) refuse(std::string("has no function ") + name);
  return address;
}

}  // namespace sweep::cuda
