# Writes OUTPUT, a header with the commit of SOURCE. Run at every build; touches the file only if the commit changed.
# What was unpacked inside a repository of others is not of its commits.
execute_process(COMMAND git --git-dir=${SOURCE}/.git --work-tree=${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR NOT revision)
  set(revision "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// The commit that is built. Written by tools/cmake/write_revision.cmake.
#pragma once

namespace sweep {
inline constexpr const char* kSourceRevision = "@revision@";
}
]])
