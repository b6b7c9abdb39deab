//===- GraphMathShapes.cpp - result types of elementwise ops, products, sums -===//
//
// What an operation's operands and attributes must be, and the types of its
// results. Shape rules of data movement are in GraphMovementShapes.cpp.
//
//===----------------------------------------------------------------------===//

#include "GraphSupport.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

FailureOr<SmallVector<int64_t>> dsopt::graph::broadcastShapes(ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs) {
  SmallVector<int64_t> shape(std::max(lhs.size(), rhs.size()));
  for (size_t i = 0; i < shape.size(); ++i) {
    // From the last dimension on; missing dimensions count as 1.
    int64_t a = i < lhs.size() ? lhs[lhs.size() - 1 - i] : 1;
    int64_t b = i < rhs.size() ? rhs[rhs.size() - 1 - i] : 1;
    if (a != b && a != 1 && b != 1)
      return failure();
    shape[shape.size() - 1 - i] = a == 1 ? b : a;
  }
  return shape;
}

namespace {
/// Which element types an operation takes.
enum class Domain { Any, Number, Float, Bits, Bool };

LogicalResult checkDomain(std::optional<Location> location, StringRef name, Domain domain, Type element) {
  bool isBool = element.isInteger(1);
  switch (domain) {
  case Domain::Any:
    return success();
  case Domain::Number:
    return isBool ? shapeError(location, name, "has operands of element type ", element, ", expected numbers")
                  : success();
  case Domain::Float:
    return isa<FloatType>(element) ? success()
                                   : shapeError(location, name, "has operands of element type ", element,
                                                ", expected floating point");
  case Domain::Bits:
    return isa<IntegerType>(element) ? success()
                                     : shapeError(location, name, "has operands of element type ", element,
                                                  ", expected integers or i1");
  case Domain::Bool:
    return isBool ? success()
                  : shapeError(location, name, "has operands of element type ", element, ", expected i1");
  }
  llvm_unreachable("covered");
}

LogicalResult inferUnary(std::optional<Location> location, StringRef name, Domain domain, Value input,
                         Type resultElement, SmallVectorImpl<Type> &types) {
  RankedTensorType type = tensorType(input);
  if (failed(checkDomain(location, name, domain, type.getElementType())))
    return failure();
  types.push_back(
      RankedTensorType::get(type.getShape(), resultElement ? resultElement : type.getElementType()));
  return success();
}

LogicalResult inferBinary(std::optional<Location> location, StringRef name, Domain domain, Value lhs,
                          Value rhs, Type resultElement, SmallVectorImpl<Type> &types) {
  RankedTensorType a = tensorType(lhs), b = tensorType(rhs);
  if (a.getElementType() != b.getElementType())
    return shapeError(location, name, "has operands of element types ", a.getElementType(), " and ",
                      b.getElementType(), ", expected equal ones");
  if (failed(checkDomain(location, name, domain, a.getElementType())))
    return failure();
  auto shape = broadcastShapes(a.getShape(), b.getShape());
  if (failed(shape))
    return shapeError(location, name, "has operands of types ", a, " and ", b,
                      ", expected shapes that broadcast");
  types.push_back(RankedTensorType::get(*shape, resultElement ? resultElement : a.getElementType()));
  return success();
}

LogicalResult inferReduction(std::optional<Location> location, StringRef name, Value input,
                             ArrayRef<int64_t> axes, bool keepdims, SmallVectorImpl<Type> &types) {
  RankedTensorType type = tensorType(input);
  if (failed(checkDomain(location, name, Domain::Number, type.getElementType())))
    return failure();
  SmallVector<bool> reduced(type.getRank());
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (axis < 0 || axis >= type.getRank())
      return shapeError(location, name, "reduces axis ", axis, ", expected 0 to ", type.getRank() - 1);
    if (i && axis <= axes[i - 1])
      return shapeError(location, name, "has axes [", axes, "], expected ascending ones");
    reduced[axis] = true;
  }
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (!reduced[dim])
      shape.push_back(size);
    else if (keepdims)
      shape.push_back(1);
  types.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}
} // namespace

