//===- Products.h - kernels of products, and how they may be cut -*- C++ -*-===//
//
// What measures products (dsopt -tune) makes kernels by the same means as
// compile-products, and chooses among these.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_CONVERSION_PRODUCTS_H
#define DSOPT_CONVERSION_PRODUCTS_H

#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Interfaces/Target.h"

namespace dsopt {
/// The type of a product's kernel: its range's begin and end, then flat buffers of a, b, the addend (f32)
/// and the bias if there are such, c, and the flag if it accumulates; bf16 as its bits.
mlir::FunctionType typeOfProductKernel(exec::ProductAttr product, TargetAttr target);

/// The type of the kernel that packs b for a product: its range's begin and end, b as it lies, and packed.
mlir::FunctionType typeOfPackingKernel(exec::ProductAttr product, TargetAttr target);

/// Whether a product has a kernel of its own.
bool isCompiled(exec::ProductAttr product, TargetAttr target);

/// The kernel of a product that has one: a function without a body, which product-to-loops fills; cut by
/// `blocking`, or by the model if that is null.
mlir::func::FuncOp createProductKernel(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                                       exec::ProductAttr product, TargetAttr target,
                                       exec::BlockingAttr blocking);
/// What of its work threads can share.
int64_t rangeOf(mlir::func::FuncOp kernel);

/// What the model of the processor chooses for a product that has a kernel.
exec::BlockingAttr chooseBlocking(exec::ProductAttr product, TargetAttr target);

/// Empty if a kernel of a product can be cut so: its sums fit the registers, its copies a thread's stack, and
/// it reads what lies there. Else what is wrong, lower-case.
std::string problemOf(exec::ProductAttr product, TargetAttr target, exec::BlockingAttr choice);

/// Ways to cut it other than one: blocks of every shape, copies as it has them.
llvm::SmallVector<exec::BlockingAttr> otherShapes(exec::ProductAttr product, TargetAttr target,
                                                  exec::BlockingAttr choice);
/// Blocks of its shape, with other copies, bands and requests for lines.
llvm::SmallVector<exec::BlockingAttr> otherCopies(exec::ProductAttr product, TargetAttr target,
                                                  exec::BlockingAttr choice);

/// The key of a table's choices for a product: a choice that leaves it to the library.
exec::GemmChoiceAttr choiceOf(exec::ProductAttr product);
} // namespace dsopt

#endif // DSOPT_CONVERSION_PRODUCTS_H
