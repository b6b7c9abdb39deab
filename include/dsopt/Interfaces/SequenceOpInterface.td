//===- SequenceOpInterface.td - operations that mix positions ---------------===//
#ifndef DSOPT_INTERFACES_SEQUENCE
#define DSOPT_INTERFACES_SEQUENCE
include "mlir/IR/OpBase.td"

def SequenceOpInterface : OpInterface<"SequenceOpInterface"> {
  let cppNamespace = "::dsopt";
  let description = [{
    How an operation that reads columns at each of its rows is computed of parts of a sequence: rows
    of its first operand are by themselves, as soon as they know where they are, and so are heads.
    What is computed row by row needs no such rule: its loops say it. Attached by external models
    (lib/Dialect/Graph/GraphSequence.cpp).
  }];
  let methods = [
    InterfaceMethod<"The dimension of the first operand that positions are along; of columns, too.", "int64_t",
                    "getRowDim">,
    InterfaceMethod<"The dimension of the first operand, and of columns, that heads are along.", "int64_t",
                    "getHeadDim">,
    InterfaceMethod<"The operands that columns are of.", "::llvm::SmallVector<unsigned>", "getColumnOperands">,
    InterfaceMethod<[{
      Says of rows of `whole` that the first is so many behind the first of the whole, and `step` further
      on for each rank along sp.
    }], "void", "placeRows", (ins "::mlir::Operation *":$whole, "int64_t":$first, "int64_t":$step)>,
    InterfaceMethod<[{
      What it is where it is the softmax of scaled products of rows and columns, with an operand that is added to
      them or none: rows of one shard may meet columns of another then. Nothing: all columns are read at once.
    }], "::std::optional<::dsopt::SequenceSoftmax>", "getSoftmax">,
    InterfaceMethod<[{
      Builds what computes the same of rows that come a few at a time, and returns its result. No row reads a column
      behind its own.
    }], "::mlir::Value", "buildPlaced", (ins "::mlir::OpBuilder &":$builder, "const ::dsopt::PlacedRows &":$rows)>
  ];
}

def RankDependentOpInterface : OpInterface<"RankDependentOpInterface"> {
  let cppNamespace = "::dsopt";
  let description = [{What verify-places asks of operations whose results follow from a rank's place.}];
  let methods = [
    InterfaceMethod<"Whether ranks along sp (`time`), or along tp, make other results of the same operands.",
                    "bool", "differsBetweenRanks", (ins "bool":$time)>
  ];
}
#endif