#define INFER(Op)                                                                                            \
  LogicalResult Op::inferReturnTypes(MLIRContext *context, std::optional<Location> location,                 \
                                     Adaptor adaptor, SmallVectorImpl<Type> &types)
#define INFER_UNARY(Op, domain)                                                                              \
  INFER(Op) { return inferUnary(location, getOperationName(), domain, adaptor.getInput(), {}, types); }
#define INFER_BINARY(Op, domain)                                                                             \
  INFER(Op) {                                                                                                \
    return inferBinary(location, getOperationName(), domain, adaptor.getLhs(), adaptor.getRhs(), {}, types); \
  }
#define INFER_COMPARE(Op, domain)                                                                            \
  INFER(Op) {                                                                                                \
    return inferBinary(location, getOperationName(), domain, adaptor.getLhs(), adaptor.getRhs(),             \
                       IntegerType::get(context, 1), types);                                                 \
  }
#define INFER_REDUCE(Op)                                                                                     \
  INFER(Op) {                                                                                                \
    return inferReduction(location, getOperationName(), adaptor.getInput(), adaptor.getAxes(),               \
                          adaptor.getKeepdims(), types);                                                     \
  }

INFER_UNARY(NegOp, Domain::Number)
INFER_UNARY(AbsOp, Domain::Number)
INFER_UNARY(SignOp, Domain::Number)
INFER_UNARY(ExpOp, Domain::Float)
INFER_UNARY(LogOp, Domain::Float)
INFER_UNARY(SqrtOp, Domain::Float)
INFER_UNARY(ReciprocalOp, Domain::Float)
INFER_UNARY(AcosOp, Domain::Float)
INFER_UNARY(AcoshOp, Domain::Float)
INFER_UNARY(AsinOp, Domain::Float)
INFER_UNARY(AsinhOp, Domain::Float)
INFER_UNARY(AtanOp, Domain::Float)
INFER_UNARY(AtanhOp, Domain::Float)
INFER_UNARY(CoshOp, Domain::Float)
INFER_UNARY(SinhOp, Domain::Float)
INFER_UNARY(TanhOp, Domain::Float)
INFER_UNARY(ErfOp, Domain::Float)
INFER_UNARY(SigmoidOp, Domain::Float)
INFER_UNARY(ReluOp, Domain::Number)
INFER_UNARY(FloorOp, Domain::Float)
INFER_UNARY(CeilOp, Domain::Float)
INFER_UNARY(RoundOp, Domain::Float)
INFER_UNARY(SinOp, Domain::Float)
INFER_UNARY(CosOp, Domain::Float)
INFER_UNARY(NotOp, Domain::Bool)
INFER(IsNaNOp) {
  return inferUnary(location, getOperationName(), Domain::Float, adaptor.getInput(),
                    IntegerType::get(context, 1), types);
}
INFER_BINARY(AddOp, Domain::Number)
INFER_BINARY(TreeAddOp, Domain::Float)
INFER_BINARY(SubOp, Domain::Number)
INFER_BINARY(MulOp, Domain::Number)
INFER_BINARY(DivOp, Domain::Number)
INFER_BINARY(RemOp, Domain::Number)
INFER_BINARY(PowOp, Domain::Number)
INFER_BINARY(MinOp, Domain::Number)
INFER_BINARY(MaxOp, Domain::Number)
INFER_BINARY(AndOp, Domain::Bits)
INFER_BINARY(OrOp, Domain::Bits)
INFER_COMPARE(EqualOp, Domain::Any)
INFER_COMPARE(LessOp, Domain::Number)
INFER_COMPARE(LessEqualOp, Domain::Number)
INFER_COMPARE(GreaterOp, Domain::Number)
INFER_COMPARE(GreaterEqualOp, Domain::Number)
INFER_REDUCE(ReduceSumOp)
INFER_REDUCE(ReduceMeanOp)
INFER_REDUCE(ReduceMaxOp)
INFER_REDUCE(ReduceMinOp)
INFER_REDUCE(ReduceProdOp)

