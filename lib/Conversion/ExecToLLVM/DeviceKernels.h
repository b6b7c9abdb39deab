//===- DeviceKernels.h - what launches know of kernels ----------*- C++ -*-===//

#ifndef DSOPT_LIB_CONVERSION_EXECTOLLVM_DEVICEKERNELS_H
#define DSOPT_LIB_CONVERSION_EXECTOLLVM_DEVICEKERNELS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace dsopt {
/// What launches on a device know of its kernels (dsopt_device_kernel), one global for each under its name.
class DeviceKernels {
public:
  explicit DeviceKernels(mlir::SymbolTable &symbols) : symbols(symbols) {}

  llvm::LogicalResult declare(mlir::ModuleOp kernels);
  mlir::LLVM::GlobalOp find(mlir::SymbolRefAttr kernel) const { return globals.lookup(kernel); }

private:
  llvm::LogicalResult declare(mlir::LLVM::LLVMFuncOp kernel, int64_t perBlock);
  mlir::LLVM::GlobalOp nameOf(mlir::LLVM::LLVMFuncOp kernel);

  mlir::SymbolTable &symbols;
  llvm::DenseMap<mlir::Attribute, mlir::LLVM::GlobalOp> globals; ///< by the kernel's reference
};

} // namespace dsopt

#endif // DSOPT_LIB_CONVERSION_EXECTOLLVM_DEVICEKERNELS_H
