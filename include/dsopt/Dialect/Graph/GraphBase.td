//===- GraphBase.td - the graph dialect: what is computed ------*- tablegen -*-===//
//
// The dialect, its type constraints and the base classes of its operations.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPHBASE
#define DSOPT_DIALECT_GRAPH_GRAPHBASE

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "dsopt/Dialect/Graph/GraphEnums.td"
include "dsopt/Interfaces/Enums.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Graph_Dialect : Dialect {
  let name = "graph";
  let cppNamespace = "::dsopt::graph";
  let summary = "what is computed: tensor operations with ONNX's meaning";
  let description = [{
    Operations on tensors of static shape with ONNX's meaning (implicit
    broadcasting included), and the named state that a training step reads and
    writes. One function computes one micro-batch, one performs the update.
    Pure operations may be folded, merged and moved; `graph.read`,
    `graph.accumulate` and `graph.write` have effects on the state they name.
  }];
  let hasConstantMaterializer = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def Graph_ViewAttr : EnumAttr<Graph_Dialect, Graph_ViewKind, "view"> {
  let description = [{
    `read`: the result is the operand's bytes under strides. `write`: the operands are written
    into the result's bytes. Such an operation is never folded. `none`: it is code.
  }];
  let assemblyFormat = "`<` $value `>`";
}
def Graph_PhaseAttr : EnumAttr<Graph_Dialect, Dsopt_Phase, "phase"> {
  let assemblyFormat = "`<` $value `>`";
}
def Graph_IterationAttr : EnumAttr<Graph_Dialect, Graph_Iteration, "iteration"> {
  let assemblyFormat = "`<` $value `>`";
}
def Graph_MetricAttr : AttrDef<Graph_Dialect, "Metric"> {
  let mnemonic = "metric";
  let summary = "a number that a run logs: its name, and how what micro-batches give of it becomes one";
  let parameters = (ins StringRefParameter<"">:$name, EnumParameter<Dsopt_Combine>:$combine);
  let assemblyFormat = "`<` $name `,` $combine `>`";
}
def Graph_RunsAttr : AttrDef<Graph_Dialect, "Runs"> {
  let mnemonic = "runs";
  let summary = "which elements of a whole parameter a tensor shard has";
  let description = [{
    Runs of `length` elements, `stride` apart; the first begins `step` elements further on for each rank along
    tp. `#graph.runs<32 every 128 step 64>`: what a cut of rows of 128 in four has, of which a rank holds two.
  }];
  let parameters = (ins "int64_t":$length, "int64_t":$stride, "int64_t":$step);
  let assemblyFormat = "`<` $length `every` $stride `step` $step `>`";
  let genVerifyDecl = 1;
}
def Graph_UpdateFunctionsAttr : AttrDef<Graph_Dialect, "UpdateFunctions"> {
  let mnemonic = "functions";
  let summary = "the functions that an update becomes";
  let description = [{
    The flat `kernel` that computes it; of a rule that sees norms of whole parameters, or whole matrices, the
    `direction` that comes before them; of one that sees whole matrices, or parameters, the `matrix` function
    between its kernels; of one whose variance freezes, the kernel of steps behind that, `frozen`. Of a rule by
    which ranks move apart: the kernels of a step that one rank makes by itself, `local`; of the same before
    ranks meet, which leaves the parameter alone, `local_direction`; and of their meeting, `join`.

    ```mlir
    %0 = graph.sgd %p, %g, %s {functions = #graph.functions<kernel = @update.sgd>} : (...) -> tensor<64xf32>
    ```
  }];
  let parameters = (ins OptionalParameter<"::mlir::SymbolRefAttr">:$kernel,
      OptionalParameter<"::mlir::SymbolRefAttr">:$direction, OptionalParameter<"::mlir::SymbolRefAttr">:$frozen,
      OptionalParameter<"::mlir::SymbolRefAttr">:$local, OptionalParameter<"::mlir::SymbolRefAttr">:$local_direction,
      OptionalParameter<"::mlir::SymbolRefAttr">:$join, OptionalParameter<"::mlir::SymbolRefAttr">:$matrix);
  let assemblyFormat = "`<` struct(params) `>`";
}
def Graph_Functions : OptionalAttr<Graph_UpdateFunctionsAttr>;

def Graph_NoView : DefaultValuedAttr<Graph_ViewAttr, "::dsopt::graph::View::None">;

/// Any tensor of static shape.
def Graph_Tensor : StaticShapeTensorOf<[AnyFloat, AnyInteger]>;
/// A floating-point tensor of static shape.
def Graph_FloatTensor : StaticShapeTensorOf<[AnyFloat]>;
/// An integer tensor of static shape (i1 is ONNX's bool).
def Graph_IntTensor : StaticShapeTensorOf<[AnyInteger]>;
/// A bool tensor of static shape.
def Graph_BoolTensor : StaticShapeTensorOf<[I1]>;

class Graph_Op<string mnemonic, list<Trait> traits = []>
    : Op<Graph_Dialect, mnemonic, traits>;

/// A pure operation whose result types follow from operands and attributes. Its
/// verifier infers them again: MLIR's own check, which `refineReturnTypes` turns
/// off, would report a shape that does not fit twice.
class Graph_PureOp<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat([Pure, InferTypeOpAdaptor], traits)> {
  let hasFolder = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static ::llvm::LogicalResult refineReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location>,
        ::mlir::ValueRange, ::mlir::DictionaryAttr, ::mlir::OpaqueProperties, ::mlir::RegionRange,
        ::llvm::SmallVectorImpl<::mlir::Type> &) { return ::llvm::success(); }
  }];
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() { return ::dsopt::graph::verifyInferredTypes(*this); }
  }];
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

/// A pure operation whose result shape is a choice of its builder (a reshape,
/// a broadcast); its verifier compares it with the operands.
class Graph_ShapedOp<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat([Pure], traits)> {
  let hasFolder = 1;
  let hasVerifier = 1;
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif // DSOPT_DIALECT_GRAPH_GRAPHBASE
