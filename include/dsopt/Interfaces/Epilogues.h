//===- Epilogues.h - products with an epilogue ------------------*- C++ -*-===//
//
// What graph.matmul_epilogue and exec.gemm_epilogue have in common.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_EPILOGUES_H
#define DSOPT_INTERFACES_EPILOGUES_H

#include "dsopt/Runtime/Epilogue.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Value.h"

#include <array>

#include "dsopt/Interfaces/Epilogue.h.inc"

namespace dsopt {
/// Whether it adds a bias, which is then what it is given; else it is given what an activation had.
inline bool addsBias(Epilogue kind) { return kind != Epilogue::GeluGrad; }

/// M, N and K of a product of two matrices.
template <typename Op> std::array<int64_t, 3> extentsOf(Op op) {
  auto a = mlir::cast<mlir::ShapedType>(op.getLhs().getType()),
       b = mlir::cast<mlir::ShapedType>(op.getRhs().getType());
  return {a.getDimSize(op.getTransposeA() ? 1 : 0), b.getDimSize(op.getTransposeB() ? 0 : 1),
          a.getDimSize(op.getTransposeA() ? 0 : 1)};
}

/// One element type, matrices that fit, a contraction that is added up in one piece, and what the kind takes.
template <typename Op> mlir::LogicalResult verifyEpilogue(Op op) {
  auto typeOf = [](mlir::Value value) { return mlir::cast<mlir::ShapedType>(value.getType()); };
  mlir::ShapedType a = typeOf(op.getLhs()), b = typeOf(op.getRhs()), c = typeOf(op.getResult()),
                   given = typeOf(op.getGiven());
  if (a.getRank() != 2 || b.getRank() != 2 || c.getRank() != 2)
    return op.emitOpError("multiplies ") << a << " by " << b << " to " << c << ", expected matrices";
  auto [m, n, k] = extentsOf(op);
  if (int64_t other = b.getDimSize(op.getTransposeB() ? 1 : 0); other != k)
    return op.emitOpError("contracts ") << k << " with " << other << " elements, expected equal sizes";
  int64_t matrix[] = {m, n};
  if (c.getShape() != llvm::ArrayRef(matrix))
    return op.emitOpError("has a result of type ") << c << ", expected a " << m << "x" << n << " matrix";
  if (llvm::ArrayRef expected = llvm::ArrayRef(matrix).drop_front(addsBias(op.getKind()));
      given.getShape() != expected)
    return op.emitOpError("is given ") << given << ", expected a value of shape [" << expected << "]";
  mlir::Value kept = op.getPreActivation();
  if (kept && (op.getKind() != Epilogue::BiasGelu || typeOf(kept).getShape() != c.getShape()))
    return op.emitOpError("keeps ") << kept.getType() << ", expected "
                                    << (op.getKind() == Epilogue::BiasGelu ? "the shape of its result"
                                                                           : "nothing but with gelu");
  for (mlir::Value other :
       std::initializer_list<mlir::Value>{op.getRhs(), op.getResult(), op.getGiven(), kept})
    if (other && typeOf(other).getElementType() != a.getElementType())
      return op.emitOpError("has values of types ")
             << a << " and " << other.getType() << ", expected one element type";
  if (a.getElementType().isF64() || dsopt_device_product_has_chunks(k, DSOPT_F32))
    return op.emitOpError("adds up ")
           << k << " elements of " << a.getElementType() << ", expected sums of fp32 in one piece";
  if ((kept || !addsBias(op.getKind())) && n % DSOPT_EPILOGUE_COLUMNS)
    return op.emitOpError("has ") << n << " columns, expected a multiple of " << int(DSOPT_EPILOGUE_COLUMNS)
                                  << " where an activation's operand is kept or given";
  return mlir::success();
}
} // namespace dsopt

#endif // DSOPT_INTERFACES_EPILOGUES_H
