# What find_package(sweep) needs: the targets, the packages they link, and the version.
include(CMakePackageConfigHelpers)
set(sweep_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sweep)
install(EXPORT sweepTargets NAMESPACE sweep:: DESTINATION ${sweep_config_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/sweepConfig.cmake.in ${PROJECT_BINARY_DIR}/sweepConfig.cmake
  INSTALL_DESTINATION ${sweep_config_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sweepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sweepConfig.cmake ${PROJECT_BINARY_DIR}/sweepConfigVersion.cmake
  DESTINATION ${sweep_config_dir})
