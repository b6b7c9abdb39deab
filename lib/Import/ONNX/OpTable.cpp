//===- OpTable.cpp - the operators that can be imported --------------------===//

#include "OpTable.h"

namespace dsopt::onnx_import {

static const llvm::StringMap<OpRow> &opTable() {
  static const llvm::StringMap<OpRow> *table = [] {
    auto *rows = new llvm::StringMap<OpRow>();
    for (ArrayRef<OpRow> family : {activationOps(), attentionOps(), einsumOps(), elementwiseOps(), indexOps(),
                                   lossOps(), movementOps(), normalizationOps(), productOps(), recurrentOps(),
                                   reductionOps(), resizeOps(), sequenceOps(), shapeOps(), windowOps()})
      for (const OpRow &row : family)
        rows->try_emplace(row.name, row);
    return rows;
  }();
  return *table;
}

const OpRow *findOp(StringRef name) {
  auto found = opTable().find(name);
  return found == opTable().end() ? nullptr : &found->second;
}

} // namespace dsopt::onnx_import

void dsopt::listOperators(llvm::raw_ostream &os) {
  std::vector<const onnx_import::OpRow *> rows;
  for (const auto &entry : onnx_import::opTable())
    rows.push_back(&entry.second);
  llvm::sort(rows, [](const auto *a, const auto *b) { return a->name < b->name; });
  for (const onnx_import::OpRow *row : rows)
    os << row->name << " " << std::max(row->since, onnx_import::kMinOpset) << " " << row->until << "\n";
}
