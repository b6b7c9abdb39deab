//===- Graph.h - the graph dialect: what is computed ------------*- C++ -*-===//
//
// The one header of the dialect. See GraphBase.td for what it means.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPH_H
#define DSOPT_DIALECT_GRAPH_GRAPH_H

#include "dsopt/Interfaces/Caches.h"
#include "dsopt/Interfaces/Enums.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace dsopt::graph {
/// What graph.read, graph.accumulate and graph.write have effects on.
struct StateResource : public mlir::SideEffects::Resource::Base<StateResource> {
  llvm::StringRef getName() final { return "graph state"; }
};

/// The function of a model; those that a micro-batch, the update and an evaluation of it are.
inline constexpr llvm::StringLiteral kForwardFunction = "forward", kMicroBatchFunction = "micro_batch",
                                     kUpdateFunction = "update", kEvaluateFunction = "evaluate";

/// Attributes that stages leave on operations and functions; GraphAttributes.cpp checks where each stands
/// and what it is.
/// The block (i64) an operation or function belongs to.
inline constexpr llvm::StringLiteral kBlockAttr = "graph.block";
/// On a segment: which of the parts of its block and phase it is, from 0 (i64); absent: the first.
inline constexpr llvm::StringLiteral kPartAttr = "graph.part";
/// F, B or W of a training step, E of an evaluation (graph::PhaseAttr).
inline constexpr llvm::StringLiteral kPhaseAttr = "graph.phase";
/// On a kernel function: what its loop runs over (graph::IterationAttr).
inline constexpr llvm::StringLiteral kIterateAttr = "graph.iterate";
/// On a kernel function: the extents of the dimensions the loop runs over.
inline constexpr llvm::StringLiteral kRangeAttr = "graph.range";
/// On a kernel function: the argument that each result replaces. Behind the arguments are numbers of results
/// that replace none, in their order.
inline constexpr llvm::StringLiteral kInPlaceAttr = "graph.in_place";
/// On the function of what comes between the kernels of a rule that sees whole matrices, or parameters.
inline constexpr llvm::StringLiteral kMatrixUpdateAttr = "graph.matrix_update";
/// On an argument of such a function: its role, where it is what the rule keeps of a whole parameter. Results
/// behind the first replace them, in their order.
inline constexpr llvm::StringLiteral kWholeStateAttr = "graph.whole_state";
/// On the module: the number of its blocks (i64).
inline constexpr llvm::StringLiteral kBlocksAttr = "graph.blocks";
/// On the module: the model's file and the folder it lies in; the folder of its weights where that is
/// another; the globs of the initializers whose uses became parameters of their own.
inline constexpr llvm::StringLiteral kModelAttr = "graph.model", kModelFolderAttr = "graph.model_folder",
                                     kWeightsFolderAttr = "graph.weights_folder", kUntieAttr = "graph.untie";
/// On the module: the narrow element type (a type) that all the model's parameters have, if they have one.
inline constexpr llvm::StringLiteral kModelTypeAttr = "graph.model_type";
/// On the module: what place-values takes a micro-batch's forward and backward for with what it cut, and what
/// no choice of cuts is below (i64 picoseconds of a rank of as many as there are tensor shards).
inline constexpr llvm::StringLiteral kShardCostAttr = "graph.shard_cost",
                                     kShardBoundAttr = "graph.shard_bound";
/// On the module: how many ranks exchange heads in attention of sequence shards, `group` of them, and what
/// each of the possible `groups` sends and takes (dictionaries of i64s).
inline constexpr llvm::StringLiteral kSequenceGroupsAttr = "graph.sequence_groups";
/// On an argument that no data gives (unit): the loss's gradient; what random numbers follow from
/// (Context.h).
inline constexpr llvm::StringLiteral kSeedAttr = "graph.seed", kContextAttr = "graph.context";
/// On an argument: the model's element type (a type), where it is computed in f32 instead.
inline constexpr llvm::StringLiteral kSourceAttr = "graph.source";
/// On an argument: what its elements are below and what the least may be (i64), where they are indices.
inline constexpr llvm::StringLiteral kBoundAttr = "graph.bound", kLeastAttr = "graph.least";
/// On an argument: the loss compares with it (unit), but for rows with this label (i64).
inline constexpr llvm::StringLiteral kLabelAttr = "graph.label", kIgnoreIndexAttr = "graph.ignore_index";
/// On an argument or result of a function: its name in the model.
inline constexpr llvm::StringLiteral kNameAttr = "graph.name";

/// Elements of a type of static shape.
inline int64_t numElements(mlir::Type type) { return llvm::cast<mlir::ShapedType>(type).getNumElements(); }
/// Bytes an element takes in memory: i1 takes one.
inline int64_t elementBytes(mlir::Type elementType) { return (elementType.getIntOrFloatBitWidth() + 7) / 8; }
/// Bytes of a value of static shape.
inline int64_t numBytes(mlir::Type type) {
  auto shaped = llvm::cast<mlir::ShapedType>(type);
  return shaped.getNumElements() * elementBytes(shaped.getElementType());
}
/// The shape two operands broadcast to, or failure (numpy's rule).
llvm::FailureOr<llvm::SmallVector<int64_t>> broadcastShapes(llvm::ArrayRef<int64_t> lhs,
                                                            llvm::ArrayRef<int64_t> rhs);
} // namespace dsopt::graph

#include "dsopt/Dialect/Graph/GraphDialect.h.inc"
#include "dsopt/Dialect/Graph/GraphEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dsopt/Dialect/Graph/GraphAttrs.h.inc"
#define GET_OP_CLASSES
#include "dsopt/Dialect/Graph/GraphOps.h.inc"

namespace dsopt::graph {
/// A symbol that is free: the one wanted, or that with a mark behind it. Models choose their parameters'
/// names.
std::string freeSymbol(const mlir::SymbolTable &symbols, const llvm::Twine &wanted);
/// The phase of an operation or a function, if it has one.
std::optional<Phase> getPhase(mlir::Operation *op);
/// What a kernel function's loop runs over; none of other functions.
std::optional<Iteration> getIteration(mlir::Operation *kernel);
/// The type a parameter is read and written in: the model's, with the element type of its `storage`.
mlir::Type storedType(ParameterOp parameter);
/// The functions of an update rule's operation; null where it has none yet.
struct UpdateFunctions {
  mlir::SymbolRefAttr kernel, direction, frozen, local, localDirection, join, matrix;
  /// All that are flat kernels.
  std::array<mlir::SymbolRefAttr *, 6> kernels() {
    return {&kernel, &direction, &frozen, &local, &localDirection, &join};
  }
};
UpdateFunctions getFunctions(mlir::Operation *rule);
void setFunctions(mlir::Operation *rule, const UpdateFunctions &functions);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_GRAPH_H
