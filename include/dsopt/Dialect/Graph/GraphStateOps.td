//===- GraphStateOps.td - parameters, state, kernels, updates ---------------===//
//
// Named state and the operations with effects on it; the outlined kernels and
// blocks of stage 3; the optimizers.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPHSTATEOPS
#define DSOPT_DIALECT_GRAPH_GRAPHSTATEOPS

include "dsopt/Dialect/Graph/GraphBase.td"
include "mlir/Interfaces/CallInterfaces.td"

/// The resource behind every named state.
def Graph_State : Resource<"::dsopt::graph::StateResource">;

def Graph_ParameterOp : Graph_Op<"parameter", [Symbol]> {
  let summary = "a named weight: its type and where its bytes are";
  let description = [{
    The symbol is the model's own name, or `name` is where something of the
    compiler's needed that symbol. `file` is relative to the model's folder; the bytes
    are `bytes` long from `offset`, little-endian, row-major, of the element type
    `source` where that is not `type`'s: they are converted as they are read, and
    back where trained weights leave the program.
    `file_bytes` and `chunks` (XXH3-64 of each 1 MiB chunk of the parameter)
    recognize a file that changed; without them the source is unverified.
    `frozen` parameters are read but not trained; `why` says what made one
    frozen ("buffer", "mask", "integer", "-freeze", ...). A `constant` is frozen and
    no weight: it is not saved with them.

    `storage` is the element type that it is trained in, where that is not the model's own; `lr_scale` and
    `decay_scale` are its factors of the learning rate and of weight decay. A `statistic` is replaced by what
    micro-batches measure; what a step may not reach is of a `branch`. A tile is `part_of` a parameter, which
    nothing reads, from its element `part_begin` on; a tensor shard has the `part_runs` of it.
    What place-values tried in vain is `uncut`, and why. Where the model asks for a cut, `asked_dim` is its
    dimension (-1: none) and `asked_by` says where. PyTorch has a `transposed` matrix the other way round.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Graph_Tensor>:$type,
      StrAttr:$file, I64Attr:$offset, I64Attr:$bytes,
      OptionalAttr<I64Attr>:$file_bytes, OptionalAttr<DenseI64ArrayAttr>:$chunks,
      UnitAttr:$frozen, OptionalAttr<StrAttr>:$why, UnitAttr:$constant, OptionalAttr<StrAttr>:$name,
      OptionalAttr<TypeAttr>:$source, OptionalAttr<TypeAttr>:$storage, OptionalAttr<F64Attr>:$lr_scale,
      OptionalAttr<F64Attr>:$decay_scale, UnitAttr:$statistic, UnitAttr:$branch,
      OptionalAttr<FlatSymbolRefAttr>:$part_of, OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$part_begin,
      OptionalAttr<Graph_RunsAttr>:$part_runs, OptionalAttr<StrAttr>:$uncut,
      OptionalAttr<I64Attr>:$asked_dim, OptionalAttr<StrAttr>:$asked_by, UnitAttr:$transposed);
  let assemblyFormat = [{
    $sym_name `:` $type `from` $file `at` $offset `bytes` $bytes (`frozen` $frozen^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// What the model calls it.
    ::llvm::StringRef getModelName() { return getName() ? *getName() : getSymName(); }
    /// The element type of its bytes in the file.
    ::mlir::Type getSourceType() {
      return getSource() ? *getSource() : ::mlir::getElementTypeOrSelf(getType());
    }
    /// Its factors of the learning rate and of weight decay.
    double learningRateFactor() { return getLrScale() ? getLrScale()->convertToDouble() : 1; }
    double decayFactor() { return getDecayScale() ? getDecayScale()->convertToDouble() : 1; }
  }];
}

def Graph_StateOp : Graph_Op<"state", [Symbol]> {
  let summary = "named state of a parameter: a gradient accumulator or optimizer state";
  let description = [{
    A `gradient` is one for each block that uses the parameter: `block` says which.
    A `master` is the parameter in f32 where it is stored as bf16. What an
    `optimizer` keeps has its `name` for it (m, v, momentum).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Graph_Tensor>:$type,
      Graph_Role:$role, OptionalAttr<StrAttr>:$name, FlatSymbolRefAttr:$parameter, OptionalAttr<I64Attr>:$block);
  let assemblyFormat = [{
    $sym_name `:` $type $role ($name^)? `of` $parameter (`block` $block^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Graph_ReadOp : Graph_Op<"read", [MemoryEffects<[MemRead<Graph_State>]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the present value of a parameter or state";
  let arguments = (ins FlatSymbolRefAttr:$state);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$state attr-dict `:` type($result)";
}
def Graph_AccumulateOp : Graph_Op<"accumulate", [MemoryEffects<[MemRead<Graph_State>, MemWrite<Graph_State>]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "adds a micro-batch's gradient to an accumulator (the first is stored)";
  let arguments = (ins FlatSymbolRefAttr:$state, Graph_Tensor:$value);
  let assemblyFormat = "$state `,` $value attr-dict `:` type($value)";
}
def Graph_WriteOp : Graph_Op<"write", [MemoryEffects<[MemWrite<Graph_State>]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "replaces the value of a parameter or state";
  let arguments = (ins FlatSymbolRefAttr:$state, Graph_Tensor:$value);
  let assemblyFormat = "$state `,` $value attr-dict `:` type($value)";
}

//===----------------------------------------------------------------------===//
// Kernels and blocks (stage 3)
//===----------------------------------------------------------------------===//

def Graph_KernelOp : Graph_Op<"kernel", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "calls an outlined kernel: a function of graph operations that becomes one loop";
  let description = [{
    The callee is a private function with the attribute `graph.iterate`
    (rows or columns): its loop's range is `range` (see Fuse/Passes.td).
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Graph_Tensor>:$inputs);
  let results = (outs Variadic<Graph_Tensor>:$outputs);
  let assemblyFormat = "$callee `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}
def Graph_RunOp : Graph_Op<"run", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    MemoryEffects<[MemRead<Graph_State>, MemWrite<Graph_State>]>]> {
  let summary = "runs one phase of one block on one micro-batch";
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Graph_Tensor>:$inputs);
  let results = (outs Variadic<Graph_Tensor>:$outputs);
  let assemblyFormat = "$callee `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}

//===----------------------------------------------------------------------===//
// Optimizers: elementwise on any slice of a parameter. `scalars` is the f32
// table of include/dsopt/Runtime/Scalars.h. What a rule became is in its
// `functions`, null as long as it is none.
//===----------------------------------------------------------------------===//

class Graph_Optimizer<string mnemonic, string what> : Graph_Op<mnemonic, [Pure]> {
  let summary = what;
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}
def Graph_SgdOp : Graph_Optimizer<"sgd", "p - lr * g"> {
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$scalars, Graph_Functions:$functions);
  let results = (outs Graph_FloatTensor:$new_parameter);
}
def Graph_MomentumOp : Graph_Optimizer<"momentum", "SGD with momentum as in PyTorch, dampening 0"> {
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$momentum, Graph_FloatTensor:$scalars, Graph_Functions:$functions);
  let results = (outs Graph_FloatTensor:$new_parameter, Graph_FloatTensor:$new_momentum);
}
def Graph_AdamOp : Graph_Optimizer<"adam", "Adam; with `decoupled`, AdamW (Loshchilov and Hutter, algorithm 2)"> {
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$m, Graph_FloatTensor:$v, Graph_FloatTensor:$scalars,
                       UnitAttr:$decoupled, Graph_Functions:$functions);
  let results = (outs Graph_FloatTensor:$new_parameter, Graph_FloatTensor:$new_m,
                      Graph_FloatTensor:$new_v);
}
def Graph_LionOp : Graph_Optimizer<"lion", "Lion (Chen et al., 2023): the sign of a momentum, decay decoupled"> {
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$m, Graph_FloatTensor:$scalars, Graph_Functions:$functions);
  let results = (outs Graph_FloatTensor:$new_parameter, Graph_FloatTensor:$new_m);
}
def Graph_AdagradOp : Graph_Optimizer<"adagrad", "Adagrad as in PyTorch, learning rate decay 0"> {
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$sum, Graph_FloatTensor:$scalars, Graph_Functions:$functions);
  let results = (outs Graph_FloatTensor:$new_parameter, Graph_FloatTensor:$new_sum);
}
def Graph_LambOp : Graph_Optimizer<"lamb", "LAMB (You et al., 2020) as DeepSpeed has it"> {
  let description = [{
    The step of a parameter is as long as the parameter: `lamb_direction` of each element,
    then `lamb_step` by the quotient of the norms of the whole parameter and of its direction.
  }];
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$m, Graph_FloatTensor:$v, Graph_FloatTensor:$scalars, Graph_Functions:$functions);
  let results = (outs Graph_FloatTensor:$new_parameter, Graph_FloatTensor:$new_m,
                      Graph_FloatTensor:$new_v);
}
def Graph_LambDirectionOp : Graph_Optimizer<"lamb_direction", "moments of LAMB, and where they point to"> {
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$m, Graph_FloatTensor:$v, Graph_FloatTensor:$scalars);
  let results = (outs Graph_FloatTensor:$direction, Graph_FloatTensor:$new_m, Graph_FloatTensor:$new_v);
}
def Graph_LambStepOp : Graph_Optimizer<"lamb_step", "p - step size * trust * direction"> {
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$direction,
                       Graph_FloatTensor:$scalars);
  let results = (outs Graph_FloatTensor:$new_parameter);
}
def Graph_OneBitAdamOp : Graph_Optimizer<"onebit_adam", "1-bit Adam (Tang et al., 2021): AdamW until its variance freezes"> {
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$m, Graph_FloatTensor:$v, Graph_FloatTensor:$scalars, Graph_Functions:$functions);
  let results = (outs Graph_FloatTensor:$new_parameter, Graph_FloatTensor:$new_m,
                      Graph_FloatTensor:$new_v);
}
def Graph_OneBitAdamStepOp : Graph_Optimizer<"onebit_adam_step", "its step behind that: decay, then p - lr * m / (sqrt(v) + eps)"> {
  let description = [{
    Elements whose variance froze at 0 stay: they are padding, or had no gradient before.
  }];
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$m, Graph_FloatTensor:$v,
                       Graph_FloatTensor:$scalars);
  let results = (outs Graph_FloatTensor:$new_parameter);
}
def Graph_MuonOp : Graph_Optimizer<"muon", "Muon (Jordan et al., 2024), Nesterov's momentum, decay decoupled"> {
  let description = [{
    The step of a matrix is its momentum with all singular values near 1: `muon_direction` of each
    element, then Newton-Schulz iterations on the whole matrix, then `muon_step`. Steps are longer by
    sqrt(max(1, outputs / inputs)), or with `match_rms` by 0.2 sqrt(max(outputs, inputs)); outputs are rows,
    unless `rows_are_inputs`.
  }];
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$momentum, Graph_FloatTensor:$scalars, UnitAttr:$match_rms,
                       UnitAttr:$rows_are_inputs, Graph_Functions:$functions);
  let results = (outs Graph_FloatTensor:$new_parameter, Graph_FloatTensor:$new_momentum);
}
def Graph_MuonDirectionOp : Graph_Optimizer<"muon_direction", "momentum of Muon, and Nesterov's look ahead"> {
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$momentum, Graph_FloatTensor:$scalars);
  let results = (outs Graph_FloatTensor:$direction, Graph_FloatTensor:$new_momentum);
}
def Graph_MuonStepOp : Graph_Optimizer<"muon_step", "p - lr * (decay * p + direction)"> {
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$direction,
                       Graph_FloatTensor:$scalars);
  let results = (outs Graph_FloatTensor:$new_parameter);
}
def Graph_AdafactorOp : Graph_Optimizer<"adafactor", "Adafactor (Shazeer and Stern, 2018) as PyTorch has it, decay decoupled"> {
  let description = [{
    The second moment of a parameter of two dimensions or more is the product of means over its rows and
    over its columns: `adafactor_direction` of each element, then the clipped update of the whole parameter,
    then `adafactor_step` by the norm of the parameter.
  }];
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$scalars, Graph_Functions:$functions);
  let results = (outs Graph_FloatTensor:$new_parameter);
}
def Graph_AdafactorDirectionOp : Graph_Optimizer<"adafactor_direction", "the gradient, clipped and unscaled"> {
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$gradient,
                       Graph_FloatTensor:$scalars);
  let results = (outs Graph_FloatTensor:$direction);
}
def Graph_AdafactorStepOp : Graph_Optimizer<"adafactor_step", "decay, then p - step size * trust * direction"> {
  let arguments = (ins Graph_FloatTensor:$parameter, Graph_FloatTensor:$direction,
                       Graph_FloatTensor:$scalars);
  let results = (outs Graph_FloatTensor:$new_parameter);
}

#endif // DSOPT_DIALECT_GRAPH_GRAPHSTATEOPS
