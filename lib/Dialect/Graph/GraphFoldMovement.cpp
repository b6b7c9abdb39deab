//===- GraphFoldMovement.cpp - folders of shapes and data movement --------===//
//
// All of it is copying between strided buffers, or choosing offsets by indices.
// An index outside its data is left to run time.
//
//===----------------------------------------------------------------------===//

#include "GraphFold.h"

#include <cstring>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;
using namespace dsopt::graph::fold;

template <typename T>
static void copyTyped(ArrayRef<int64_t> shape, const char *from, ArrayRef<int64_t> fromStrides, char *to,
                      ArrayRef<int64_t> toStrides) {
  const T *source = reinterpret_cast<const T *>(from);
  T *target = reinterpret_cast<T *>(to);
  forEachRow<2>(shape, {fromStrides, toStrides}, [&](auto &offset, int64_t count, auto &step) {
    const T *x = source + offset[0];
    T *y = target + offset[1];
    if (step[0] == 1 && step[1] == 1)
      std::memcpy(y, x, count * sizeof(T));
    else
      for (int64_t i = 0; i < count; ++i)
        y[i * step[1]] = x[i * step[0]];
  });
}

/// Copies a box of elements of `width` bytes; strides count elements.
static void copyStrided(int64_t width, ArrayRef<int64_t> shape, const char *from,
                        ArrayRef<int64_t> fromStrides, char *to, ArrayRef<int64_t> toStrides) {
  switch (width) {
  case 1:
    return copyTyped<uint8_t>(shape, from, fromStrides, to, toStrides);
  case 2:
    return copyTyped<uint16_t>(shape, from, fromStrides, to, toStrides);
  case 4:
    return copyTyped<uint32_t>(shape, from, fromStrides, to, toStrides);
  case 8:
    return copyTyped<uint64_t>(shape, from, fromStrides, to, toStrides);
  }
}

/// The constant read at `offset` (in elements) with `strides` for each dimension
/// of `type`.
static Attribute foldView(RankedTensorType type, const Elements &x, int64_t offset,
                          ArrayRef<int64_t> strides) {
  if (x.splat)
    return fromRaw(type, ArrayRef<char>(x.data, x.width));
  if (!fits(type) || x.width > 8)
    return {};
  Buffer out(type.getNumElements() * x.width);
  copyStrided(x.width, type.getShape(), x.data + offset * x.width, strides, out.data(),
              rowMajor(type.getShape()));
  return fromRaw(type, out);
}

/// The sum of the products of two lists.
static int64_t dot(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  int64_t sum = 0;
  for (auto [x, y] : llvm::zip_equal(a, b))
    sum += x * y;
  return sum;
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getView() != View::None)
    return {};
  if (getInput().getType() == getType())
    return getInput();
  if (auto inner = getInput().getDefiningOp<ReshapeOp>(); inner && inner.getView() == View::None) {
    if (inner.getInput().getType() == getType())
      return inner.getInput();
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  auto type = cast<RankedTensorType>(getType());
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getInput()))
    return dense.reshape(type);
  std::optional<Elements> x = Elements::raw(adaptor.getInput());
  return x ? foldView(type, *x, 0, rowMajor(type.getShape())) : Attribute();
}

OpFoldResult ExpandOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto inner = getInput().getDefiningOp<ExpandOp>()) {
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  std::optional<Elements> x = Elements::raw(adaptor.getInput());
  auto type = cast<RankedTensorType>(getType());
  return x ? foldView(type, *x, 0, x->stridesIn(type.getShape())) : Attribute();
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (getView() != View::None)
    return {};
  bool identity = true;
  for (auto [i, from] : llvm::enumerate(getPerm()))
    identity = identity && (int64_t)i == from;
  if (identity)
    return getInput();
  if (auto inner = getInput().getDefiningOp<TransposeOp>(); inner && inner.getView() == View::None) {
    SmallVector<int64_t> perm;
    for (int64_t from : getPerm())
      perm.push_back(inner.getPerm()[from]);
    setPerm(perm);
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  std::optional<Elements> x = Elements::raw(adaptor.getInput());
  if (!x)
    return {};
  SmallVector<int64_t> own = x->strides(), strides;
  for (int64_t from : getPerm())
    strides.push_back(own[from]);
  return foldView(cast<RankedTensorType>(getType()), *x, 0, strides);
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  if (getView() != View::None)
    return {};
  // A slice of equal shape may still reverse.
  if (getInput().getType() == getType() &&
      llvm::all_of(getStarts(), [](int64_t start) { return start == 0; }))
    return getInput();
  std::optional<Elements> x = Elements::raw(adaptor.getInput());
  if (!x)
    return {};
  SmallVector<int64_t> own = x->strides(), strides;
  for (auto [stride, step] : llvm::zip_equal(own, getSteps()))
    strides.push_back(stride * step);
  return foldView(cast<RankedTensorType>(getType()), *x, dot(own, getStarts()), strides);
}

//===----------------------------------------------------------------------===//
// Parts put into a whole
//===----------------------------------------------------------------------===//

OpFoldResult SliceGradOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType() &&
      llvm::all_of(getStarts(), [](int64_t start) { return start == 0; }))
    return getInput();
  std::optional<Elements> x = Elements::raw(adaptor.getInput());
  auto type = cast<RankedTensorType>(getType());
  if (!x || !fits(type) || x->width > 8)
    return {};
  Buffer out(type.getNumElements() * x->width); // Zeros in every element type.
  SmallVector<int64_t> whole = rowMajor(type.getShape()), strides;
  for (auto [stride, step] : llvm::zip_equal(whole, getSteps()))
    strides.push_back(stride * step);
  copyStrided(x->width, x->shape(), x->data, x->strides(), out.data() + dot(whole, getStarts()) * x->width,
              strides);
  return fromRaw(type, out);
}

