//===- GraphCaches.cpp - verifiers of what keeps rows ----------------------===//

#include "GraphSupport.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

SmallVector<KeptRows> CachedAttentionOp::getCaches() {
  return {{getKeysAttr(), getK()}, {getValuesAttr(), getV()}};
}

LogicalResult CachedAttentionOp::verify() {
  ArrayRef<int64_t> q = tensorType(getQ()).getShape(), k = tensorType(getK()).getShape(),
                    v = tensorType(getV()).getShape();
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || q[0] != 1 || k[0] != 1 || v[0] != 1 ||
      q[2] != k[2] || q[2] != v[2] || q[3] != k[3] || k[1] != v[1] || k[1] == 0 || q[1] % k[1])
    return emitOpError("has operands of types ")
           << getQ().getType() << ", " << getK().getType() << " and " << getV().getType()
           << ", expected [1, heads, R, D], [1, key heads, R, D] and [1, key heads, R, E], key heads "
              "dividing "
              "heads";
  Type i64 = IntegerType::get(getContext(), 64);
  for (Value place : {getSlots(), getPositions()})
    if (auto type = RankedTensorType::get({q[2]}, i64); place.getType() != type)
      return emitOpError("has rows placed by ") << place.getType() << ", expected " << type;
  auto type = RankedTensorType::get({1, q[1], q[2], v[3]}, tensorType(getV()).getElementType());
  if (getResult().getType() != type)
    return emitOpError("has a result of type ") << getResult().getType() << ", expected " << type;
  return success();
}

LogicalResult CachedAttentionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  SmallVector<int64_t> positions;
  for (const KeptRows &kept : getCaches()) {
    auto cache = symbols.lookupNearestSymbolFrom<CacheOp>(*this, kept.cache);
    if (!cache)
      return emitOpError("names ") << kept.cache << ", which is no cache of this module";
    ArrayRef<int64_t> shape = cast<ShapedType>(cache.getType()).getShape(),
                      rows = tensorType(kept.rows).getShape();
    if (shape.size() != 4 || shape[1] != rows[1] || shape[3] != rows[3])
      return emitOpError("keeps rows of ")
             << kept.rows.getType() << " in " << kept.cache << " of type " << cache.getType()
             << ", expected [slots, " << rows[1] << ", positions, " << rows[3] << "]";
    positions.append({shape[0], shape[2]});
  }
  if (ArrayRef(positions).take_front(2) != ArrayRef(positions).drop_front(2))
    return emitOpError("has ") << positions[0] << " slots of " << positions[1] << " positions for keys, but "
                               << positions[2] << " of " << positions[3] << " for values";
  if (!getMask())
    return success();
  ArrayRef<int64_t> mask = tensorType(getMask()).getShape(), q = tensorType(getQ()).getShape();
  if (mask.size() != 4 || mask[0] != 1 || (mask[1] != 1 && mask[1] != q[1]) ||
      (mask[2] != 1 && mask[2] != q[2]) || mask[3] != positions[1])
    return emitOpError("has a mask of type ") << getMask().getType() << ", expected [1, 1 or " << q[1]
                                              << ", 1 or " << q[2] << ", " << positions[1] << "]";
  return success();
}
