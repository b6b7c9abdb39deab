//===- GraphAttributes.cpp - the graph dialect's attributes on others -----===//

#include "dsopt/Dialect/Graph/LocalStep.h"
#include "dsopt/Dialect/Graph/Metrics.h"
#include "dsopt/Dialect/Graph/Statistics.h"
#include "dsopt/Interfaces/AttributeTable.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

LogicalResult RunsAttr::verify(function_ref<InFlightDiagnostic()> emit, int64_t length, int64_t stride,
                               int64_t step) {
  if (length < 1 || stride < length || step < 0)
    return emit() << "got runs of " << length << " elements every " << stride << " and a step of " << step
                  << ", expected one element or more, a stride of at least as many and no step back";
  return success();
}

static const AttributeKind kPhaseKind = {"a phase: #graph.phase<F>, <B>, <W> or <E>", isAttribute<PhaseAttr>};
static const AttributeKind kIterateKind = {
    "what a kernel runs over: #graph.iteration<rows>, <columns> or <flat>", isAttribute<IterationAttr>};
static const AttributeKind kMetricKind = {"a metric: #graph.metric<\"NAME\", COMBINE>",
                                          isAttribute<MetricAttr>};

static constexpr llvm::StringLiteral kComputing[] = {"graph.", "func.call", "dist.",
                                                     "a plugin that makes tensors"};

/// Plugins have operations of their own between those of the graph.
static bool isComputing(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  bool makesTensors =
      op->getNumResults() > 0 && llvm::all_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
  return dialect == "graph" || dialect == "dist" || isa<func::CallOp>(op) || makesTensors;
}

using On = AttributePlace;
static const AttributeRow kAttributes[] = {
    {kBlockAttr, On::Function, kCountKind},
    {kBlockAttr, On::Operation, kCountKind, kComputing, isComputing},
    {kPhaseAttr, On::Function, kPhaseKind},
    {kPhaseAttr, On::Operation, kPhaseKind, kComputing, isComputing},
    {kPartAttr, On::Function, kCountKind},
    {kIterateAttr, On::Function, kIterateKind},
    {kRangeAttr, On::Function, kExtentsKind},
    {kInPlaceAttr, On::Function, kExtentsKind},
    {kOffsetAttr, On::Function, kCountKind},
    {kMatrixUpdateAttr, On::Function, kUnitKind},
    {kWholeStateAttr, On::Argument, kTextKind},
    {kStatisticAttr, On::Result, kSymbolKind},
    {kMomentumAttr, On::Result, kFactorKind},
    {kSequentialAttr, On::Result, kUnitKind},
    {kMetricAttr, On::Result, kMetricKind},
    {kOutputAttr, On::Result, kTextKind},
    {kPredictionAttr, On::Result, kTextKind},
    {kShapeAttr, On::Result, kExtentsKind},
    {kNameAttr, On::Argument, kTextKind},
    {kNameAttr, On::Result, kTextKind},
    {kSeedAttr, On::Argument, kUnitKind},
    {kContextAttr, On::Argument, kUnitKind},
    {kSourceAttr, On::Argument, kTypeKind},
    {kBoundAttr, On::Argument, kIntegerKind},
    {kLeastAttr, On::Argument, kIntegerKind},
    {kLabelAttr, On::Argument, kUnitKind},
    {kIgnoreIndexAttr, On::Argument, kIntegerKind},
    {kBlocksAttr, On::Module, kCountKind},
    {kModelTypeAttr, On::Module, kTypeKind},
    {kModelAttr, On::Module, kTextKind},
    {kModelFolderAttr, On::Module, kTextKind},
    {kWeightsFolderAttr, On::Module, kTextKind},
    {kUntieAttr, On::Module, kTextsKind},
    {kShardCostAttr, On::Module, kCountKind},
    {kShardBoundAttr, On::Module, kCountKind},
    {kSequenceGroupsAttr, On::Module, kDictionariesKind},
};

LogicalResult GraphDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  return verifyAttribute(kAttributes, op, attribute);
}

LogicalResult GraphDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                     NamedAttribute attribute) {
  return verifyArgumentAttribute(kAttributes, op, argument, attribute);
}

LogicalResult GraphDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned result,
                                                        NamedAttribute attribute) {
  return verifyResultAttribute(kAttributes, op, result, attribute);
}
