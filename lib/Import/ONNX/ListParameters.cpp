//===- ListParameters.cpp - what became of the initializers ----------------===//

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Import/ImportONNX.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace dsopt;

StringRef dsopt::nameOf(ImportReport::Use use) {
  static const StringLiteral names[] = {"trained", "frozen", "constant", "unused"};
  return names[use];
}

static std::string textOf(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (int64_t size : type.getShape())
    stream << size << "x";
  stream << type.getElementType();
  return text;
}

std::vector<ImportReport::Initializer> dsopt::parametersOf(ModuleOp module) {
  std::vector<ImportReport::Initializer> rows;
  for (auto parameter : module.getOps<graph::ParameterOp>()) {
    auto type = cast<RankedTensorType>(parameter.getType());
    ImportReport::Use use = !parameter.getFrozen()    ? ImportReport::Trained
                            : parameter.getConstant() ? ImportReport::Constant
                                                      : ImportReport::Frozen;
    rows.push_back({parameter.getModelName().str(),
                    RankedTensorType::get(type.getShape(), parameter.getSourceType()), use,
                    parameter.getWhy().value_or("").str()});
  }
  return rows;
}

void dsopt::writeParameters(ArrayRef<ImportReport::Initializer> initializers, llvm::json::OStream &json) {
  json.array([&] {
    for (const ImportReport::Initializer &row : initializers)
      json.object([&] {
        json.attribute("name", llvm::json::fixUTF8(row.name));
        json.attribute("type", textOf(row.type));
        json.attribute("bytes", graph::numBytes(row.type));
        json.attribute("use", nameOf(row.use));
        json.attribute("why", row.why);
        json.attribute("in_doubt", row.inDoubt);
      });
  });
}

void dsopt::listParameters(ArrayRef<ImportReport::Initializer> initializers, bool json,
                           llvm::raw_ostream &os) {
  if (json) {
    llvm::json::OStream stream(os, 1);
    writeParameters(initializers, stream);
    stream.flush();
    os << "\n";
    return;
  }
  using Row = std::array<std::string, 5>;
  std::vector<Row> rows{{"name", "type", "bytes", "use", "why"}};
  int64_t trained = 0, elements = 0, bytes = 0;
  for (const ImportReport::Initializer &one : initializers) {
    rows.push_back({one.name, textOf(one.type), std::to_string(graph::numBytes(one.type)),
                    nameOf(one.use).str(), one.why + (one.inDoubt ? " (in doubt)" : "")});
    if (one.use != ImportReport::Trained)
      continue;
    ++trained;
    elements += one.type.getNumElements();
    bytes += graph::numBytes(one.type);
  }
  std::array<size_t, 5> widths{};
  for (const Row &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  for (const Row &row : rows)
    os << llvm::left_justify(row[0], widths[0]) << "  " << llvm::left_justify(row[1], widths[1]) << "  "
       << llvm::right_justify(row[2], widths[2]) << "  " << llvm::left_justify(row[3], widths[3]) << "  "
       << row[4] << "\n";
  os << trained << " of " << rows.size() - 1 << " initializers are trained: " << elements << " elements, "
     << bytes << " bytes\n";
}

std::string dsopt::summarizeParameters(ArrayRef<ImportReport::Initializer> initializers) {
  llvm::MapVector<StringRef, int64_t> others;
  int64_t trained = 0, used = 0;
  for (const ImportReport::Initializer &one : initializers) {
    // Numbers that operators mean as such are nobody's weights.
    bool isNumber = one.use == ImportReport::Constant && one.type.getNumElements() == 1;
    if (one.use == ImportReport::Unused || isNumber)
      continue;
    ++used;
    if (one.use == ImportReport::Trained)
      ++trained;
    else
      ++others[one.why];
  }
  if (others.empty())
    return "";
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << trained << " of " << used << " initializers are trained; left as they are: ";
  llvm::interleaveComma(others, stream,
                        [&](auto &entry) { stream << entry.first << " (" << entry.second << ")"; });
  stream << "; -list-parameters names them";
  return text;
}