INFER(WhereOp) {
  RankedTensorType condition = tensorType(adaptor.getCondition());
  if (failed(inferBinary(location, getOperationName(), Domain::Any, adaptor.getLhs(), adaptor.getRhs(), {},
                         types)))
    return failure();
  auto values = cast<RankedTensorType>(types.pop_back_val());
  auto shape = broadcastShapes(condition.getShape(), values.getShape());
  if (failed(shape))
    return shapeError(location, getOperationName(), "has a condition of type ", condition,
                      " and values of type ", values, ", expected shapes that broadcast");
  types.push_back(RankedTensorType::get(*shape, values.getElementType()));
  return success();
}

LogicalResult CastOp::verify() { return success(); }

INFER(RoundToOp) {
  Type element = tensorType(adaptor.getInput()).getElementType();
  auto narrow = dyn_cast<FloatType>(adaptor.getTo());
  if (!narrow || narrow.getWidth() >= element.getIntOrFloatBitWidth())
    return shapeError(location, getOperationName(), "rounds ", element, " to ", adaptor.getTo(),
                      ", expected a narrower type of floating point");
  bool isPowerOfTwo = isa<Float8E8M0FNUType>(narrow);
  if (isPowerOfTwo && !element.isF32())
    return shapeError(location, getOperationName(), "rounds ", element, " to ", narrow, ", expected f32");
  if (adaptor.getToward() && !isPowerOfTwo)
    return shapeError(location, getOperationName(), "rounds ", *adaptor.getToward(), " to ", narrow,
                      ", expected f8E8M0FNU");
  return inferUnary(location, getOperationName(), Domain::Float, adaptor.getInput(), {}, types);
}

INFER(MatMulOp) {
  RankedTensorType a = tensorType(adaptor.getLhs()), b = tensorType(adaptor.getRhs());
  int64_t rank = a.getRank();
  if (rank < 2 || b.getRank() != rank)
    return shapeError(location, getOperationName(), "has operands of types ", a, " and ", b,
                      ", expected equal ranks of at least 2");
  if (a.getElementType() != b.getElementType())
    return shapeError(location, getOperationName(), "has operands of element types ", a.getElementType(),
                      " and ", b.getElementType(), ", expected equal ones");
  if (a.getShape().drop_back(2) != b.getShape().drop_back(2))
    return shapeError(location, getOperationName(), "has operands of types ", a, " and ", b,
                      ", expected equal leading dimensions");
  bool ta = adaptor.getTransposeA(), tb = adaptor.getTransposeB();
  int64_t m = a.getDimSize(rank - (ta ? 1 : 2)), ka = a.getDimSize(rank - (ta ? 2 : 1));
  int64_t kb = b.getDimSize(rank - (tb ? 1 : 2)), n = b.getDimSize(rank - (tb ? 2 : 1));
  if (ka != kb)
    return shapeError(location, getOperationName(), "contracts ", ka, " with ", kb,
                      " elements, expected equal sizes");
  SmallVector<int64_t> shape(a.getShape().drop_back(2));
  shape.append({m, n});
  types.push_back(RankedTensorType::get(shape, a.getElementType()));
  return success();
}

INFER(CumSumOp) {
  RankedTensorType type = tensorType(adaptor.getInput());
  int64_t axis = adaptor.getAxis();
  if (axis < 0 || axis >= type.getRank())
    return shapeError(location, getOperationName(), "sums along axis ", axis, " of ", type,
                      ", expected 0 to ", type.getRank() - 1);
  return inferUnary(location, getOperationName(), Domain::Number, adaptor.getInput(), {}, types);
}
