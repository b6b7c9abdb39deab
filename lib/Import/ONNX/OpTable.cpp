//===- OpTable.cpp - the operators that can be imported --------------------===//

#include "OpTable.h"

namespace dsopt::onnx_import {

const OpRow *findOp(StringRef name) {
  static const llvm::StringMap<OpRow> *table = [] {
    auto *rows = new llvm::StringMap<OpRow>();
    for (ArrayRef<OpRow> family : {activationOps(), attentionOps(), einsumOps(), elementwiseOps(), indexOps(),
                                   lossOps(), movementOps(), normalizationOps(), productOps(), recurrentOps(),
                                   reductionOps(), resizeOps(), sequenceOps(), shapeOps(), windowOps()})
      for (const OpRow &row : family)
        rows->try_emplace(row.name, row);
    return rows;
  }();
  auto found = table->find(name);
  return found == table->end() ? nullptr : &found->second;
}

} // namespace dsopt::onnx_import
