# Unit tests as tests of lit, so that one scheduler has them all: a file with a RUN line each, in units/ of the build.

# dsopt_unit_test(name program arguments... [ENVIRONMENT NAME=VALUE...] [TIMEOUT seconds]): a target of this build, or
# another program, that has to end with 0. NIGHTLY: only ./dev nightly runs it. The target dsopt-units-nightly has its
# program, dsopt-units those of all others.
function(dsopt_unit_test name program)
  # Where there are threads.
  if(DSOPT_SANITIZE STREQUAL "thread" AND NOT name MATCHES "^DsoptRuntime(Core|Comm)Test$")
    return()
  endif()
  cmake_parse_arguments(ARG "NIGHTLY" "TIMEOUT" "ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set(suffix test)
  set(programs dsopt-units)
  if(ARG_NIGHTLY OR DSOPT_SANITIZE AND NOT name IN_LIST DSOPT_SANITIZED_SAMPLE)
    set(suffix nightly)
    set(programs dsopt-units-nightly)
  endif()
  if(TARGET ${program})
    add_dependencies(${programs} ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  if(DSOPT_SANITIZE)
    # Open MPI is not theirs to judge, and three ranks have all threads that there are.
    list(APPEND ARG_ENVIRONMENT "GTEST_FILTER=-*MPI*:*4:*5:*8" ASAN_OPTIONS=detect_leaks=0)
  endif()
  # Quoted: filters have stars.
  list(TRANSFORM ARG_ENVIRONMENT REPLACE "(.+)" "'\\1'")
  list(TRANSFORM ARG_UNPARSED_ARGUMENTS REPLACE "(.+)" "'\\1'")
  list(JOIN ARG_ENVIRONMENT " " environment)
  list(JOIN ARG_UNPARSED_ARGUMENTS " " arguments)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/units/${name}.${suffix}
    CONTENT "RUN: env ${environment} timeout ${ARG_TIMEOUT} ${program} ${arguments}\n")
endfunction()

# dsopt_compiler_test(Name sources... [LINK libs...] [INCLUDE folders...]): GoogleTests of a room of the compiler. They are
# compiled as it is, with what it has precompiled.
function(dsopt_compiler_test name)
  cmake_parse_arguments(ARG "" "" "LINK;INCLUDE" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${DSOPT_COMPILER_OPTIONS} -fPIC)
  target_include_directories(${name} PRIVATE ${ARG_INCLUDE})
  target_precompile_headers(${name} REUSE_FROM DsoptPrecompiledDialects)
  add_dependencies(${name} DsoptIncGen)
  target_link_libraries(${name} PRIVATE dsopt ${ARG_LINK} GTest::gtest GTest::gtest_main)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  dsopt_unit_test(${name} ${name} --gtest_brief=1)
endfunction()

# The suite of this build, with the configuration that all of its tests share. Of a build with sanitizers, ./dev test runs
# a sample: without tests that start processes, and without fuzzers.
set(DSOPT_SANITIZED_SAMPLE DsoptRuntimeSystemTest DsoptRuntimeCoreTest DsoptRuntimeCommTest DsoptRuntimeWireTest
  DsoptRuntimeRendezvousTest DsoptRuntimeDataTest DsoptRuntimeTextTest DsoptRuntimeGenerateTest DsoptRuntimeCheckpointTest)
function(dsopt_unit_suite)
  add_custom_target(dsopt-units)
  add_custom_target(dsopt-units-nightly)
  configure_file(${PROJECT_SOURCE_DIR}/tools/dev/units.cfg.py.in ${CMAKE_BINARY_DIR}/units/lit.site.cfg.py @ONLY)
endfunction()
