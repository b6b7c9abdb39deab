//===- SequenceOps.cpp - sequences, which exist during import only ---------===//

#include "OpTable.h"

using namespace mlir;

namespace dsopt::onnx_import {

/// Cuts `value` along `axis` in pieces of these sizes.
static FailureOr<std::vector<Value>> cut(NodeBuilder &n, Value value, int64_t axis, ArrayRef<int64_t> sizes) {
  int64_t whole = Emitter::shapeOf(value)[axis], start = 0;
  std::vector<Value> pieces;
  for (int64_t size : sizes) {
    if (size < 0 || size > whole - start)
      return n.error() << "splits " << whole << " elements of axis " << axis << " into [" << sizes
                       << "], expected sizes that add up";
    pieces.push_back(n.e.slice(value, axis, start, size));
    if (!pieces.back())
      return failure();
    start += size;
  }
  if (start != whole)
    return n.error() << "splits " << whole << " elements of axis " << axis << " into [" << sizes
                     << "], expected sizes that add up";
  return pieces;
}

/// Sizes of equal pieces, of which the last may be smaller.
static SmallVector<int64_t> equalSizes(int64_t whole, int64_t size) {
  SmallVector<int64_t> sizes(whole / size, size);
  if (whole % size)
    sizes.push_back(whole % size);
  return sizes;
}

static LogicalResult split(NodeBuilder &n) {
  Value value = n.input(0);
  if (!value)
    return failure();
  FailureOr<int64_t> axis = n.axis(n.integerAttr("axis", 0), Emitter::rankOf(value));
  if (failed(axis))
    return failure();
  SmallVector<int64_t> sizes;
  if (n.has(1)) {
    FailureOr<SmallVector<int64_t>> given = n.integers(1, "split");
    if (failed(given))
      return failure();
    sizes = *given;
  } else {
    int64_t whole = Emitter::shapeOf(value)[*axis];
    int64_t pieces = n.integerAttr("num_outputs", n.numOutputs());
    if (pieces < 1 || pieces > std::max<int64_t>(whole, 1) || (n.opset < 18 && whole % pieces))
      return n.error() << "splits " << whole << " elements of axis " << *axis << " into " << pieces
                       << " pieces";
    sizes = equalSizes(whole, llvm::divideCeil(whole, pieces));
  }
  if ((int64_t)sizes.size() != n.numOutputs())
    return n.error() << "splits axis " << *axis << " into " << sizes.size()
                     << " pieces, expected one for each of the " << n.numOutputs() << " outputs";
  FailureOr<std::vector<Value>> pieces = cut(n, value, *axis, sizes);
  if (failed(pieces))
    return failure();
  for (auto [i, piece] : llvm::enumerate(*pieces))
    if (failed(n.set(i, piece)))
      return failure();
  return success();
}

static LogicalResult splitToSequence(NodeBuilder &n) {
  Value value = n.input(0);
  if (!value)
    return failure();
  FailureOr<int64_t> axis = n.axis(n.integerAttr("axis", 0), Emitter::rankOf(value));
  if (failed(axis))
    return failure();
  int64_t whole = Emitter::shapeOf(value)[*axis];
  SmallVector<int64_t> sizes;
  bool dropsAxis = false;
  if (n.has(1)) {
    DenseElementsAttr given = n.constant(1, "split");
    FailureOr<SmallVector<int64_t>> values =
        given ? n.integers(1, "split") : FailureOr<SmallVector<int64_t>>();
    if (failed(values))
      return failure();
    sizes = *values;
    if (given.getType().getRank() == 0) {
      if (sizes[0] < 1)
        return n.error() << "splits into pieces of " << sizes[0] << " elements, expected 1 or more";
      sizes = equalSizes(whole, sizes[0]);
    }
  } else {
    sizes.assign(whole, 1);
    dropsAxis = n.integerAttr("keepdims", 1) == 0;
  }
  FailureOr<std::vector<Value>> pieces = cut(n, value, *axis, sizes);
  if (failed(pieces))
    return failure();
  if (dropsAxis)
    for (Value &piece : *pieces) {
      SmallVector<int64_t> shape(Emitter::shapeOf(piece));
      shape.erase(shape.begin() + *axis);
      piece = n.e.reshape(piece, shape);
    }
  return n.set(0, std::move(*pieces));
}

static LogicalResult sequenceAt(NodeBuilder &n) {
  const std::vector<Value> *sequence = n.sequence(0);
  FailureOr<int64_t> position = sequence ? n.integer(1, "position") : FailureOr<int64_t>();
  if (failed(position))
    return failure();
  int64_t size = sequence->size();
  if (*position < -size || *position >= size)
    return n.error() << "takes element " << *position << " of a sequence of " << size;
  return n.set(0, (*sequence)[*position < 0 ? *position + size : *position]);
}

static LogicalResult sequenceLength(NodeBuilder &n) {
  const std::vector<Value> *sequence = n.sequence(0);
  return sequence ? n.set(0, n.e.splat(n.e.builder.getI64Type(), sequence->size())) : failure();
}

static LogicalResult sequenceConstruct(NodeBuilder &n) {
  std::vector<Value> elements;
  for (int i = 0; i < n.numInputs(); ++i)
    elements.push_back(n.input(i));
  return n.set(0, std::move(elements));
}

ArrayRef<OpRow> sequenceOps() {
  static const OpRow rows[] = {
      {"SequenceAt", 11, kMaxOpset, sequenceAt},
      {"SequenceConstruct", 11, kMaxOpset, sequenceConstruct},
      {"SequenceLength", 11, kMaxOpset, sequenceLength},
      {"Split", 13, kMaxOpset, split},
      {"SplitToSequence", 11, kMaxOpset, splitToSequence},
  };
  return rows;
}

} // namespace dsopt::onnx_import
