// The bytes of tar archives.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace sweep::test {

/// One member of a ustar archive: its header and its content, both as whole blocks.
inline std::string tar_member(const std::string& name, std::string_view content, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 7, "0000644");
  char size[12];
  std::snprintf(size, sizeof size, "%011zo", content.size());
  header.replace(124, 11, size);
  header.replace(148, 8, "        ");
  header[156] = type;
  header.replace(257, 8,
                 std::string("ustar\0"
                             "00",
                             8));
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  char checksum[8];
  std::snprintf(checksum, sizeof checksum, "%06o", sum);
  header.replace(148, 7, std::string(checksum, 7));
  return header.append(content).append((512 - content.size() % 512) % 512, '\0');
}

inline const std::string kTarEnd(1024, '\0');

}  // namespace sweep::test
