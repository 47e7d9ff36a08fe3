#include "tests/cudart/program_memory.h"

#include <link.h>

namespace sweep::cuda::cudart {

Range range_of(std::span<const std::byte> bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  return {begin, begin + bytes.size()};
}

ProgramMemory find_program_memory() {
  ProgramMemory program;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        ProgramMemory& found = *static_cast<ProgramMemory*>(data);
        found.base = info->dlpi_addr;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
          found.variables.begin = reinterpret_cast<std::uintptr_t>(info->dlpi_tls_data);
          found.variables.end = found.variables.begin + info->dlpi_phdr[i].p_memsz;
        }
        return 1;  // The program comes first.
      },
      &program);
  return program;
}

}  // namespace sweep::cuda::cudart
