# What find_package(sweep) needs: the targets, the packages they link, and the version.
include(CMakePackageConfigHelpers)
set(sweep_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sweep)
install(EXPORT sweepTargets NAMESPACE sweep:: DESTINATION ${sweep_config_dir} COMPONENT development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/sweepConfig.cmake.in ${PROJECT_BINARY_DIR}/sweepConfig.cmake
  INSTALL_DESTINATION ${sweep_config_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sweepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sweepConfig.cmake ${PROJECT_BINARY_DIR}/sweepConfigVersion.cmake
  DESTINATION ${sweep_config_dir} COMPONENT development)

# Each package has the licence where Debian's have theirs.
foreach(package IN ITEMS program=sweep-runner mpi=sweep-runner-mpi development=libsweep-dev)
  string(REGEX MATCH "(.+)=(.+)" matched ${package})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CMAKE_MATCH_2} RENAME copyright
    COMPONENT ${CMAKE_MATCH_1})
endforeach()

# Debian packages, which tools/release makes: the program, its module for MPI, and what programs of others are built with.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the developers of sweep")
set(CPACK_COMPONENTS_ALL program development)
if(SWEEP_HAVE_MPI)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME sweep-runner)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONFLICTS "sweep")  # an audio editor, whose program has the same path
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "dataset-fashion-mnist")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "${PROJECT_DESCRIPTION}")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "ca-certificates, curl")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME sweep-runner-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "sweep-runner (= ${PROJECT_VERSION})")  # tools/release gives the whole version
set(CPACK_COMPONENT_MPI_DESCRIPTION "Module of sweep-runner for trainings on several machines by Open MPI")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libsweep-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "nlohmann-json3-dev, libfmt-dev, libhwy-dev, libprotobuf-dev, zlib1g-dev, nettle-dev, libjpeg-dev, libspng-dev, libisal-dev, libwebp-dev, libzip-dev, libyaml-cpp-dev, libpcre2-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Libraries and headers of sweep, for programs with trainings of their own")
include(CPack)
