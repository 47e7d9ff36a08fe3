#include "core/kernels/cuda/host/code_names.h"

#include <cxxabi.h>
#include <elf.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <regex>
#include <stdexcept>
#include <vector>

#include "core/kernels/cuda/host/program_memory.h"

namespace sweep::cuda::host {
namespace {

template <class T>
T read_at(const std::vector<char>& file, std::size_t offset) {
  if (offset + sizeof(T) > file.size()) throw std::runtime_error("/proc/self/exe: a table is beyond its end");
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

// The program's functions by address, counted from where it is loaded ("System V Application Binary
// Interface", "Symbol Table").
std::map<std::uintptr_t, std::string> read_functions() {
  std::ifstream stream("/proc/self/exe", std::ios::binary);
  const std::vector<char> file{std::istreambuf_iterator<char>(stream), {}};
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  std::map<std::uintptr_t, std::string> functions;
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const auto table = read_at<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (table.sh_type != SHT_SYMTAB) continue;
    const auto names = read_at<Elf64_Shdr>(file, header.e_shoff + table.sh_link * sizeof(Elf64_Shdr));
    for (std::size_t n = 0; n < table.sh_size / sizeof(Elf64_Sym); ++n) {
      const auto symbol = read_at<Elf64_Sym>(file, table.sh_offset + n * sizeof(Elf64_Sym));
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_value == 0) continue;
      functions.try_emplace(symbol.st_value, file.data() + names.sh_offset + symbol.st_name);
    }
  }
  return functions;
}

}  // namespace

std::string name_of_kernel(const void* code) {
  static const std::map<std::uintptr_t, std::string> functions = read_functions();
  static const std::uintptr_t base = find_program_memory().base;
  const auto found = functions.find(reinterpret_cast<std::uintptr_t>(code) - base);
  if (found == functions.end())
    throw std::runtime_error("the program has no symbol for a kernel: is it stripped?");
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(found->second.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0) return found->second;
  static const std::regex unwanted(R"(sweep::cuda::|\(anonymous namespace\)::|^void )");
  std::string name = std::regex_replace(demangled.get(), unwanted, "");
  return name.substr(0, name.find('('));
}

}  // namespace sweep::cuda::host