OpFoldResult ConcatOp::fold(FoldAdaptor adaptor) {
  if (getView() != View::None)
    return {};
  if (getInputs().size() == 1)
    return getInputs().front();
  auto type = cast<RankedTensorType>(getType());
  if (!fits(type))
    return {};
  SmallVector<Elements> parts;
  for (Attribute input : adaptor.getInputs()) {
    std::optional<Elements> part = Elements::raw(input);
    if (!part || part->width > 8)
      return {};
    parts.push_back(std::move(*part));
  }
  int64_t width = parts.front().width, at = 0, axis = getAxis();
  Buffer out(type.getNumElements() * width);
  SmallVector<int64_t> whole = rowMajor(type.getShape());
  for (Elements &part : parts) {
    copyStrided(width, part.shape(), part.data, part.strides(), out.data() + at * whole[axis] * width, whole);
    at += part.shape()[axis];
  }
  return fromRaw(type, out);
}

OpFoldResult PadOp::fold(FoldAdaptor adaptor) {
  auto isZero = [](int64_t count) { return count == 0; };
  if (llvm::all_of(getLows(), isZero) && llvm::all_of(getHighs(), isZero))
    return getInput();
  std::optional<Elements> x = Elements::raw(adaptor.getInput());
  auto type = cast<RankedTensorType>(getType());
  auto scalar = RankedTensorType::get({}, type.getElementType());
  std::optional<Elements> value = Elements::raw(DenseElementsAttr::get(scalar, getValue()));
  if (!x || !value || !fits(type) || x->width > 8)
    return {};
  Buffer out(type.getNumElements() * x->width);
  SmallVector<int64_t> whole = rowMajor(type.getShape()), own = x->strides(), box;
  copyStrided(x->width, type.getShape(), value->data, SmallVector<int64_t>(whole.size(), 0), out.data(),
              whole);
  int64_t from = 0, to = 0;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    int64_t low = getLows()[dim], high = getHighs()[dim];
    from += std::max<int64_t>(-low, 0) * own[dim];
    to += std::max<int64_t>(low, 0) * whole[dim];
    box.push_back(
        std::max<int64_t>(x->shape()[dim] + std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0), 0));
  }
  copyStrided(x->width, box, x->data + from * x->width, own, out.data() + to * x->width, whole);
  return fromRaw(type, out);
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

/// Counts negative indices from the end; fails where one is outside.
static bool normalize(MutableArrayRef<int64_t> indices, int64_t size) {
  for (int64_t &index : indices) {
    if (index < 0)
      index += size;
    if (index < 0 || index >= size)
      return false;
  }
  return true;
}

static int64_t product(ArrayRef<int64_t> sizes) { return ShapedType::getNumElements(sizes); }

OpFoldResult GatherOp::fold(FoldAdaptor adaptor) {
  std::optional<Elements> x = Elements::raw(adaptor.getData());
  auto type = cast<RankedTensorType>(getType());
  if (!x || !fits(type))
    return {};
  int64_t axis = getAxis(), size = x->shape()[axis];
  std::optional<SmallVector<int64_t>> indices = integers(adaptor.getIndices());
  if (!indices || !normalize(*indices, size))
    return {};
  if (x->splat)
    return fromRaw(type, ArrayRef<char>(x->data, x->width));
  int64_t bytes = product(x->shape().drop_front(axis + 1)) * x->width;
  Buffer out(type.getNumElements() * x->width);
  char *to = out.data();
  for (int64_t i = 0, outer = product(x->shape().take_front(axis)); i < outer; ++i)
    for (int64_t index : *indices) {
      std::memcpy(to, x->data + (i * size + index) * bytes, bytes);
      to += bytes;
    }
  return fromRaw(type, out);
}

OpFoldResult GatherElementsOp::fold(FoldAdaptor adaptor) {
  std::optional<Elements> x = Elements::raw(adaptor.getData());
  auto type = cast<RankedTensorType>(getType());
  if (!x || !fits(type))
    return {};
  int64_t axis = getAxis();
  std::optional<SmallVector<int64_t>> indices = integers(adaptor.getIndices());
  if (!indices || !normalize(*indices, x->shape()[axis]))
    return {};
  Buffer out(type.getNumElements() * x->width);
  SmallVector<int64_t> strides = x->strides();
  int64_t along = strides[axis];
  strides[axis] = 0;
  forEachRow<2>(type.getShape(), {strides, rowMajor(type.getShape())},
                [&](auto &offset, int64_t count, auto &step) {
                  for (int64_t i = 0; i < count; ++i) {
                    int64_t to = offset[1] + i * step[1];
                    int64_t from = offset[0] + i * step[0] + (*indices)[to] * along;
                    std::memcpy(out.data() + to * x->width, x->data + from * x->width, x->width);
                  }
                });
  return fromRaw(type, out);
}

OpFoldResult OneHotOp::fold(FoldAdaptor adaptor) {
  std::optional<SmallVector<int64_t>> indices = integers(adaptor.getIndices());
  auto type = cast<RankedTensorType>(getType());
  if (!indices || !fits(type))
    return {};
  int64_t depth = getDepth();
  Buffer out(type.getNumElements() * sizeof(float));
  for (auto [row, index] : llvm::enumerate(*indices))
    if (index >= 0 && index < depth)
      reinterpret_cast<float *>(out.data())[row * depth + index] = 1;
  return fromNumbers(type, out);
}
