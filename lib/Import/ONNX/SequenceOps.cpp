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

static LogicalResult sequenceEmpty(NodeBuilder &n) { return n.set(0, std::vector<Value>()); }

/// The place that an input names, in a sequence of `size`; without the input the last.
static FailureOr<int64_t> placeIn(NodeBuilder &n, int input, int64_t size, int64_t last) {
  if (!n.has(input))
    return last;
  FailureOr<int64_t> position = n.integer(input, "position");
  if (failed(position))
    return failure();
  int64_t place = *position < 0 ? *position + size : *position;
  if (place < 0 || place > last)
    return n.error() << "has position " << *position << " in a sequence of " << size;
  return place;
}

static LogicalResult sequenceInsert(NodeBuilder &n) {
  const std::vector<Value> *given = n.sequence(0);
  Value value = n.input(1);
  if (!given || !value)
    return failure();
  std::vector<Value> sequence = *given;
  FailureOr<int64_t> place = placeIn(n, 2, sequence.size(), sequence.size());
  if (failed(place))
    return failure();
  sequence.insert(sequence.begin() + *place, value);
  return n.set(0, std::move(sequence));
}

static LogicalResult sequenceErase(NodeBuilder &n) {
  const std::vector<Value> *given = n.sequence(0);
  if (!given)
    return failure();
  std::vector<Value> sequence = *given;
  FailureOr<int64_t> place = placeIn(n, 1, sequence.size(), (int64_t)sequence.size() - 1);
  if (failed(place))
    return failure();
  if (sequence.empty())
    return n.error() << "erases an element of an empty sequence";
  sequence.erase(sequence.begin() + *place);
  return n.set(0, std::move(sequence));
}

/// The value that consecutive slices along an axis are all of, null if they are none.
static Value wholeOf(ArrayRef<Value> parts, int64_t axis) {
  Value whole;
  int64_t end = 0;
  for (Value part : parts) {
    auto slice = part.getDefiningOp<graph::SliceOp>();
    if (!slice || (whole && whole != slice.getInput()))
      return {};
    whole = slice.getInput();
    for (int64_t dim = 0; dim < Emitter::rankOf(whole); ++dim)
      if (slice.getSteps()[dim] != 1 || slice.getStarts()[dim] != (dim == axis ? end : 0) ||
          (dim != axis && slice.getSizes()[dim] != Emitter::shapeOf(whole)[dim]))
        return {};
    end += slice.getSizes()[axis];
  }
  return end == Emitter::shapeOf(whole)[axis] ? whole : Value();
}

static LogicalResult concatFromSequence(NodeBuilder &n) {
  const std::vector<Value> *sequence = n.sequence(0);
  if (!sequence)
    return failure();
  if (sequence->empty())
    return n.error() << "joins an empty sequence, expected one element or more";
  bool isNew = n.integerAttr("new_axis", 0) != 0;
  FailureOr<int64_t> axis = n.axis(n.integerAttr("axis", 0), Emitter::rankOf(sequence->front()) + isNew);
  if (failed(axis))
    return failure();
  SmallVector<Value> parts(sequence->begin(), sequence->end());
  if (isNew)
    for (Value &part : parts) {
      SmallVector<int64_t> shape(Emitter::shapeOf(part));
      shape.insert(shape.begin() + *axis, 1);
      part = n.e.reshape(part, shape);
    }
  if (Value whole = isNew ? Value() : wholeOf(parts, *axis))
    return n.set(0, whole);
  return n.set(0, parts.size() == 1 ? parts.front() : n.e.concat(parts, *axis));
}

/// A graph for each element, of which each output becomes a sequence.
static LogicalResult sequenceMap(NodeBuilder &n) {
  const onnx::GraphProto *body = n.graph("body", n.numInputs());
  const std::vector<Value> *elements = body ? n.sequence(0) : nullptr;
  if (!elements)
    return failure();
  if (body->output_size() != n.numOutputs())
    return n.error() << "has a body of " << body->output_size() << " outputs, expected " << n.numOutputs();
  std::vector<std::vector<Value>> results(n.numOutputs());
  for (size_t i = 0, count = elements->size(); i < count; ++i) {
    SmallVector<Binding> inputs;
    for (int k = 0; k < n.numInputs(); ++k) {
      FailureOr<Binding> given = n.binding(k);
      if (failed(given))
        return failure();
      if (given->sequence) {
        if (given->sequence->size() != count)
          return n.error() << "has sequences of " << count << " and " << given->sequence->size()
                           << " elements, expected as many in each";
        given = Binding{(*given->sequence)[i], {}, {}};
      }
      inputs.push_back(std::move(*given));
    }
    FailureOr<SmallVector<Binding>> outputs = n.build(*body, inputs);
    if (failed(outputs))
      return failure();
    for (auto [k, output] : llvm::enumerate(*outputs)) {
      results[k].push_back(n.read(output, body->output(k).name()));
      if (!results[k].back())
        return failure();
    }
  }
  for (auto [k, result] : llvm::enumerate(results))
    if (failed(n.set(k, std::move(result))))
      return failure();
  return success();
}

/// What may be missing: known when the model is compiled.
static LogicalResult optional(NodeBuilder &n) {
  if (n.has(0))
    return n.alias(0);
  n.bind(0, {});
  return success();
}
static LogicalResult optionalHasElement(NodeBuilder &n) {
  bool has = n.has(0);
  if (has) {
    FailureOr<Binding> given = n.binding(0);
    has = given->value || given->parameter || given->sequence;
  }
  return n.set(0, n.e.bools(has, {}));
}
static LogicalResult optionalGetElement(NodeBuilder &n) { return n.alias(0); }

ArrayRef<OpRow> sequenceOps() {
  static const OpRow rows[] = {
      {"ConcatFromSequence", 11, kMaxOpset, concatFromSequence},
      {"Optional", 15, kMaxOpset, optional},
      {"OptionalGetElement", 15, kMaxOpset, optionalGetElement},
      {"OptionalHasElement", 15, kMaxOpset, optionalHasElement},
      {"SequenceAt", 11, kMaxOpset, sequenceAt},
      {"SequenceConstruct", 11, kMaxOpset, sequenceConstruct},
      {"SequenceEmpty", 11, kMaxOpset, sequenceEmpty},
      {"SequenceErase", 11, kMaxOpset, sequenceErase},
      {"SequenceInsert", 11, kMaxOpset, sequenceInsert},
      {"SequenceLength", 11, kMaxOpset, sequenceLength},
      {"SequenceMap", 17, kMaxOpset, sequenceMap},
      {"Split", 2, kMaxOpset, split},
      {"SplitToSequence", 11, kMaxOpset, splitToSequence},
  };
  return rows;
}

} // namespace dsopt::onnx_import
