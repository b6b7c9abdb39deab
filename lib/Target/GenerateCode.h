//===- GenerateCode.h - bitcode to machine code, by LLVM --------*- C++ -*-===//
//
// All that happens to a group between its LLVM IR and its object, so that both
// follow from the IR, the target, LLVM and this file alone.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TARGET_GENERATECODE_H
#define DSOPT_LIB_TARGET_GENERATECODE_H

#include "dsopt/Target/Target.h"

#include "llvm/Target/TargetMachine.h"

namespace dsopt {
/// Null with `error` set where LLVM does not know the triple, the processor or a feature.
std::unique_ptr<llvm::TargetMachine> createMachine(TargetAttr target, unsigned optLevel, std::string &error);

/// The object, or PTX, of a module, in a context of its own. Null with `error` set.
std::unique_ptr<llvm::MemoryBuffer> generateCode(llvm::ArrayRef<char> bitcode, llvm::TargetMachine &machine,
                                                 unsigned optLevel, std::string &error);
} // namespace dsopt

#endif // DSOPT_LIB_TARGET_GENERATECODE_H
