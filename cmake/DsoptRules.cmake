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

# dsopt_operations(Name): <Name>.td of this folder, operations of a dialect, to <Name>.{h,cpp}.inc
function(dsopt_operations name)
  set(LLVM_TARGET_DEFINITIONS ${name}.td)
  mlir_tablegen(${name}.h.inc -gen-op-decls)
  mlir_tablegen(${name}.cpp.inc -gen-op-defs)
  add_public_tablegen_target(Dsopt${name}IncGen)
  add_dependencies(DsoptIncGen Dsopt${name}IncGen)
endfunction()

# dsopt_interface(Name): include/dsopt/Interfaces/<Name>.td to <Name>.{h,cpp}.inc
function(dsopt_interface name)
  set(LLVM_TARGET_DEFINITIONS ${name}.td)
  mlir_tablegen(${name}.h.inc -gen-op-interface-decls)
  mlir_tablegen(${name}.cpp.inc -gen-op-interface-defs)
  add_public_tablegen_target(Dsopt${name}IncGen)
  add_dependencies(DsoptIncGen Dsopt${name}IncGen)
endfunction()

# dsopt_enums(Name): <Name>.td of this folder to <Name>.{h,cpp}.inc
function(dsopt_enums name)
  set(LLVM_TARGET_DEFINITIONS ${name}.td)
  mlir_tablegen(${name}.h.inc -gen-enum-decls)
  mlir_tablegen(${name}.cpp.inc -gen-enum-defs)
  add_public_tablegen_target(Dsopt${name}IncGen)
  add_dependencies(DsoptIncGen Dsopt${name}IncGen)
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

# dsopt_library(Name sources... [LINK libs...]): a room of the compiler; part of libdsopt.so
function(dsopt_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  # The compiler itself is quick enough at -O1, and builds in half the time.
  target_compile_options(${name} PRIVATE -fno-exceptions $<$<CONFIG:Release>:-O1>)
  add_dependencies(${name} DsoptIncGen)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  set_property(GLOBAL APPEND PROPERTY DSOPT_COMPILER_LIBRARIES ${name})
endfunction()

# dsopt_runtime_library(Name sources... [LINK libs...]): a room of the runtime: no MLIR, no LLVM
function(dsopt_runtime_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
endfunction()
