//===- ThreadLoops.h - a kernel's loops on a device's threads ---*- C++ -*-===//
//
// The same kernels as on a processor, over the same buffers; blocks of threads take the
// place of loops. A grid of any size does a range: a block goes on by as many rows or
// elements as the grid does at once.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_CONVERSION_KERNELTONVVM_THREADLOOPS_H
#define DSOPT_LIB_CONVERSION_KERNELTONVVM_THREADLOOPS_H

#include "KernelToLLVM/KernelEmitter.h"

#include "dsopt/Dialect/Graph/Graph.h"

namespace dsopt {

/// Threads of a warp.
inline constexpr int64_t kWarp = 32;
/// Threads of a block, at most.
inline constexpr int64_t kMostThreads = 256;

/// What blocks share: a buffer for each element type, declared in the module when first asked for.
class SharedBuffers {
public:
  SharedBuffers(mlir::ModuleOp module, mlir::func::FuncOp function) : module(module), function(function) {}
  /// One element for each of a block's threads, or warps. Users are apart by barriers.
  mlir::Value get(KernelEmitter &emitter, mlir::Type elementType, int64_t elements);

private:
  mlir::ModuleOp module;
  mlir::func::FuncOp function;
};

/// Threads of a block of the kernel: the more the longer a row is.
int64_t blockThreads(mlir::func::FuncOp function, graph::Iteration iteration, int64_t rowDims);

/// Fill a kernel's new body. Fail with a message where a reduction is not of one operation on one value.
llvm::LogicalResult emitRowsOnThreads(KernelEmitter &emitter, llvm::ArrayRef<int64_t> range, int64_t threads,
                                      SharedBuffers &shared);
llvm::LogicalResult emitColumnsOnThreads(KernelEmitter &emitter, llvm::ArrayRef<int64_t> range,
                                         int64_t threads, SharedBuffers &shared);
void emitFlatOnThreads(KernelEmitter &emitter, int64_t threads);

} // namespace dsopt

#endif // DSOPT_LIB_CONVERSION_KERNELTONVVM_THREADLOOPS_H
