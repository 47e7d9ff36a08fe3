# sweep_add_test(NAME SOURCES… LIBRARIES… [LABELS…] [TIMEOUT seconds] [PREFIX text] [ENVIRONMENT NAME=value…]): one
# GoogleTest program, each test of it known to CTest, as PREFIX and its name.
# sweep_discover_again(NAME …): makes the tests of a program known once more, under another prefix.
find_package(GTest REQUIRED)
include(GoogleTest)
add_custom_target(gpu_tests)  # builds every program with tests that need a GPU; tools/pack takes them along
function(sweep_discover_again name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "TIMEOUT;PREFIX" "LABELS;ENVIRONMENT")
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 400)
  endif()
  if(SWEEP_SANITIZE)
    math(EXPR test_TIMEOUT "${test_TIMEOUT} * 10")
  endif()
  if(NOT test_LABELS)
    set(test_LABELS cpu)
  endif()
  if("gpu" IN_LIST test_LABELS)
    add_dependencies(gpu_tests ${name})
  endif()
  gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 TEST_PREFIX "${test_PREFIX}"
    TEST_LIST ${name}_${test_PREFIX}TESTS
    PROPERTIES LABELS "${test_LABELS}" TIMEOUT ${test_TIMEOUT} ENVIRONMENT "${test_ENVIRONMENT}")
endfunction()

function(sweep_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "" "SOURCES;LIBRARIES;LABELS;TIMEOUT;PREFIX;ENVIRONMENT")
  add_executable(${name} ${test_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE SWEEP_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  target_link_libraries(${name} PRIVATE ${test_LIBRARIES} sweep_warnings GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  sweep_discover_again(${name} LABELS ${test_LABELS} TIMEOUT ${test_TIMEOUT} PREFIX ${test_PREFIX} ENVIRONMENT ${test_ENVIRONMENT})
endfunction()
