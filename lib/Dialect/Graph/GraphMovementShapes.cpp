//===- GraphMovementShapes.cpp - shape rules of data movement -------------===//

#include "GraphSupport.h"
#include "dsopt/Dialect/Graph/NarrowFloat.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

#define INFER(Op)                                                                                            \
  LogicalResult Op::inferReturnTypes(MLIRContext *context, std::optional<Location> location,                 \
                                     Adaptor adaptor, SmallVectorImpl<Type> &types)

static LogicalResult checkAxis(std::optional<Location> location, StringRef name, int64_t axis,
                               RankedTensorType type) {
  if (axis >= 0 && axis < type.getRank())
    return success();
  return shapeError(location, name, "has axis ", axis, " of ", type, ", expected 0 to ", type.getRank() - 1);
}

/// Checks that a list has one entry for each dimension of `type`.
static LogicalResult checkEntries(std::optional<Location> location, StringRef name, StringRef what,
                                  ArrayRef<int64_t> list, RankedTensorType type) {
  if ((int64_t)list.size() == type.getRank())
    return success();
  return shapeError(location, name, "has ", list.size(), " ", what, ", expected one for each of the ",
                    type.getRank(), " dimensions");
}

/// Checks that `starts + i * steps` for i in `sizes` lies in `whole`.
static LogicalResult checkWindow(std::optional<Location> location, StringRef name, RankedTensorType whole,
                                 ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps) {
  for (int64_t dim = 0; dim < whole.getRank(); ++dim) {
    if (steps[dim] == 0)
      return shapeError(location, name, "has step 0 in dimension ", dim, ", expected another");
    if (sizes[dim] < 0)
      return shapeError(location, name, "has size ", sizes[dim], " in dimension ", dim,
                        ", expected at least 0");
    if (sizes[dim] == 0)
      continue;
    int64_t first = starts[dim], last = first + (sizes[dim] - 1) * steps[dim];
    if (std::min(first, last) < 0 || std::max(first, last) >= whole.getDimSize(dim))
      return shapeError(location, name, "spans elements ", std::min(first, last), " to ",
                        std::max(first, last), " of dimension ", dim, ", expected 0 to ",
                        whole.getDimSize(dim) - 1);
  }
  return success();
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType from = tensorType(getInput()), to = tensorType(getResult());
  if (from.getElementType() != to.getElementType())
    return emitOpError("has element type ") << from.getElementType() << " and result element type "
                                            << to.getElementType() << ", expected equal ones";
  if (from.getNumElements() != to.getNumElements())
    return emitOpError("has ") << from.getNumElements() << " elements and a result of " << to.getNumElements()
                               << ", expected as many";
  return success();
}

LogicalResult ExpandOp::verify() {
  RankedTensorType from = tensorType(getInput()), to = tensorType(getResult());
  if (from.getElementType() != to.getElementType())
    return emitOpError("has element type ") << from.getElementType() << " and result element type "
                                            << to.getElementType() << ", expected equal ones";
  auto shape = broadcastShapes(from.getShape(), to.getShape());
  if (failed(shape) || ArrayRef<int64_t>(*shape) != to.getShape())
    return emitOpError("expands ") << from << " to " << to << ", expected a shape it broadcasts to";
  return success();
}

