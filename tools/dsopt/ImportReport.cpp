//===- ImportReport.cpp - what -report=import prints ----------------------===//
//
// Three tables: operators, parameters, idioms. Idioms come from the remarks of
// category "idiom" that the raising passes emit.
//
//===----------------------------------------------------------------------===//

#include "ImportReport.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Pipeline/Pipelines.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace dsopt {
namespace {
/// How often an idiom was raised, or missed for a reason, and the first place.
struct Idiom {
  int64_t count = 0;
  std::string place;
};
/// By name and reason (empty: raised).
using Idioms = std::map<std::pair<std::string, std::string>, Idiom>;

class Collector : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit Collector(std::shared_ptr<Idioms> idioms) : idioms(std::move(idioms)) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    bool isMissed = remark.getRemarkType() == llvm::remarks::Type::Missed;
    Idiom &idiom = (*idioms)[{remark.getRemarkName().str(), isMissed ? remark.getArgs().front().val : ""}];
    if (idiom.count++ == 0)
      if (auto name = dyn_cast<NameLoc>(remark.getLocation())) {
        idiom.place = "'" + name.getName().str() + "'";
        // Where the model says more: the module, whose own place is the file.
        auto behind = dyn_cast<NameLoc>(name.getChildLoc());
        if (behind && isa<NameLoc>(behind.getChildLoc()))
          idiom.place += " of " + behind.getName().str();
      }
  }

private:
  std::shared_ptr<Idioms> idioms;
};
} // namespace

static FailureOr<Idioms> raiseIdioms(ModuleOp module) {
  MLIRContext &context = *module.getContext();
  auto idioms = std::make_shared<Idioms>();
  remark::RemarkCategories categories;
  categories.passed = categories.missed = "idiom";
  if (failed(remark::enableOptimizationRemarks(context, std::make_unique<Collector>(idioms),
                                               std::make_unique<remark::RemarkEmittingPolicyAll>(),
                                               categories)))
    return failure();
  std::vector<std::string> passes = stagePasses(Stage::Graph, Stage::Dist);
  passes.erase(llvm::find(passes, "find-blocks"), passes.end());
  OwningOpRef<ModuleOp> copy = module.clone();
  if (failed(runPipeline(*copy, pipelineText(passes))))
    return failure();
  Idioms found = *idioms;
  return found;
}

static void printOperators(const ImportReport &report, llvm::raw_ostream &os) {
  int64_t needed = 0, folded = 0, calls = 0;
  size_t width = 8;
  for (auto &[name, row] : report.operators) {
    needed += row.nodes;
    folded += row.folded;
    width = std::max(width, name.size());
  }
  for (auto &[name, count] : report.functions)
    calls += count;
  os << "operators   " << needed << " of " << report.nodes << " nodes are imported, " << folded
     << " of them computed while importing\n";
  os << "  " << llvm::left_justify("operator", width) << "   nodes  computed\n";
  for (auto &[name, row] : report.operators)
    os << "  " << llvm::left_justify(name, width)
       << llvm::format("%8lld%10lld\n", (long long)row.nodes, (long long)row.folded);
  if (calls == 0)
    return;
  os << "functions   " << report.functions.size() << " are inlined, in " << calls << " places\n";
  for (auto &[name, count] : report.functions)
    os << "  " << name << "  " << count << "\n";
}

static void printParameters(ModuleOp module, llvm::raw_ostream &os) {
  struct Sum {
    int64_t count = 0, elements = 0;
  };
  std::map<std::string, Sum> frozen;
  Sum trained;
  for (auto parameter : module.getOps<graph::ParameterOp>()) {
    Sum &sum = parameter.getFrozen() ? frozen[parameter.getWhy().value_or("?").str()] : trained;
    ++sum.count;
    sum.elements += cast<RankedTensorType>(parameter.getType()).getNumElements();
  }
  os << "parameters  " << trained.count << " are trained, " << trained.elements << " elements\n";
  for (auto &[why, sum] : frozen)
    os << "  frozen (" << why << "): " << sum.count << ", " << sum.elements << " elements\n";
}

static void printOptions(ArrayRef<ConfiguredOption> carried, llvm::raw_ostream &os) {
  if (carried.empty())
    return;
  os << "options     that the model asks for\n";
  for (const ConfiguredOption &one : carried)
    os << "  -" << one.option << (one.value.empty() ? "" : "=") << one.value << "\n";
}

LogicalResult printImportReport(const ImportReport &report, ModuleOp module,
                                ArrayRef<ConfiguredOption> carried, llvm::raw_ostream &os) {
  FailureOr<Idioms> idioms = raiseIdioms(module);
  if (failed(idioms))
    return failure();
  printOperators(report, os);
  printParameters(module, os);
  printOptions(carried, os);
  os << "idioms      " << (idioms->empty() ? "none" : "raised to one operation before gradients are built")
     << "\n";
  for (auto &[key, idiom] : *idioms)
    if (key.second.empty())
      os << "  " << llvm::left_justify(key.first, 14) << llvm::format("%4lld", (long long)idiom.count)
         << "\n";
  for (auto &[key, idiom] : *idioms)
    if (!key.second.empty())
      os << "  " << llvm::left_justify(key.first, 14) << llvm::format("%4lld", (long long)idiom.count)
         << " not raised: " << key.second << (idiom.place.empty() ? "" : " (first: " + idiom.place + ")")
         << "\n";
  return success();
}

} // namespace dsopt
