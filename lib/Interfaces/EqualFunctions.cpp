//===- EqualFunctions.cpp - functions that compute the same ---------------===//

#include "dsopt/Interfaces/EqualFunctions.h"

#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace dsopt;

static size_t hashOf(func::FuncOp function, Attribute traits) {
  llvm::hash_code hash = llvm::hash_combine(function.getFunctionType(), traits);
  function.getBody().walk([&](Operation *op) {
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(op, OperationEquivalence::ignoreHashValue,
                                                                   OperationEquivalence::ignoreHashValue,
                                                                   OperationEquivalence::IgnoreLocations));
  });
  // Less than what mark empty places of the map.
  return size_t(hash) >> 1;
}

func::FuncOp EqualFunctions::findOrInsert(func::FuncOp function, Attribute traits) {
  SmallVector<Entry, 1> &list = entries[hashOf(function, traits)];
  for (const Entry &entry : list) {
    func::FuncOp known = entry.function;
    if (known.getFunctionType() == function.getFunctionType() && entry.traits == traits &&
        OperationEquivalence::isRegionEquivalentTo(&known.getBody(), &function.getBody(),
                                                   OperationEquivalence::IgnoreLocations))
      return known;
  }
  list.push_back({function, traits});
  ++count;
  return function;
}
