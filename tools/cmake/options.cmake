# Build type, warnings, sanitizers and output folders shared by every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
# Where tools/pack puts the libraries for machines without them; also for the libraries' own ones (DT_RPATH).
set(CMAKE_BUILD_RPATH "$ORIGIN/../lib")
# Where tools/release puts those that a system may lack.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib/sweep")
add_link_options(-Wl,--disable-new-dtags)

option(SWEEP_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(SWEEP_TESTS_ONCE "Leave out the unit tests that .ci/run runs under the sanitizers and that gain nothing by a second compiler" OFF)
option(SWEEP_TEST_CUDA_ON_HOST "Also build and run the CUDA engine on the host, and build the benchmarks" OFF)
option(SWEEP_WERROR "Treat warnings as errors" OFF)
set(SWEEP_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them: address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
# -O3 and no assertions, with line numbers for perf: what users get is what is profiled.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -g1 -DNDEBUG")

# A multiplication and an addition stay two operations, as on x86, whose compilers have no fused one unless told. So initial weights, data and
# statistics are the same everywhere; kernels fuse where they say so.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  add_compile_options(-ffp-contract=off)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# mold links a test program in a fifth of ld's time; GCC knows its name from version 12 on.
find_program(SWEEP_MOLD mold)
if(SWEEP_MOLD AND NOT (CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12))
  add_link_options(-fuse-ld=mold)
endif()

# Most of what the compiler does for a source is reading headers that its neighbours read as well. (Precompiled headers save a tenth at most,
# and GCC 12 then warns of overflows that there are not.)
option(SWEEP_JOIN_SOURCES "Compile the sources of a folder together where that saves time" OFF)
# Without its garbage collector GCC compiles joined sources in 13 % less time, with up to 1.9 GB of memory, which tools/common.sh counts with.
cmake_host_system_information(RESULT sweep_memory QUERY TOTAL_PHYSICAL_MEMORY)
if(SWEEP_JOIN_SOURCES AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND sweep_memory GREATER 7000)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=3000000>)
endif()
# sweep_join_by_folder(TARGET [EXCEPT folder]): compiles the target's sources of each folder and the folders in it together, down from the
# second level of the project, except those below `folder`. To be called after all of its sources are known.
function(sweep_join_by_folder target)
  cmake_parse_arguments(PARSE_ARGV 1 join "" "EXCEPT" "")
  if(NOT SWEEP_JOIN_SOURCES)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    string(REPLACE "${PROJECT_SOURCE_DIR}/" "" folder "${folder}/")
    if(NOT join_EXCEPT OR NOT folder MATCHES "^${join_EXCEPT}/")
      string(REGEX MATCH "^[^/]*/([^/]*/)?" folder "${folder}")
      string(MAKE_C_IDENTIFIER "${folder}" group)
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
endfunction()
# sweep_compile_quickly(TARGET [BY_FOLDER]): for what computes little itself. Joins its sources, those of each folder or ten at a time, which
# halves the compiler's time, and optimizes by -O1, which takes a quarter less than -O3. (-Og would take a fifth less again, but
# reading of records half as long again.)
function(sweep_compile_quickly target)
  cmake_parse_arguments(PARSE_ARGV 1 join "BY_FOLDER" "" "")
  if(join_BY_FOLDER)
    sweep_join_by_folder(${target})
  elseif(SWEEP_JOIN_SOURCES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10)
  endif()
  if(NOT SWEEP_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
  endif()
endfunction()

# Linked PRIVATE inside $<BUILD_INTERFACE:...>, so that users of the libraries keep their own warnings.
add_library(sweep_warnings INTERFACE)
target_compile_options(sweep_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wconversion -Wno-sign-conversion>
  # Clang warns of nested aggregates without inner braces, of names that joined sources share, and of long embedded files.
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-missing-braces -Wno-shadow -Wno-unused-const-variable -Wno-overlength-strings>
  # GCC 12 reports every "text" + std::string at -O3 (its bug 105651).
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${SWEEP_WERROR}>>:-Werror>)

if(SWEEP_SANITIZE)
  string(REPLACE "," ";" sanitizers ${SWEEP_SANITIZE})
  # -O0 comes after the build type's -O3: the checks are the same, and -O1 would take the compiler twice as long. What computes
  # gets -O1 or -O2, in CMakeLists.txt of the project.
  add_compile_options(-fsanitize=${SWEEP_SANITIZE} -fno-omit-frame-pointer -O0)
  if("undefined" IN_LIST sanitizers)
    # Checks at every access through a pointer, which take a quarter of the compiler's time. What computes has that of
    # alignment all the same; a null pointer ends the program anyway.
    add_compile_options(-fno-sanitize=null,alignment,vptr,object-size)
    set(sweep_computing_sanitizers -fsanitize=alignment)
  endif()
  add_link_options(-fsanitize=${SWEEP_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)  # GCC defines these itself
    foreach(sanitizer IN ITEMS address thread)
      if(sanitizer IN_LIST sanitizers)
        string(TOUPPER ${sanitizer} macro)
        add_compile_definitions(__SANITIZE_${macro}__)
      endif()
    endforeach()
  endif()
endif()
