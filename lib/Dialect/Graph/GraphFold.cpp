//===- GraphFold.cpp - the elements of constants, for the folders ---------===//

#include "GraphFold.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/APFloat.h"

#include <cstring>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;
using namespace dsopt::graph::fold;

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValueAttr(); }

std::optional<Elements> Elements::raw(Attribute constant) {
  Elements e;
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(constant)) {
    e.type = dyn_cast<RankedTensorType>(dense.getType());
    if (!e.type || !e.elementType().isIntOrFloat())
      return std::nullopt;
    e.splat = dense.isSplat();
    if (e.elementType().isInteger(1)) {
      e.width = 1;
      if (e.splat)
        e.owned.push_back(dense.getSplatValue<bool>());
      else
        e.owned.assign(dense.value_begin<bool>(), dense.value_end<bool>());
      e.data = e.owned.data();
      return e;
    }
    e.data = dense.getRawData().data();
  } else if (auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(constant)) {
    e.type = dyn_cast<RankedTensorType>(resource.getType());
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!e.type || !blob || !e.elementType().isIntOrFloat() || e.elementType().isInteger(1) ||
        (int64_t)blob->getData().size() != numBytes(e.type))
      return std::nullopt;
    e.data = blob->getData().data();
  } else {
    return std::nullopt;
  }
  unsigned bits = e.elementType().getIntOrFloatBitWidth();
  if (bits % 8)
    return std::nullopt;
  e.width = bits / 8;
  return e;
}

/// The semantics of a type that is computed in float, else null.
static const llvm::fltSemantics *halfSemantics(Type element) {
  if (element.isF16())
    return &APFloat::IEEEhalf();
  return element.isBF16() ? &APFloat::BFloat() : nullptr;
}

std::optional<Elements> Elements::numbers(Attribute constant) {
  std::optional<Elements> e = raw(constant);
  const llvm::fltSemantics *half = e ? halfSemantics(e->elementType()) : nullptr;
  if (!half)
    return e;
  int64_t count = e->splat ? 1 : e->type.getNumElements();
  Buffer wide(count * sizeof(float));
  for (int64_t i = 0; i < count; ++i) {
    APFloat value(*half, APInt(16, e->as<uint16_t>()[i]));
    bool lost;
    value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lost);
    reinterpret_cast<float *>(wide.data())[i] = value.convertToFloat();
  }
  e->owned = std::move(wide);
  e->data = e->owned.data();
  e->width = sizeof(float);
  return e;
}

SmallVector<int64_t> fold::rowMajor(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = (int64_t)shape.size() - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

SmallVector<int64_t> Elements::strides() const {
  return splat ? SmallVector<int64_t>(type.getRank(), 0) : rowMajor(shape());
}

SmallVector<int64_t> Elements::stridesIn(ArrayRef<int64_t> whole) const {
  SmallVector<int64_t> own = strides(), result(whole.size(), 0);
  size_t skipped = whole.size() - own.size();
  for (size_t i = 0; i < own.size(); ++i)
    if (shape()[i] != 1)
      result[skipped + i] = own[i];
  return result;
}

std::optional<SmallVector<int64_t>> fold::integers(Attribute constant) {
  std::optional<Elements> e = Elements::numbers(constant);
  if (!e || !fits(e->type) || !isa<IntegerType>(e->elementType()))
    return std::nullopt;
  SmallVector<int64_t> values(e->type.getNumElements());
  Attribute read = dispatchAny(e->elementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = e->as<T>()[e->splat ? 0 : i];
    return constant;
  });
  if (!read)
    return std::nullopt;
  return values;
}

Attribute fold::fromRaw(RankedTensorType type, ArrayRef<char> bytes) {
  if (type.getNumElements() == 0)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  int64_t width = elementBytes(type.getElementType());
  // Equal elements: each byte is the one `width` before it.
  if ((int64_t)bytes.size() > width && bytes[0] == bytes[bytes.size() - width] &&
      std::memcmp(bytes.data(), bytes.data() + width, bytes.size() - width) == 0)
    bytes = bytes.take_front(width);
  if (type.getElementType().isInteger(1))
    return DenseElementsAttr::get(type,
                                  ArrayRef<bool>(reinterpret_cast<const bool *>(bytes.data()), bytes.size()));
  return DenseElementsAttr::getFromRawBuffer(type, bytes);
}

Attribute fold::fromNumbers(RankedTensorType type, ArrayRef<char> bytes) {
  const llvm::fltSemantics *half = halfSemantics(type.getElementType());
  if (!half)
    return fromRaw(type, bytes);
  int64_t count = bytes.size() / sizeof(float);
  Buffer narrow(count * 2);
  for (int64_t i = 0; i < count; ++i) {
    APFloat value(reinterpret_cast<const float *>(bytes.data())[i]);
    bool lost;
    value.convert(*half, APFloat::rmNearestTiesToEven, &lost);
    reinterpret_cast<uint16_t *>(narrow.data())[i] = value.bitcastToAPInt().getZExtValue();
  }
  return fromRaw(type, narrow);
}

bool fold::isSplatOf(Attribute constant, double value) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(constant);
  if (!dense || !dense.isSplat())
    return false;
  std::optional<Elements> e = Elements::numbers(dense);
  if (!e)
    return false;
  return (bool)dispatchAny(e->elementType(), [&](auto tag) -> Attribute {
    return (double)*e->as<decltype(tag)>() == value ? constant : Attribute();
  });
}

bool fold::fits(ArrayRef<Type> types) {
  return llvm::all_of(types, [](Type type) { return numElements(type) <= kMaxElements; });
}
