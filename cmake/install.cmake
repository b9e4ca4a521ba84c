# What `cmake --install build --prefix DIR` lays down: the library, its headers, the command, the
# CMake package (find_package(jitney), target jitney::jitney) and a pkg-config file. All of it finds
# its parts relative to itself, so that the tree can be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(TARGET jitney)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/jitney)

  # Before 1.0 a minor version may change the ABI.
  set_target_properties(jitney PROPERTIES VERSION ${PROJECT_VERSION}
                                          SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(jitney INTERFACE cxx_std_20)
  install(
    TARGETS jitney
    EXPORT jitney-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(DIRECTORY core/include/ api/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(
    EXPORT jitney-targets
    NAMESPACE jitney::
    DESTINATION ${package_dir})
  configure_package_config_file(cmake/jitney-config.cmake.in jitney-config.cmake
                                INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/jitney-config-version.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/jitney-config.cmake
                ${CMAKE_CURRENT_BINARY_DIR}/jitney-config-version.cmake
          DESTINATION ${package_dir})

  file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  configure_file(cmake/jitney.pc.in jitney.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/jitney.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()

if(TARGET jitney_command)
  install(TARGETS jitney_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
