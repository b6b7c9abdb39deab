//===- GraphTiling.cpp - products in parts --------------------------------===//

#include "GraphSupport.h"
#include "dsopt/Dialect/Graph/Layouts.h"
#include "dsopt/Dialect/Graph/NarrowFloat.h"
#include "dsopt/Dialect/Graph/Tiling.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Runtime/Gemm.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

namespace {
struct TileableMatMul : TileableOpInterface::ExternalModel<TileableMatMul, MatMulOp> {
  /// The library's calls for a part can be those for the whole where rows are apart in memory, and the
  /// result is a value of its own.
  bool canBeCut(Operation *op) const {
    auto isMatrix = [](Value value) {
      ArrayRef<int64_t> shape = tensorType(value).getShape();
      return shape.size() == 2 && shape[0] > 1 && shape[1] > 1;
    };
    Type type = getElementTypeOrSelf(op->getOperand(0).getType());
    Value result = op->getResult(0);
    return llvm::all_of(op->getOperands(), isMatrix) && isMatrix(result) &&
           (type.isF32() || isNarrowFloat(type)) && locate(result).root == result;
  }

  static int64_t getCutUnit() { return DSOPT_GEMM_CHUNK; }

  Cut getCut(Operation *op, unsigned operand) const {
    auto product = cast<MatMulOp>(op);
    if (operand == 0)
      return product.getTransposeA() ? Cut::K : Cut::M;
    return product.getTransposeB() ? Cut::N : Cut::K;
  }

  Value buildPart(Operation *op, OpBuilder &builder, const ProductPart &part) const {
    auto product = cast<MatMulOp>(op);
    bool ta = product.getTransposeA(), tb = product.getTransposeB();
    Value operands[] = {product.getLhs(), product.getRhs()};
    auto show = [&](unsigned operand, int64_t axis) {
      if (operand == part.operand)
        return;
      SmallVector<int64_t> sizes(tensorType(operands[operand]).getShape()), starts(2, 0), steps(2, 1);
      starts[axis] = part.begin;
      sizes[axis] = part.size;
      operands[operand] =
          SliceOp::create(builder, op->getLoc(), operands[operand], starts, sizes, steps, View::Read);
    };
    RankedTensorType type = product.getType();
    int64_t m = type.getDimSize(0), n = type.getDimSize(1),
            k = tensorType(operands[0]).getDimSize(ta ? 0 : 1);
    SmallVector<int64_t> whole{m, n, k};
    if (part.operand >= 0)
      operands[part.operand] = part.tile;
    if (part.cut != Cut::N)
      show(0, (part.cut == Cut::K) != ta ? 1 : 0);
    if (part.cut != Cut::M)
      show(1, (part.cut == Cut::N) != tb ? 1 : 0);
    if (part.cut == Cut::M)
      m = part.size;
    if (part.cut == Cut::N)
      n = MatMulPartOp::paddedColumns(part.size, n);
    Type element = part.cut == Cut::K && !part.isLast ? builder.getF32Type() : type.getElementType();
    return MatMulPartOp::create(builder, op->getLoc(), RankedTensorType::get({m, n}, element), operands[0],
                                operands[1], part.addend, ta, tb, builder.getDenseI64ArrayAttr(whole));
  }
};
} // namespace

void dsopt::graph::registerTiling(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, GraphDialect *) { MatMulOp::attachInterface<TileableMatMul>(*context); });
}
