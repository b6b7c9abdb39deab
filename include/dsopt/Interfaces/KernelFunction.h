//===- KernelFunction.h - the type of a host's kernel ------------*- C++ -*-===//
//
// dsopt_kernel of Runtime/ABI.h in the LLVM dialect.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_KERNELFUNCTION_H
#define DSOPT_INTERFACES_KERNELFUNCTION_H

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace dsopt {
/// The range's begin and end, and the addresses of the buffers.
inline mlir::LLVM::LLVMFunctionType kernelFunctionType(mlir::MLIRContext *context) {
  auto number = mlir::IntegerType::get(context, 64);
  return mlir::LLVM::LLVMFunctionType::get(mlir::LLVM::LLVMVoidType::get(context),
                                           {number, number, mlir::LLVM::LLVMPointerType::get(context)});
}
} // namespace dsopt

#endif // DSOPT_INTERFACES_KERNELFUNCTION_H
