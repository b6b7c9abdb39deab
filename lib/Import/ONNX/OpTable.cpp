//===- OpTable.cpp - the operators that can be imported --------------------===//

#include "OpTable.h"

namespace dsopt::onnx_import {

/// By domain, then by name.
using Table = llvm::StringMap<llvm::StringMap<OpRow>>;

static const Table &opTable() {
  static const Table *table = [] {
    auto *rows = new Table();
    for (ArrayRef<OpRow> family :
         {activationOps(), attentionOps(), controlFlowOps(), einsumOps(), elementwiseOps(), fourierOps(),
          indexOps(), lossOps(), movementOps(), normalizationOps(), productOps(), randomOps(), recurrentOps(),
          reductionOps(), resizeOps(), samplingOps(), sequenceOps(), shapeOps(), windowOps()})
      for (const OpRow &row : family)
        (*rows)[""].try_emplace(row.name, row);
    for (const OpRow &row : dsoptOps())
      (*rows)[kDsoptDomain].try_emplace(row.name, row);
    return rows;
  }();
  return *table;
}

const OpRow *findOp(StringRef domain, StringRef name) {
  auto rows = opTable().find(isOnnx(domain) ? "" : domain);
  if (rows == opTable().end())
    return nullptr;
  auto found = rows->second.find(name);
  return found == rows->second.end() ? nullptr : &found->second;
}

} // namespace dsopt::onnx_import

void dsopt::listOperators(llvm::raw_ostream &os) {
  std::vector<const onnx_import::OpRow *> rows;
  for (const auto &entry : onnx_import::opTable().find("")->second)
    rows.push_back(&entry.second);
  llvm::sort(rows, [](const auto *a, const auto *b) { return a->name < b->name; });
  for (const onnx_import::OpRow *row : rows)
    os << row->name << " " << std::max(row->since, onnx_import::kMinOpset) << " " << row->until << "\n";
}
