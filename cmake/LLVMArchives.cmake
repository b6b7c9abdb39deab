# LLVM and MLIR as archives, which become part of what is linked with them. Of three shared libraries, most of a start of
# dsopt went into their symbols.
file(GLOB archives ${LLVM_LIBRARY_DIR}/libMLIR*.a ${LLVM_LIBRARY_DIR}/libLLVM*.a)
list(FILTER archives EXCLUDE REGEX "CAPI|Test")
foreach(target ${LLVM_TARGETS_TO_BUILD})
  if(NOT target MATCHES "^(${LLVM_NATIVE_ARCH}|NVPTX)$")
    list(FILTER archives EXCLUDE REGEX "/libLLVM${target}[A-Z]")
  endif()
endforeach()
if(NOT "${archives}" MATCHES "/libMLIRIR.a" OR NOT "${archives}" MATCHES "/libLLVM${LLVM_NATIVE_ARCH}CodeGen.a")
  message(FATAL_ERROR "${LLVM_LIBRARY_DIR} lacks the archives of LLVM or MLIR (libLLVM*.a, libMLIR*.a): "
    "install llvm-${LLVM_VERSION_MAJOR}-dev and libmlir-${LLVM_VERSION_MAJOR}-dev")
endif()
find_package(ZLIB REQUIRED)
add_library(DsoptLLVM INTERFACE)
target_link_libraries(DsoptLLVM INTERFACE ${archives} -Wl,--as-needed ZLIB::ZLIB zstd -Wl,--no-as-needed ${CMAKE_DL_LIBS})

# What makes machine code of LLVM's IR, by content.
list(FILTER archives INCLUDE REGEX "/libLLVM")
set(DSOPT_LLVM_SUM "")
foreach(archive ${archives})
  file(MD5 ${archive} sum)
  string(APPEND DSOPT_LLVM_SUM ${sum})
endforeach()
string(MD5 DSOPT_LLVM_SUM "${DSOPT_LLVM_SUM}")
