//===- Exec.h - the exec dialect: when it runs ------------------*- C++ -*-===//
//
// The one header of the dialect. See ExecOps.td for what it means.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_EXEC_EXEC_H
#define DSOPT_DIALECT_EXEC_EXEC_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/ActionContext.h"
#include "dsopt/Interfaces/Enums.h"
#include "dsopt/Interfaces/Reductions.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace dsopt::exec {
/// On a function: it is a segment; its arguments are buffers.
inline constexpr llvm::StringLiteral kSegmentAttr = "exec.segment";
/// The module in which nest-kernels puts the kernels of the module's own target.
inline constexpr llvm::StringLiteral kKernelsModule = "kernels";
/// On a function in a module of kernels: the product that it is compiled for (ProductAttr).
inline constexpr llvm::StringLiteral kProductAttr = "exec.product";
/// Beside it, where a table decides: how it is cut (BlockingAttr).
inline constexpr llvm::StringLiteral kBlockingAttr = "exec.blocking";
/// On the function of a kernel that packs b for its product.
inline constexpr llvm::StringLiteral kPacksAttr = "exec.packs";
/// On the module: what decides so (GemmTableAttr).
inline constexpr llvm::StringLiteral kGemmTableAttr = "exec.gemm_table";
/// The module in which copy-host-kernels puts what a device's program runs on its host.
inline constexpr llvm::StringLiteral kHostKernelsModule = "host_kernels";
/// On a segment: bytes of scratch it needs (i64).
inline constexpr llvm::StringLiteral kTempAttr = "exec.temp_bytes";
/// On a segment's argument: what it does with it (AccessModeAttr).
inline constexpr llvm::StringLiteral kAccessAttr = "exec.access";
/// On the module: what calls of the runtime there are, a dictionary each; on a
/// segment: which of them it makes, in order (see describe-calls).
inline constexpr llvm::StringLiteral kCallsAttr = "exec.calls";
/// Of a device's kernel, lowered: elements of its range that a block does at a time.
inline constexpr llvm::StringLiteral kPerBlockAttr = "exec.per_block";
/// On the module: the index into them of each update kernel, by its name.
inline constexpr llvm::StringLiteral kUpdateCallsAttr = "exec.update_calls";
} // namespace dsopt::exec

#include "dsopt/Dialect/Exec/ExecDialect.h.inc"
#include "dsopt/Dialect/Exec/ExecEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dsopt/Dialect/Exec/ExecTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dsopt/Dialect/Exec/ExecAttrs.h.inc"

namespace dsopt::exec {
/// Whether what is counted so is of values, by their axis, and not of buckets.
inline bool isOfValues(Traffic traffic) {
  return traffic == Traffic::TensorParallel || traffic == Traffic::SequenceParallel;
}

/// What an action moves between ranks or memories.
struct MovedBytes {
  RefAttr value;                       ///< what is moved; of a collective the whole
  int64_t bytes;                       ///< of a collective those that go to each other member
  std::optional<Traffic> traffic = {}; ///< as what a sender counts them
  std::optional<int64_t> logical = {}; ///< bytes that compressed ones stand for
  bool apart = false;                  ///< each other member is sent a part of its own
  bool toNext = false;                 ///< of a collective: one other member is sent any
};
} // namespace dsopt::exec

#include "dsopt/Dialect/Exec/ActionInterfaces.h.inc"
#include "dsopt/Dialect/Exec/ProductCallOpInterface.h.inc"
#define GET_OP_CLASSES
#include "dsopt/Dialect/Exec/ExecOps.h.inc"

#endif // DSOPT_DIALECT_EXEC_EXEC_H
