//===- ShardedReductionOpInterface.td - a reduction by shards ---------------===//
#ifndef DSOPT_INTERFACES_SHARDEDREDUCTION
#define DSOPT_INTERFACES_SHARDEDREDUCTION
include "mlir/IR/OpBase.td"

def ShardedReductionOpInterface : OpInterface<"ShardedReductionOpInterface"> {
  let cppNamespace = "::dsopt";
  let description = [{
    How an operation that sees a dimension whole, but does not add over it, is computed from shards
    of that dimension: a table's rows that indices choose, a loss over a vocabulary. Sums need no
    such rule: place-values adds what shards have of them. Attached by external models
    (lib/Dialect/Graph/GraphShards.cpp).
  }];
  let methods = [
    InterfaceMethod<[{
      Whether shards of an operand, cut along `dim`, can make the whole results together. All other
      operands are whole.
    }], "bool", "canReduceShards", (ins "unsigned":$operand, "int64_t":$dim)>,
    InterfaceMethod<[{
      Builds the whole results, one value a result, of what the shards of this rank have.
    }], "::llvm::SmallVector<::mlir::Value>", "reduceShards",
    (ins "::mlir::OpBuilder &":$builder, "const ::dsopt::OperandShards &":$shards)>
  ];
}
#endif
