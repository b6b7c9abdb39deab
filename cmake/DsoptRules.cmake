# The rules every folder uses: a dialect, a stage's passes, a library of the
# compiler, a library of the runtime, a tool. Each CMakeLists.txt is then a few lines.

# dsopt_dialect(Name [ATTRS] [TYPES] [ENUMS]): <Name>Ops.td of this folder, and <Name>Enums.td, to their .inc files
function(dsopt_dialect name)
  string(TOLOWER ${name} dialect)
  set(LLVM_TARGET_DEFINITIONS ${name}Ops.td)
  cmake_parse_arguments(ARG "ATTRS;TYPES;ENUMS" "" "" ${ARGN})
  mlir_tablegen(${name}Ops.h.inc -gen-op-decls)
  mlir_tablegen(${name}Ops.cpp.inc -gen-op-defs)
  mlir_tablegen(${name}Dialect.h.inc -gen-dialect-decls -dialect=${dialect})
  mlir_tablegen(${name}Dialect.cpp.inc -gen-dialect-defs -dialect=${dialect})
  if(ARG_ATTRS)
    mlir_tablegen(${name}Attrs.h.inc -gen-attrdef-decls -attrdefs-dialect=${dialect})
    mlir_tablegen(${name}Attrs.cpp.inc -gen-attrdef-defs -attrdefs-dialect=${dialect})
  endif()
  if(ARG_TYPES)
    mlir_tablegen(${name}Types.h.inc -gen-typedef-decls -typedefs-dialect=${dialect})
    mlir_tablegen(${name}Types.cpp.inc -gen-typedef-defs -typedefs-dialect=${dialect})
  endif()
  if(ARG_ENUMS)
    set(LLVM_TARGET_DEFINITIONS ${name}Enums.td)
    mlir_tablegen(${name}Enums.h.inc -gen-enum-decls)
    mlir_tablegen(${name}Enums.cpp.inc -gen-enum-defs)
  endif()
  add_public_tablegen_target(Dsopt${name}IncGen)
  add_dependencies(DsoptIncGen Dsopt${name}IncGen)
endfunction()

# dsopt_tablegen(Name what): <Name>.td of this folder to <Name>.{h,cpp}.inc
function(dsopt_tablegen name what)
  set(LLVM_TARGET_DEFINITIONS ${name}.td)
  mlir_tablegen(${name}.h.inc -gen-${what}-decls)
  mlir_tablegen(${name}.cpp.inc -gen-${what}-defs)
  add_public_tablegen_target(Dsopt${name}IncGen)
  add_dependencies(DsoptIncGen Dsopt${name}IncGen)
endfunction()
# Operations of a dialect, an interface, enums.
function(dsopt_operations name)
  dsopt_tablegen(${name} op)
endfunction()
function(dsopt_interface name)
  dsopt_tablegen(${name} op-interface)
endfunction()
function(dsopt_enums name)
  dsopt_tablegen(${name} enum)
endfunction()

# dsopt_attributes(Name dialect): <Name>.td of this folder, attributes and enums, to <Name>{Attrs,Enums}.{h,cpp}.inc
function(dsopt_attributes name dialect)
  set(LLVM_TARGET_DEFINITIONS ${name}.td)
  mlir_tablegen(${name}Attrs.h.inc -gen-attrdef-decls -attrdefs-dialect=${dialect})
  mlir_tablegen(${name}Attrs.cpp.inc -gen-attrdef-defs -attrdefs-dialect=${dialect})
  mlir_tablegen(${name}Enums.h.inc -gen-enum-decls)
  mlir_tablegen(${name}Enums.cpp.inc -gen-enum-defs)
  add_public_tablegen_target(Dsopt${name}IncGen)
  add_dependencies(DsoptIncGen Dsopt${name}IncGen)
endfunction()

# dsopt_passes(Stage): Passes.td of this folder to Passes.h.inc (register<Stage>Passes)
function(dsopt_passes stage)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name ${stage})
  add_public_tablegen_target(Dsopt${stage}PassesIncGen)
  add_dependencies(DsoptIncGen Dsopt${stage}PassesIncGen)
endfunction()

# The compiler itself is quick enough at -O1, and builds in half the time.
set(DSOPT_COMPILER_OPTIONS -fno-exceptions $<$<CONFIG:Release>:-O1>)

# dsopt_precompiled(Name headers...): what the sources of later dsopt_library's would each read anew
function(dsopt_precompiled name)
  file(CONFIGURE OUTPUT ${name}.cpp CONTENT "// Of ${name} there is the header alone.\n")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_compile_options(${name} PRIVATE ${DSOPT_COMPILER_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARGN})
  add_dependencies(${name} DsoptIncGen)
  set(DSOPT_PRECOMPILED ${name} PARENT_SCOPE)
endfunction()

# dsopt_library(Name sources... [LINK libs...]): a room of the compiler; part of libdsopt.so
function(dsopt_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${DSOPT_COMPILER_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM ${DSOPT_PRECOMPILED})
  add_dependencies(${name} DsoptIncGen)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  set_property(GLOBAL APPEND PROPERTY DSOPT_COMPILER_LIBRARIES ${name})
endfunction()

# dsopt_source_options("options" files...): for some sources of a library; what is precompiled was read without them
function(dsopt_source_options options)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${options}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# dsopt_runtime_library(Name sources... [LINK libs...]): a room of the runtime: no MLIR, no LLVM
function(dsopt_runtime_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(TARGET DsoptPrecompiledRuntime)
    target_precompile_headers(${name} REUSE_FROM DsoptPrecompiledRuntime)
  endif()
endfunction()

# dsopt_installed(target name): a program that is installed under a name which another one has in the build folder.
# It lies in build/installed/bin, and finds libraries beside itself when it is copied.
function(dsopt_installed target name)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/installed/bin BUILD_RPATH "$ORIGIN/../lib")
  install(TARGETS ${target})
endfunction()
