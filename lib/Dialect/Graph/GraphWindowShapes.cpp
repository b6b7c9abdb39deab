//===- GraphWindowShapes.cpp - shape rules of windows and scatters --------===//

#include "GraphSupport.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

LogicalResult WindowsOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  RankedTensorType type = tensorType(adaptor.getInput());
  int64_t axis = adaptor.getAxis(), count = adaptor.getKernel().size();
  StringRef name = getOperationName();
  if (axis < 0 || count < 1 || axis > type.getRank() - count)
    return shapeError(location, name, "has windows over ", count, " dimensions from ", axis, " on of ", type,
                      ", expected dimensions that it has");
  for (ArrayRef<int64_t> list :
       {adaptor.getCounts(), adaptor.getStrides(), adaptor.getDilations(), adaptor.getLows()})
    if ((int64_t)list.size() != count)
      return shapeError(location, name, "has ", list.size(), " entries for windows over ", count,
                        " dimensions, expected one each");
  for (ArrayRef<int64_t> list :
       {adaptor.getCounts(), adaptor.getKernel(), adaptor.getStrides(), adaptor.getDilations()})
    for (int64_t entry : list)
      if (entry < 1)
        return shapeError(location, name, "has windows with counts, kernel, strides or dilations of [", list,
                          "], expected 1 or more");
  if (adaptor.getValue().getType() != type.getElementType())
    return shapeError(location, name, "fills with a value of type ", adaptor.getValue().getType(),
                      ", expected ", type.getElementType());
  SmallVector<int64_t> shape(type.getShape().take_front(axis));
  llvm::append_range(shape, adaptor.getCounts());
  llvm::append_range(shape, adaptor.getKernel());
  llvm::append_range(shape, type.getShape().drop_front(axis + count));
  types.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

/// The windows' dimensions and the result's agree; `kernelLast`: the result has the kernel's too.
template <typename Op> static LogicalResult verifyAdjoint(Op op, bool kernelLast) {
  RankedTensorType from = tensorType(op.getInput()), to = tensorType(op.getResult());
  int64_t axis = op.getAxis(), count = op.getStrides().size();
  if (axis < 0 || count < 1 || (int64_t)op.getDilations().size() != count ||
      (int64_t)op.getLows().size() != count || axis + 2 * count > from.getRank())
    return op.emitOpError("has windows over ") << count << " dimensions from " << axis << " on of " << from
                                               << ", expected dimensions that it has";
  for (ArrayRef<int64_t> list : {op.getStrides(), op.getDilations()})
    for (int64_t entry : list)
      if (entry < 1)
        return op.emitOpError("has strides or dilations of [") << list << "], expected 1 or more";
  SmallVector<int64_t> shape(from.getShape().take_front(axis));
  if (to.getRank() >= axis + count)
    llvm::append_range(shape, to.getShape().slice(axis, count));
  llvm::append_range(shape, from.getShape().drop_front(axis + 2 * count));
  if (kernelLast)
    llvm::append_range(shape, from.getShape().slice(axis + count, count));
  if (to != RankedTensorType::get(shape, from.getElementType()))
    return op.emitOpError("has windows of type ") << from << " and a result of type " << to << ", expected "
                                                  << RankedTensorType::get(shape, from.getElementType());
  return success();
}
LogicalResult WindowsSumOp::verify() { return verifyAdjoint(*this, /*kernelLast=*/false); }
LogicalResult WindowsPlaceOp::verify() { return verifyAdjoint(*this, /*kernelLast=*/true); }

LogicalResult ScatterOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  RankedTensorType data = tensorType(adaptor.getData()), indices = tensorType(adaptor.getIndices()),
                   updates = tensorType(adaptor.getUpdates());
  StringRef name = getOperationName();
  if (data.getRank() != 2 || indices.getRank() != 1 ||
      updates != RankedTensorType::get({indices.getDimSize(0), data.getDimSize(1)}, data.getElementType()))
    return shapeError(location, name, "has operands of types ", data, ", ", indices, " and ", updates,
                      ", expected [N, W], [M] and [M, W]");
  types.push_back(data);
  return success();
}
