# cmake -DOUTPUT=FILE.cpp -DFILES=PATH,… -P embed.cmake: writes a source file that holds the files, by their names without folders.
set(entries "")
string(REPLACE "," ";" FILES "${FILES}")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  file(READ ${file} content)
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
