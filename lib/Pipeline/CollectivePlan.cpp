//===- CollectivePlan.cpp - what each collective of a step sends ----------===//

#include "CollectivePlan.h"

#include "dsopt/Analysis/Exec/Traffic.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Pipeline/Plan.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// A step's equal collectives: of one kind and buffer, over one communicator. Bytes are those of all calls.
struct Row {
  int64_t calls = 0, bytes = 0, padding = 0;
  std::optional<int64_t> logical;
};
using Rows = llvm::MapVector<std::tuple<Traffic, StringRef, StringRef>, Row>;

struct KindOfStep {
  ProgramKind kind;
  StringLiteral name;   ///< in JSON
  StringLiteral spoken; ///< empty: a step of no particular kind
};
} // namespace

static constexpr KindOfStep kKinds[] = {
    {ProgramKind::Step, "step", ""},
    {ProgramKind::DelayedStep, "delayed", ", updates a step behind"},
    {ProgramKind::FrozenStep, "frozen", ", behind the freeze"},
    {ProgramKind::CompressedStep, "compressed", ", compressed"},
    {ProgramKind::LocalStep, "local", ", local"},
    {ProgramKind::JoinStep, "join", ", in which ranks join"},
    {ProgramKind::FirstFrozenStep, "first", ", the first behind the freeze"}};

/// Rows of each position's program.
static SmallVector<Rows> collectRows(ModuleOp module, ProgramKind kind) {
  SmallVector<Rows> all;
  for (const std::vector<SentBytes> &sent : collectTraffic(module, getPrograms(module, kind))) {
    Rows &rows = all.emplace_back();
    for (const SentBytes &one : sent) {
      Row &row = rows[{one.kind, one.buffer.getValue(), one.over.getValue()}];
      ++row.calls;
      row.bytes += one.bytes;
      row.padding += one.padding;
      if (one.logical)
        row.logical = row.logical.value_or(0) + *one.logical;
    }
  }
  return all;
}

void dsopt::writeCollectives(ModuleOp module, llvm::json::OStream &json) {
  for (const KindOfStep &step : kKinds)
    for (auto [stage, rows] : llvm::enumerate(collectRows(module, step.kind)))
      for (const auto &[key, row] : rows)
        json.object([&, stage = stage, &key = key, &row = row] {
          auto [kind, buffer, over] = key;
          json.attribute("step", step.name);
          json.attribute("stage", static_cast<int64_t>(stage));
          json.attribute("kind", stringifyTraffic(kind));
          json.attribute("buffer", buffer);
          json.attribute("over", over);
          json.attribute("calls", row.calls);
          json.attribute("bytes", row.bytes);
          json.attribute("padding", row.padding);
          json.attribute("logical", row.logical.value_or(row.bytes));
        });
}

/// The table of one position's program.
static void printRows(const Rows &rows, llvm::raw_ostream &out) {
  size_t width = 8;
  for (const auto &[key, row] : rows)
    width = std::max(width, std::get<1>(key).size());
  auto line = [&](StringRef kind, StringRef buffer, StringRef over, const std::string &calls,
                  const std::string &bytes, const std::string &logical, const std::string &times) {
    std::string text = llvm::formatv("{0} {1}  {2} {3,6} {4,14} {5,14} {6,7}", llvm::left_justify(kind, 15),
                                     llvm::left_justify(buffer, width), llvm::left_justify(over, 8), calls,
                                     bytes, logical, times);
    out << StringRef(text).rtrim() << "\n";
  };
  line("sent", "buffer", "over", "calls", "bytes", "stand for", "times");
  Row sum;
  for (const auto &[key, row] : rows) {
    auto [kind, buffer, over] = key;
    int64_t bytes = row.bytes + row.padding;
    sum.calls += row.calls;
    sum.bytes += bytes;
    line(stringifyTraffic(kind), buffer, over, std::to_string(row.calls), std::to_string(bytes),
         row.logical ? std::to_string(*row.logical) : "",
         row.logical && row.bytes ? llvm::formatv("{0:F2}", double(*row.logical) / row.bytes).str() : "");
  }
  line("all", "", "", std::to_string(sum.calls), std::to_string(sum.bytes), "", "");
}

void dsopt::printCollectives(ModuleOp module, llvm::raw_ostream &out) {
  bool freezes = !getPrograms(module, ProgramKind::FrozenStep).empty();
  for (const KindOfStep &step : kKinds)
    for (auto [stage, rows] : llvm::enumerate(collectRows(module, step.kind))) {
      bool isBefore = freezes && step.kind == ProgramKind::Step;
      out << llvm::formatv("each rank of stage {0}, a step{1}\n", stage,
                           isBefore ? ", before the freeze" : step.spoken);
      printRows(rows, out);
      out << "\n";
    }
  out << "bytes      that a rank sends in a step, with the padding of buckets\n"
         "stand for  of what is compressed: the bytes that would be sent without\n";
}
