//===- ListParameters.cpp - a table of the parameters ----------------------===//

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Import/ImportONNX.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

void dsopt::listParameters(ModuleOp module, llvm::raw_ostream &os) {
  struct Row {
    std::string name, type, bytes, use;
  };
  std::vector<Row> rows{{"name", "type", "bytes", "use"}};
  int64_t trained = 0, elements = 0, bytes = 0;
  for (auto parameter : module.getOps<graph::ParameterOp>()) {
    auto type = cast<RankedTensorType>(parameter.getType());
    std::string text;
    llvm::raw_string_ostream stream(text);
    for (int64_t size : type.getShape())
      stream << size << "x";
    stream << type.getElementType();
    std::string use = "trained";
    if (parameter.getFrozen())
      use = ("frozen (" + parameter.getWhy().value_or("?") + ")").str();
    rows.push_back({parameter.getSymName().str(), text, std::to_string(parameter.getBytes()), use});
    trained += !parameter.getFrozen();
    elements += parameter.getFrozen() ? 0 : type.getNumElements();
    bytes += parameter.getFrozen() ? 0 : parameter.getBytes();
  }
  size_t widths[3] = {0, 0, 0};
  for (const Row &row : rows) {
    widths[0] = std::max(widths[0], row.name.size());
    widths[1] = std::max(widths[1], row.type.size());
    widths[2] = std::max(widths[2], row.bytes.size());
  }
  for (const Row &row : rows)
    os << llvm::left_justify(row.name, widths[0]) << "  " << llvm::left_justify(row.type, widths[1]) << "  "
       << llvm::right_justify(row.bytes, widths[2]) << "  " << row.use << "\n";
  os << trained << " of " << rows.size() - 1 << " parameters are trained: " << elements << " elements, "
     << bytes << " bytes\n";
}
