# Programs of GoogleTest tests. CTest knows each program as one test, or two if some of its tests are slow: starting a process
# for each of thousands of tests takes longer than the tests. Labels: quick, slow, gpu; tests/README.md lists all of them.
#
# sweep_add_test(PROGRAM [ONCE] SOURCES… LIBRARIES… [SLOW pattern…] [LABEL label] [TIMEOUT seconds] [ENVIRONMENT NAME=value…])
#   Builds tests/PROGRAM and adds it to CTest. SLOW: tests of it, as --gtest_filter takes them, that are no longer part of
#   the test PROGRAM, labelled quick, but of PROGRAM.slow, labelled slow. LABEL: another label than quick for all of it.
#   ONCE: with SWEEP_TESTS_ONCE it is neither built nor run.
# sweep_add_test_entry(NAME PROGRAM [SLOW…] [LABEL…] [TIMEOUT…] [ENVIRONMENT…])
#   Adds a program that there is to CTest once more, as NAME.
find_package(GTest REQUIRED)
add_custom_target(gpu_tests)    # builds every program with tests that need a GPU; tools/pack packs them
add_custom_target(quick_tests)  # builds what the tests labelled quick run

function(sweep_add_test_entry name program)
  cmake_parse_arguments(PARSE_ARGV 2 test "" "LABEL;TIMEOUT" "SLOW;ENVIRONMENT")
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 400)
  endif()
  if(SWEEP_SANITIZE)
    math(EXPR test_TIMEOUT "${test_TIMEOUT} * 10")
  endif()
  if(NOT test_LABEL)
    set(test_LABEL quick)
  endif()
  set(names ${name})
  if(test_SLOW)
    list(JOIN test_SLOW ":" slow)
    add_test(NAME ${name} COMMAND ${program} --gtest_brief=1 --gtest_filter=-${slow})
    add_test(NAME ${name}.slow COMMAND ${program} --gtest_brief=1 --gtest_filter=${slow})
    set_tests_properties(${name}.slow PROPERTIES LABELS slow COST 100)  # starts before the quick ones
    list(APPEND names ${name}.slow)
  else()
    add_test(NAME ${name} COMMAND ${program} --gtest_brief=1)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${test_LABEL})
  # A program that can run none of its tests, for want of a GPU, says "all tests". A filter that finds no test is a mistake.
  set_tests_properties(${names} PROPERTIES TIMEOUT ${test_TIMEOUT} ENVIRONMENT "${test_ENVIRONMENT}"
    SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\] all tests"
    FAIL_REGULAR_EXPRESSION "\\] 0 tests from 0 test suites ran")
  if(TARGET ${test_LABEL}_tests)
    add_dependencies(${test_LABEL}_tests ${program})
  endif()
endfunction()

# What every target of tests is compiled with.
function(sweep_set_up_test_target target)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "" "LIBRARIES")
  sweep_compile_quickly(${target})
  # -Og takes the compiler a fifth less time than -O1 does. Line numbers of tests take a tenth of its time; a debugger wants the preset dev.
  if(NOT SWEEP_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-Og>)
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-g0>)
  if(SWEEP_SANITIZE MATCHES "fuzzer")  # Fuzzers watch the libraries; to watch tests takes the compiler half as long again.
    target_compile_options(${target} PRIVATE -fno-sanitize=fuzzer-no-link)
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE SWEEP_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  target_link_libraries(${target} PRIVATE ${test_LIBRARIES} sweep_warnings GTest::gmock GTest::gtest_main)
endfunction()

function(sweep_add_test program)
  cmake_parse_arguments(PARSE_ARGV 1 test "ONCE" "LABEL;TIMEOUT" "SOURCES;LIBRARIES;SLOW;ENVIRONMENT")
  add_executable(${program} ${test_SOURCES})
  sweep_set_up_test_target(${program} LIBRARIES ${test_LIBRARIES})
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(test_ONCE AND SWEEP_TESTS_ONCE)
    set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  sweep_add_test_entry(${program} ${program} SLOW ${test_SLOW} LABEL ${test_LABEL} TIMEOUT ${test_TIMEOUT}
    ENVIRONMENT ${test_ENVIRONMENT})
endfunction()
