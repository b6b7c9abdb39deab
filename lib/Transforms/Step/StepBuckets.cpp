//===- StepBuckets.cpp - the buckets that a step finishes -----------------===//

#include "StepBuckets.h"
#include "dsopt/Analysis/Exec/LaterSteps.h"
#include "dsopt/Dialect/Graph/LocalStep.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Transforms/Step/Passes.h"

#include <set>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// The states that a segment replaces.
static SmallVector<std::pair<StringAttr, int64_t>> readWholeStates(func::FuncOp segment) {
  SmallVector<std::pair<StringAttr, int64_t>> states;
  for (unsigned i = 0; segment && i < segment.getNumArguments(); ++i)
    if (auto role = segment.getArgAttrOfType<StringAttr>(i, graph::kWholeStateAttr))
      states.emplace_back(role, cast<ShapedType>(segment.getArgumentTypes()[i]).getNumElements());
  return states;
}

/// Which kernel of @update changes each bucket, by what the kernels read.
static LogicalResult readKernels(ModuleOp module, StepBuckets &step) {
  SymbolTable symbols(module);
  struct Kernels {
    SymbolRefAttr update, direction, local;
  };
  llvm::DenseMap<Attribute, Kernels> kernels; ///< by parameter that they, or whose state they, read
  if (auto update = symbols.lookup<func::FuncOp>(graph::kUpdateFunction))
    update.walk([&](Operation *op) {
      auto [kernel, direction, frozen, alone, aloneDirection, join, matrix] = graph::getFunctions(op);
      SymbolRefAttr local;
      // What the freeze changes is where the step goes; by which of the two kernels, where there are two.
      if (kernel && step.frozen)
        (direction ? direction : kernel) = step.kind == ProgramKind::LocalStep  ? alone
                                           : step.kind == ProgramKind::JoinStep ? join
                                                                                : frozen;
      if (step.kind == ProgramKind::JoinStep)
        local = aloneDirection;
      for (Value operand : op->getOperands())
        if (auto read = operand.getDefiningOp<graph::ReadOp>(); kernel && read) {
          FlatSymbolRefAttr parameter = graph::parameterRead(read, symbols);
          kernels[parameter] = {kernel, direction, local};
          if (!matrix)
            continue;
          Operation *segment = symbols.lookup(matrix.getLeafReference());
          auto scratch = segment ? segment->getAttrOfType<IntegerAttr>(kTempAttr) : IntegerAttr();
          bool seesNorms = cast<OptimizerOpInterface>(op).getScope() == UpdateScope::Tensors;
          auto trained = symbols.lookup<graph::ParameterOp>(parameter.getAttr());
          step.matrices[parameter] = {trained ? graph::seenWhole(trained) : parameter.getAttr(),
                                      cast<FlatSymbolRefAttr>(matrix), scratch ? scratch.getInt() : 0,
                                      seesNorms, readWholeStates(dyn_cast_or_null<func::FuncOp>(segment))};
        }
    });
  for (PlacedBucket &bucket : step.buckets) {
    if (bucket.frozen)
      continue;
    SymbolRefAttr &known = step.kernels[bucket.op.getSymNameAttr()];
    for (auto range : bucket.op.getRanges().getAsRange<dist::RangeAttr>()) {
      auto [kernel, direction, local] = kernels.lookup(range.getParameter());
      if (!kernel)
        return bucket.op.emitOpError("holds ")
               << range.getParameter() << ", which no operation of @update with a kernel reads";
      if (known && known != kernel)
        return bucket.op.emitOpError("holds parameters that ")
               << known << " and " << kernel << " update, expected one kernel";
      known = kernel;
      if (direction)
        step.directions[bucket.op.getSymNameAttr()] = direction;
      if (local)
        step.locals[bucket.op.getSymNameAttr()] = local;
    }
  }
  return success();
}

FailureOr<StepBuckets> dsopt::readStepBuckets(ModuleOp module, ArrayRef<ProgramOp> programs) {
  StepBuckets step;
  step.isForDevice = isForDevice(module);
  step.delays = options::delayed_update(module).value_or(0) != 0;
  step.lags = ProgramOp(programs.front()).getKind() == ProgramKind::DelayedStep;
  step.kind = ProgramOp(programs.front()).getKind();
  step.frozen = hasOwnGradients(step.kind);
  step.gathersParameters = gathersParameters(module);
  std::set<std::pair<double, double>> groups;
  for (auto parameter : module.getOps<graph::ParameterOp>()) {
    if (parameter.getFrozen())
      continue;
    groups.insert({parameter.learningRateFactor(), parameter.decayFactor()});
  }
  step.scalarGroups = std::max<int64_t>(groups.size(), 1);
  for (auto op : module.getOps<dist::BucketOp>()) {
    PlacedBucket bucket(op);
    bucket.useStages.assign(op.getBlocks().size(), -1);
    bucket.accumulated.assign(op.getBlocks().size(), false);
    step.buckets.push_back(std::move(bucket));
  }
  for (ProgramOp program : programs) {
    ProgramBuilder out(program);
    BucketBuffers buffers(out);
    llvm::DenseMap<Attribute, int64_t> holders; ///< of parameters, by buffer
    for (auto [index, bucket] : llvm::enumerate(step.buckets))
      if (BufferOp buffer = out.find(BufferRole::Stored, bucket.name()))
        holders[FlatSymbolRefAttr::get(buffer.getSymNameAttr())] = index;
    for (PlacedBucket &bucket : step.buckets)
      for (auto [use, block] : llvm::enumerate(bucket.op.getBlocks()))
        if (program.hasBlock(block) && buffers.holds(bucket)) {
          bucket.useStages[use] = program.getPosition();
          bucket.accumulated[use] = buffers.accumulates(bucket, use);
        }
    for (auto fold : getSchedule(program).getBody().front().getOps<FoldOp>())
      for (auto target : fold.getTargets().getAsRange<RefAttr>()) {
        auto holder = holders.find(target.getBuffer());
        if (holder == holders.end())
          return fold.emitOpError("changes ") << target.getBuffer() << ", expected a bucket's parameters",
                 failure();
        step.statistics.push_back({holder->second, (int64_t)program.getPosition()});
      }
  }
  for (PlacedBucket &bucket : step.buckets) {
    bucket.place();
    if (step.frozen && !bucket.frozen && !bucket.wholeStates() && !step.gathersParameters)
      return bucket.op.emitOpError("is cut by stage ")
                 << bucket.zero << ", expected 0: where the variance freezes, every rank has all of it",
             failure();
  }
  llvm::erase_if(step.statistics, [&](auto entry) { return step.buckets[entry.first].stages.size() < 2; });
  if (failed(readKernels(module, step)))
    return failure();
  // What is exchanged of gradients outlives the step: all of them are finite before.
  step.updatesLast = (!step.lags && updatesNeedAgreement(module)) || !step.directions.empty() || step.frozen;
  return step;
}
