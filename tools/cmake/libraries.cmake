# What the project's libraries give to programs of others.
#
# sweep_public_headers(TARGET HEADERS…): headers of this folder that are installed. Sources of the project include them by
# their whole path, core/engine/engine.h; others by library and name, which stay when folders change: core/engine.h.
# Works without the project's own CMakeLists.txt, for those who add only the folder of one library.
include(GNUInstallDirs)
function(sweep_public_headers target)
  cmake_path(SET root NORMALIZE ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../..)
  set(short_directory ${PROJECT_BINARY_DIR}/short_includes)
  file(RELATIVE_PATH folder ${root} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" library ${folder})
  set(short_headers "")
  foreach(header IN LISTS ARGN)
    if(NOT folder STREQUAL library)
      set(short ${short_directory}/${library}/${header})
      get_property(taken GLOBAL PROPERTY sweep_short_${library}_${header})
      if(taken)
        message(FATAL_ERROR "${folder}/${header} and ${taken} would both be installed as ${library}/${header}")
      endif()
      set_property(GLOBAL PROPERTY sweep_short_${library}_${header} ${folder}/${header})
      file(CONFIGURE OUTPUT ${short} CONTENT "#pragma once\n#include \"${folder}/${header}\"\n")
      list(APPEND short_headers ${short})
    endif()
  endforeach()
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${root} FILES ${ARGN})
  if(short_headers)
    target_sources(${target} PUBLIC FILE_SET short TYPE HEADERS BASE_DIRS ${short_directory} FILES ${short_headers})
  endif()
  # Each public header is compiled alone, by a test.
  set_target_properties(${target} PROPERTIES INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)
endfunction()

# sweep_install_library(TARGET): after all of its public headers are known.
function(sweep_install_library target)
  get_target_property(sets ${target} INTERFACE_HEADER_SETS)
  set(file_sets "")
  foreach(set IN LISTS sets)
    list(APPEND file_sets FILE_SET ${set} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sweep COMPONENT development)
  endforeach()
  install(TARGETS ${target} EXPORT sweepTargets ARCHIVE COMPONENT development ${file_sets})
endfunction()
