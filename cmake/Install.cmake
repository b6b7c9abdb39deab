# The install tree: tools, the compiler's library with its headers, the package
# that find_package(dsopt) finds.
include(CMakePackageConfigHelpers)
install(TARGETS dsopt dsopt-opt
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(tree ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  install(DIRECTORY ${tree}/include/dsopt DESTINATION include
    FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.def" PATTERN "*.inc" PATTERN "CMakeFiles" EXCLUDE)
endforeach()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/dsopt DESTINATION ${CMAKE_INSTALL_DATADIR}/dsopt/python
  FILES_MATCHING PATTERN "*.py" PATTERN "py.typed")
set(MLIR_VERSION_MAJOR_MINOR ${LLVM_VERSION_MAJOR}.${LLVM_VERSION_MINOR})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/dsoptConfig.cmake.in ${CMAKE_BINARY_DIR}/dsoptConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dsopt)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/dsoptConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/dsoptConfig.cmake ${CMAKE_BINARY_DIR}/dsoptConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dsopt)
