# cmake -DOUTPUT=FILE.cpp -DFILES=NAME=PATH,… -P embed.cmake: writes a source file that holds the files.
set(entries "")
string(REPLACE "," ";" FILES "${FILES}")
foreach(file IN LISTS FILES)
  string(REGEX MATCH "^([^=]*)=(.*)$" matched "${file}")
  set(name ${CMAKE_MATCH_1})
  file(READ ${CMAKE_MATCH_2} content)
  string(APPEND entries "    {\"${name}\", R\"SWEEP_EMBEDDED(${content})SWEEP_EMBEDDED\"sv},\n")
endforeach()
list(LENGTH FILES count)
file(WRITE ${OUTPUT} "#include <array>

#include \"runmanager/report/page.h\"

namespace sweep {

using namespace std::string_view_literals;

std::span<const EmbeddedFile> embedded_files() {
  static constexpr std::array<EmbeddedFile, ${count}> kFiles = {{
${entries}  }};
  return kFiles;
}

}  // namespace sweep
")
