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

/// The determinant of the rows from `row` on and these columns of `[batch, size, size]`: by the first of the
/// rows (Laplace).
static Value determinant(Emitter &e, Value x, int64_t row, ArrayRef<int64_t> columns) {
  Value sum;
  for (auto [i, column] : llvm::enumerate(columns)) {
    Value factor = e.slice(e.slice(x, 1, row, 1), 2, column, 1);
    SmallVector<int64_t> rest(columns);
    rest.erase(rest.begin() + i);
    Value term = rest.empty() ? factor : e.mul(factor, determinant(e, x, row + 1, rest));
    sum = !sum ? term : i % 2 ? e.sub(sum, term) : e.add(sum, term);
  }
  return sum;
}

/// Matrices up to this size: terms grow with the factorial.
static constexpr int64_t kMaxDeterminant = 4;

static LogicalResult det(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0);
  if (!x)
    return failure();
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2] || shape.back() < 1 ||
      shape.back() > kMaxDeterminant || !isa<FloatType>(Emitter::elementOf(x)))
    return n.error() << "has an input of type " << Emitter::typeOf(x)
                     << ", expected square matrices of floating point, of 1 to " << kMaxDeterminant
                     << " rows";
  int64_t size = shape.back(), batch = ShapedType::getNumElements(shape.drop_back(2));
  SmallVector<int64_t> columns = llvm::to_vector(llvm::seq<int64_t>(0, size));
  Value result = determinant(e, e.reshape(x, {batch, size, size}), 0, columns);
  return n.set(0, e.reshape(result, shape.drop_back(2)));
}

ArrayRef<OpRow> productOps() {
  static const OpRow rows[] = {
      {"Det", 11, kMaxOpset, det},
      {"Gemm", 7, kMaxOpset, gemm},
      {"MatMul", 1, kMaxOpset, matMul},
  };
  return rows;
}

} // namespace dsopt::onnx_import