INFER(TransposeOp) {
  RankedTensorType type = tensorType(adaptor.getInput());
  ArrayRef<int64_t> perm = adaptor.getPerm();
  if (failed(checkEntries(location, getOperationName(), "entries in perm", perm, type)))
    return failure();
  SmallVector<bool> seen(perm.size());
  SmallVector<int64_t> shape;
  for (int64_t from : perm) {
    if (from < 0 || from >= type.getRank() || seen[from])
      return shapeError(location, getOperationName(), "has perm [", perm,
                        "], expected a permutation of 0 to ", type.getRank() - 1);
    seen[from] = true;
    shape.push_back(type.getDimSize(from));
  }
  types.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

INFER(ConcatOp) {
  if (adaptor.getInputs().empty())
    return shapeError(location, getOperationName(), "has no operands, expected at least one");
  RankedTensorType first = tensorType(adaptor.getInputs().front());
  int64_t axis = adaptor.getAxis();
  if (failed(checkAxis(location, getOperationName(), axis, first)))
    return failure();
  SmallVector<int64_t> shape(first.getShape());
  for (Value input : adaptor.getInputs().drop_front()) {
    RankedTensorType type = tensorType(input);
    SmallVector<int64_t> expected(first.getShape());
    if (type.getRank() == first.getRank()) {
      expected[axis] = type.getDimSize(axis);
      shape[axis] += type.getDimSize(axis);
    }
    if (type != RankedTensorType::get(expected, first.getElementType()))
      return shapeError(location, getOperationName(), "has operands of types ", first, " and ", type,
                        ", expected types that differ in dimension ", axis, " only");
  }
  types.push_back(RankedTensorType::get(shape, first.getElementType()));
  return success();
}

INFER(SliceOp) {
  RankedTensorType type = tensorType(adaptor.getInput());
  StringRef name = getOperationName();
  if (failed(checkEntries(location, name, "starts", adaptor.getStarts(), type)) ||
      failed(checkEntries(location, name, "sizes", adaptor.getSizes(), type)) ||
      failed(checkEntries(location, name, "steps", adaptor.getSteps(), type)) ||
      failed(checkWindow(location, name, type, adaptor.getStarts(), adaptor.getSizes(), adaptor.getSteps())))
    return failure();
  types.push_back(RankedTensorType::get(adaptor.getSizes(), type.getElementType()));
  return success();
}

LogicalResult SliceGradOp::verify() {
  RankedTensorType from = tensorType(getInput()), to = tensorType(getResult());
  if (from.getElementType() != to.getElementType() || from.getRank() != to.getRank())
    return emitOpError("has an operand of type ")
           << from << " and a result of type " << to << ", expected equal element types and ranks";
  if (failed(checkEntries(getLoc(), getOperationName(), "starts", getStarts(), to)) ||
      failed(checkEntries(getLoc(), getOperationName(), "steps", getSteps(), to)))
    return failure();
  return checkWindow(getLoc(), getOperationName(), to, getStarts(), from.getShape(), getSteps());
}

INFER(PadOp) {
  RankedTensorType type = tensorType(adaptor.getInput());
  StringRef name = getOperationName();
  if (failed(checkEntries(location, name, "lows", adaptor.getLows(), type)) ||
      failed(checkEntries(location, name, "highs", adaptor.getHighs(), type)))
    return failure();
  if (adaptor.getValue().getType() != type.getElementType())
    return shapeError(location, name, "pads with a value of type ", adaptor.getValue().getType(),
                      ", expected ", type.getElementType());
  SmallVector<int64_t> shape(type.getShape());
  for (auto [dim, low, high] : llvm::enumerate(adaptor.getLows(), adaptor.getHighs())) {
    shape[dim] += low + high;
    if (shape[dim] < 0)
      return shapeError(location, name, "crops dimension ", dim, " of ", type, " to ", shape[dim],
                        " elements, expected at least 0");
  }
  types.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

/// The shape of slices of `data` along `axis` chosen by `indices`.
static SmallVector<int64_t> gatherShape(RankedTensorType data, RankedTensorType indices, int64_t axis) {
  SmallVector<int64_t> shape(data.getShape().take_front(axis));
  llvm::append_range(shape, indices.getShape());
  llvm::append_range(shape, data.getShape().drop_front(axis + 1));
  return shape;
}

INFER(GatherOp) {
  RankedTensorType data = tensorType(adaptor.getData()), indices = tensorType(adaptor.getIndices());
  int64_t axis = adaptor.getAxis();
  if (failed(checkAxis(location, getOperationName(), axis, data)))
    return failure();
  types.push_back(RankedTensorType::get(gatherShape(data, indices, axis), data.getElementType()));
  return success();
}

LogicalResult GatherGradOp::verify() {
  RankedTensorType grad = tensorType(getGrad()), indices = tensorType(getIndices()),
                   to = tensorType(getResult());
  int64_t axis = getAxis();
  if (failed(checkAxis(getLoc(), getOperationName(), axis, to)))
    return failure();
  auto expected = RankedTensorType::get(gatherShape(to, indices, axis), to.getElementType());
  // Rows of 16 bits are added in fp32.
  bool widens = isNarrowFloat(grad.getElementType()) && to.getElementType().isF32();
  if (widens ? grad.getShape() != expected.getShape() : grad != expected)
    return emitOpError("has a gradient of type ") << grad << ", expected " << expected;
  return success();
}

INFER(GatherElementsOp) {
  RankedTensorType data = tensorType(adaptor.getData()), indices = tensorType(adaptor.getIndices());
  int64_t axis = adaptor.getAxis();
  if (failed(checkAxis(location, getOperationName(), axis, data)))
    return failure();
  bool fits = data.getRank() == indices.getRank();
  for (int64_t dim = 0; fits && dim < data.getRank(); ++dim)
    fits = dim == axis || indices.getDimSize(dim) <= data.getDimSize(dim);
  if (!fits)
    return shapeError(location, getOperationName(), "has data of type ", data, " and indices of type ",
                      indices, ", expected equal ranks and no larger indices but along axis ", axis);
  types.push_back(RankedTensorType::get(indices.getShape(), data.getElementType()));
  return success();
}

INFER(OneHotOp) {
  SmallVector<int64_t> shape(tensorType(adaptor.getIndices()).getShape());
  int64_t depth = adaptor.getDepth();
  if (depth < 1)
    return shapeError(location, getOperationName(), "has depth ", depth, ", expected at least 1");
  shape.push_back(depth);
  types.push_back(RankedTensorType::get(shape, Float32Type::get(context)));
  return success();
}
