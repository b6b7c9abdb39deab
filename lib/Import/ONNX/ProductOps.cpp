//===- ProductOps.cpp - matrix products -----------------------------------===//

#include "OpTable.h"

using namespace mlir;

namespace dsopt::onnx_import {

static LogicalResult matMul(NodeBuilder &n) {
  Value lhs = n.input(0), rhs = n.input(1);
  return n.set(0, n.e.matmul(lhs, rhs));
}

static LogicalResult gemm(NodeBuilder &n) {
  Value lhs = n.input(0), rhs = n.input(1);
  if (!lhs || !rhs)
    return failure();
  if (Emitter::rankOf(lhs) != 2 || Emitter::rankOf(rhs) != 2)
    return n.error() << "multiplies " << Emitter::typeOf(lhs) << " by " << Emitter::typeOf(rhs)
                     << ", expected two matrices";
  SmallVector<NamedAttribute> flags;
  if (n.integerAttr("transA", 0))
    flags.push_back(n.e.flag("transpose_a"));
  if (n.integerAttr("transB", 0))
    flags.push_back(n.e.flag("transpose_b"));
  Value result = n.e.make<graph::MatMulOp>({lhs, rhs}, flags);
  auto scaled = [&](Value value, double factor) {
    if (!value || factor == 1)
      return value;
    return n.e.make<graph::MulOp>({value, n.e.splat(Emitter::elementOf(value), factor)});
  };
  result = scaled(result, n.floatAttr("alpha", 1));
  double beta = n.floatAttr("beta", 1);
  if (!n.has(2) || beta == 0)
    return n.set(0, result);
  Value sum = n.e.make<graph::AddOp>({result, scaled(n.input(2), beta)});
  if (sum && Emitter::typeOf(sum) != Emitter::typeOf(result))
    return n.error() << "adds " << Emitter::typeOf(n.input(2)) << " to a product of type "
                     << Emitter::typeOf(result) << ", expected a shape that broadcasts to it";
  return n.set(0, sum);
}

ArrayRef<OpRow> productOps() {
  static const OpRow rows[] = {
      {"Gemm", 13, kMaxOpset, gemm},
      {"MatMul", 13, kMaxOpset, matMul},
  };
  return rows;
}

} // namespace dsopt::onnx_import
