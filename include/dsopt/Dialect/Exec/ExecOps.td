//===- ExecOps.td - the exec dialect: when it runs --------------*- tablegen -*-===//
//
// Programs (memories, buffers with slots at places in them, a schedule of actions
// on streams) and the operations inside segments, which become machine code.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_EXEC_EXECOPS
#define DSOPT_DIALECT_EXEC_EXECOPS

include "mlir/IR/BuiltinAttributes.td"
include "dsopt/Dialect/Exec/ExecBase.td"
include "dsopt/Dialect/Exec/ExecEnums.td"
include "dsopt/Dialect/Exec/ExecProducts.td"
include "dsopt/Interfaces/Enums.td"
include "dsopt/Interfaces/Reductions.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dsopt/Dialect/Exec/ActionInterfaces.td"
include "dsopt/Interfaces/AttentionPart.td"

def Exec_Event : TypeDef<Exec_Dialect, "Event"> {
  let mnemonic = "event";
  let summary = "the completion of an action";
}

def Exec_AccessModeAttr : EnumAttr<Exec_Dialect, Exec_AccessMode, "access"> {
  let assemblyFormat = "`<` $value `>`";
}

def Exec_PartAttr : AttrDef<Exec_Dialect, "Part"> {
  let mnemonic = "part";
  let summary = "a phase of a block of the model, or one of the parts that collectives on values cut it in";
  let parameters = (ins "int64_t":$block, EnumParameter<Dsopt_Phase>:$phase, DefaultValuedParameter<"int64_t", "0">:$part);
  let assemblyFormat = "`<` $block $phase (`part` $part^)? `>`";
}

def Exec_RefAttr : AttrDef<Exec_Dialect, "Ref"> {
  let mnemonic = "ref";
  let summary = "an address: a buffer's slot, bytes from its start, bytes more for each rank along axes";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$buffer, DefaultValuedParameter<"int64_t", "0">:$slot,
      DefaultValuedParameter<"int64_t", "0">:$offset,
      DefaultValuedParameter<"::dsopt::AxisSteps", "::dsopt::AxisSteps{}">:$steps);
  let description = [{
    Printed `@b0.param[1]+64+256*edp`: slot 1, 64 bytes from its start, and 256 for each rank before this
    one along the axis edp. What is 0 is left out.
  }];
  let extraClassDeclaration = [{
    /// Whether all ranks of a position have the same.
    bool isUniform() const { return getSteps() == ::dsopt::AxisSteps{}; }
  }];
  let hasCustomAssemblyFormat = 1;
}
def Exec_TouchAttr : AttrDef<Exec_Dialect, "Touch"> {
  let mnemonic = "touch";
  let summary = "bytes at an address that an action reads, writes, or both (update)";
  let parameters = (ins "::dsopt::exec::RefAttr":$ref, "int64_t":$bytes, EnumParameter<Exec_AccessMode>:$mode);
  let assemblyFormat = "`<` $ref $bytes $mode `>`";
}

def Exec_CountsAttr : ConfinedAttr<DictionaryAttr, [AttrConstraint<CPred<[{
    ::llvm::all_of(::llvm::cast<::mlir::DictionaryAttr>($_self), [](::mlir::NamedAttribute entry) {
      auto count = ::llvm::dyn_cast<::mlir::IntegerAttr>(entry.getValue());
      return count && count.getType().isInteger(64) && count.getInt() >= 0;
    })}]>, "with i64s of 0 or more">]>;

def Exec_RefArrayAttr : TypedArrayAttrBase<Exec_RefAttr, "an array of addresses">;

//===----------------------------------------------------------------------===//
// What runs actions, and who talks to whom
//===----------------------------------------------------------------------===//

def Exec_StreamOp : Exec_Op<"stream", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "what runs actions of a kind in the order of their issue";
  let description = [{
    Each rank has all streams of its module, which are counted in their order. Actions are on
    streams of the kind that they need, and everything else follows: waits, places of buffers,
    the runtime's queues. What a `compute` stream does to bytes in the device's memories, a `host`
    stream does to bytes in the host's, but for segments, which are compiled for the device. A
    `copy` stream moves bytes between the two, a `disk` stream between the host's and the disk's;
    between ranks go those of the device.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Exec_StreamKind:$kind);
  let assemblyFormat = "$sym_name $kind attr-dict";
}

def Exec_AxesAttr : Attr<CPred<"::llvm::isa<::dsopt::dist::AxesAttr>($_self)">, "axes of the grid"> {
  let storageType = "::dsopt::dist::AxesAttr";
  let returnType = "::dsopt::dist::AxesAttr";
  let convertFromStorage = "$_self";
}

def Exec_CommunicatorOp : Exec_Op<"communicator", [Symbol, HasParent<"::mlir::ModuleOp">,
                                                   DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "ranks that talk among themselves: those that differ along axes alone";
  let description = [{
    Each rank is in one group, whose members are counted along `axes`, the last one fastest: in this
    order their parts lie. All of a program's collectives over it are on one stream, in the same order on
    all members.

    ```mlir
    exec.communicator @dp over [edp, ep, sp]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Exec_AxesAttr:$axes);
  let assemblyFormat = "$sym_name `over` custom<Axes>($axes) attr-dict";
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

def Exec_ProgramOp : Exec_Op<"program", [Symbol, SymbolTable, NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "what the ranks of one pipeline position do in a step";
  let description = [{
    Memories, buffers in them and the schedule. The chunks of `blocks`, a first and a
    last one for each, half-open and ascending, live here.
    All programs of a position have the same memories. What an `evaluation` keeps is that of the
    program that trains; a `delayed` step updates by the gradients of the step before and keeps its own for
    the next; behind a freeze ranks exchange no gradients.

    A `variant` is for this smaller size of the module's dimension. Of a step: bytes that a rank sends by
    class (`traffic`); of these classes, those that are compressed, the bytes that they stand for (`logical`);
    bytes that have to leave its node (`between_nodes`), where there are nodes; bytes that it copies by the
    memory that they go to (`copied`).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
      DefaultValuedAttr<Exec_ProgramKind, "::dsopt::exec::ProgramKind::Step">:$kind, I64Attr:$position,
      DenseI64ArrayAttr:$blocks, OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$variant,
      OptionalAttr<Exec_CountsAttr>:$traffic, OptionalAttr<Exec_CountsAttr>:$logical,
      OptionalAttr<Exec_CountsAttr>:$between_nodes, OptionalAttr<Exec_CountsAttr>:$copied);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "ProgramKind":$kind, "int64_t":$position,
                                 "::llvm::ArrayRef<int64_t>":$blocks, "::mlir::IntegerAttr":$variant), [{
    build($_builder, $_state, name, kind, position, blocks, variant, /*traffic=*/nullptr, /*logical=*/nullptr,
          /*between_nodes=*/nullptr, /*copied=*/nullptr);
  }]>];
  let assemblyFormat = "$sym_name ($kind^)? `position` $position `blocks` $blocks attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    /// The first block and the end of each chunk.
    llvm::SmallVector<std::pair<int64_t, int64_t>, 1> getChunks();
    bool hasBlock(int64_t block);
  }];
  let hasVerifier = 1;
}

def Exec_MemoryOp : Exec_Op<"memory", [Symbol, HasParent<"ProgramOp">]> {
  let summary = "an arena of each of the position's ranks";
  let description = [{
    `bytes` is its size and `bound` the largest sum of live bytes, which no plan can go
    below; both are absent until memory is planned, and so is what of it is `live` at the peak by
    class. Buffers start at multiples of `alignment`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Exec_MemoryKind:$kind, OptionalAttr<I64Attr>:$bytes,
                       OptionalAttr<I64Attr>:$bound, DefaultValuedAttr<I64Attr, "64">:$alignment,
                       OptionalAttr<Exec_CountsAttr>:$live);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "MemoryKind":$kind, "int64_t":$alignment), [{
    build($_builder, $_state, name, kind, /*bytes=*/nullptr, /*bound=*/nullptr, alignment, /*live=*/nullptr);
  }]>];
  let assemblyFormat = [{
    $sym_name $kind (`bytes` $bytes^ `bound` $bound)? (`alignment` $alignment^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Exec_BufferOp : Exec_Op<"buffer", [Symbol]> {
  let summary = "bytes in a memory: `slots` copies of a type, `stride` bytes apart";
  let description = [{
    It lies in the program's first memory, or in the one that `in` names.
    `kind` is the plan's. A `role` is what passes and the runtime look for, whatever the
    name: the gradient's `seed`, the step's `scalars`, `staging` for engines that need
    it; and `of` a bucket, its parameters as they are `stored` between steps, their
    `master` in f32, what is `gathered` of them, the `accumulator` of the gradient of
    a use, and the `pending` gradient that waits for the next step to update with; a `state` that
    is kept for each of its elements, by its name, and what is `kept` of it otherwise, of whole parameters, say.
    Other buffers may be `of` a bucket, too. `persistent` buffers live through every
    step. A `constants` buffer lies in the program's own image under `symbol`.
    `offset` is absent until memory is planned; slots start at multiples of 64, and `payload` bytes of
    one are not padding: all of them where it is absent.

    ```mlir
    exec.buffer @b0.param : memref<128xf32> parameters slots 1 stride 512 persistent stored of @b0
    exec.buffer @b0.m : memref<64xf32> optimizer slots 1 stride 256 persistent state "m" of @b0
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type, Exec_BufferKind:$kind, DefaultValuedAttr<I64Attr, "1">:$slots,
      I64Attr:$stride, OptionalAttr<I64Attr>:$offset, UnitAttr:$persistent, OptionalAttr<StrAttr>:$symbol,
      OptionalAttr<Exec_BufferRole>:$role, OptionalAttr<StrAttr>:$state, OptionalAttr<FlatSymbolRefAttr>:$of,
      OptionalAttr<I64Attr>:$use, OptionalAttr<FlatSymbolRefAttr>:$memory,
      OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$payload);
  let assemblyFormat = [{
    $sym_name (`in` $memory^)? (`at` $offset^)? `:` $type $kind `slots` $slots `stride` $stride (`persistent` $persistent^)?
    ($role^)? ($state^)? (`of` $of^ (`use` $use^)?)? (`symbol` $symbol^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Exec_ScheduleOp : Exec_Op<"schedule", [NoTerminator, SingleBlock, NoRegionArguments, HasParent<"ProgramOp">,
                                           DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the actions of a step in the order of their issue";
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

class Exec_Action<string mnemonic, list<Trait> traits = [], string kind = "Compute">
    : Exec_Op<mnemonic, !listconcat([HasParent<"ScheduleOp">,
          DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
          DeclareOpInterfaceMethods<Exec_ActionOpInterface,
                                    ["getStreamKind", "collectAccesses", "getCalledSegment", "getMoved", "readsPadding",
                                     "describeAction", "getEventName"]>], traits)> {
  let results = (outs Exec_Event:$event);
  let extraClassDefinition = [{
    void $cppClass::getAsmResultNames(::mlir::OpAsmSetValueNameFn setName) { setName(getEvent(), getEventName()); }
    StreamKind $cppClass::getStreamKind() { return StreamKind::}] # kind # [{; }
  }];
}
class Exec_Communication<string mnemonic, list<Trait> traits>
    : Exec_Action<mnemonic, !listconcat([Exec_CommunicationOpInterface], traits), "Communication">;
class Exec_Transfer<string mnemonic> : Exec_Communication<mnemonic, [Exec_TransferOpInterface]>;
class Exec_Collective<string mnemonic> : Exec_Communication<mnemonic, [Exec_CollectiveOpInterface]>;

def Exec_WaitOp : Exec_Op<"wait", [HasParent<"ScheduleOp">]> {
  let summary = "later actions of `stream` start after `event`";
  let arguments = (ins Exec_Event:$event, FlatSymbolRefAttr:$stream);
  let assemblyFormat = "$event `on` $stream attr-dict";
}
def Exec_InputOp : Exec_Action<"input"> {
  let summary = "reads a micro-batch of a graph input into a buffer";
  let description = [{
    `micro_batch` is the position in this rank's run order, here and below. The
    `context` is what the micro-batch's random numbers follow from; no data gives it.
  }];
  let arguments = (ins StrAttr:$input, Exec_RefAttr:$target, I64Attr:$micro_batch, FlatSymbolRefAttr:$stream,
                       UnitAttr:$is_context);
  let assemblyFormat = [{
    $input `to` custom<Ref>($target) `micro_batch` $micro_batch `on` $stream (`context` $is_context^)? attr-dict
  }];
}
def Exec_RunOp : Exec_Action<"run"> {
  let summary = "runs a segment on buffers";
  let description = [{
    `temp` is the segment's scratch. With `accumulate` the segment adds to its
    gradients, without it stores them. `part` is the block and phase that it
    computes, where that is not the segment's own: equal blocks share segments.
  }];
  let arguments = (ins FlatSymbolRefAttr:$segment, Exec_RefArrayAttr:$buffers, OptionalAttr<Exec_RefAttr>:$temp,
      I64Attr:$micro_batch, UnitAttr:$accumulate, FlatSymbolRefAttr:$stream, OptionalAttr<Exec_PartAttr>:$part);
  let builders = [OpBuilder<(ins "::mlir::Type":$event, "::llvm::StringRef":$segment, "::mlir::ArrayAttr":$buffers,
      "RefAttr":$temp, "int64_t":$micro_batch, "bool":$accumulate, "::llvm::StringRef":$stream), [{
    build($_builder, $_state, event, segment, buffers, temp, micro_batch, accumulate, stream, PartAttr());
  }]>];
  let assemblyFormat = [{
    $segment (`for` $part^)? custom<Refs>($buffers) (`temp` custom<Ref>($temp)^)? `micro_batch` $micro_batch (`accumulate` $accumulate^)? `on` $stream attr-dict
  }];
}
def Exec_GatherOp : Exec_Collective<"gather"> {
  let summary = "all-gather: `slice` of each member, `bytes` long, in their order into `target`";
  let description = [{
    `slice` may be this rank's part of `target` itself. `order` counts the
    collectives of a program; `traffic` names the traffic (all_gather, tied, tensor_parallel or sequence_parallel).
    With another type on the `wire` it is no action yet: `expand-collectives`
    writes those that it is made of, whose bytes stand `for` more.
  }];
  let arguments = (ins Exec_RefAttr:$slice, Exec_RefAttr:$target, I64Attr:$bytes, OptionalAttr<I64Attr>:$logical,
                       OptionalAttr<TypeAttr>:$wire, Exec_Traffic:$traffic, I64Attr:$order,
                       FlatSymbolRefAttr:$communicator, FlatSymbolRefAttr:$stream);
  let builders = [OpBuilder<(ins "::mlir::Type":$event, "RefAttr":$slice, "RefAttr":$target, "int64_t":$bytes,
      "::mlir::TypeAttr":$wire, "Traffic":$traffic, "int64_t":$order, "::llvm::StringRef":$communicator,
      "::llvm::StringRef":$stream), [{
    build($_builder, $_state, event, slice, target, bytes, /*logical=*/::mlir::IntegerAttr(), wire, traffic, order,
          communicator, stream);
  }]>];
  let assemblyFormat = [{
    custom<Ref>($slice) `to` custom<Ref>($target) `bytes` $bytes (`for` $logical^)? (`as` $wire^)? $traffic `order` $order `over` $communicator `on` $stream attr-dict
  }];
  let hasVerifier = 1;
}
def Exec_ReleaseOp : Exec_Op<"release", [HasParent<"ScheduleOp">]> {
  let summary = "ends a gather: what it made whole is not needed behind this point";
  let description = [{
    Stands in schedules whose gathers serve one micro-batch each, and says what `share-gathers`
    may keep; afterwards there is none.
  }];
  let arguments = (ins Exec_Event:$gather);
  let assemblyFormat = "$gather attr-dict";
  let hasVerifier = 1;
}
def Exec_ReduceOp : Exec_Collective<"reduce"> {
  let summary = "reduce-scatter along the canonical tree, or as the engine likes";
  let description = [{
    `whole` holds `elements` values for each member, of which this rank's are
    stored to (or, with `accumulate`, added to) `target`. What travels is of
    their own `type`, in the engine's reduction; `fast` leaves the order of its
    additions to the engine. With another type on the `wire`, another `method`,
    or both `fast` and `accumulate`, it is no action yet: `expand-collectives`
    writes those that it is made of.
  }];
  let arguments = (ins Exec_RefAttr:$whole, Exec_RefAttr:$target, I64Attr:$elements, TypeAttr:$type,
                       OptionalAttr<TypeAttr>:$wire,
                       DefaultValuedAttr<Dsopt_ReductionMethod, "::dsopt::ReductionMethod::ReduceScatter">:$method,
                       UnitAttr:$fast, UnitAttr:$accumulate, I64Attr:$order, FlatSymbolRefAttr:$communicator,
                       FlatSymbolRefAttr:$stream);
  let assemblyFormat = [{
    custom<Ref>($whole) `to` custom<Ref>($target) `elements` $elements `:` $type (`as` $wire^)? (`by` $method^)?
    (`fast` $fast^)? (`accumulate` $accumulate^)? `order` $order `over` $communicator `on` $stream attr-dict
  }];
  let hasVerifier = 1;
}
def Exec_AllToAllOp : Exec_Collective<"all_to_all"> {
  let summary = "`bytes` from each member to each other";
  let description = [{
    `source` holds `bytes` for each member, in their order; `target` gets what each
    of them has for this rank. The two are of different buffers. The bytes may stand `for`
    more, as those of a gather. `traffic` is all_to_all, tensor_parallel or sequence_parallel.
  }];
  let arguments = (ins Exec_RefAttr:$source, Exec_RefAttr:$target, I64Attr:$bytes, OptionalAttr<I64Attr>:$logical,
                       DefaultValuedAttr<Exec_Traffic, "::dsopt::exec::Traffic::AllToAll">:$traffic,
                       I64Attr:$order, FlatSymbolRefAttr:$communicator, FlatSymbolRefAttr:$stream);
  let builders = [OpBuilder<(ins "::mlir::Type":$event, "RefAttr":$source, "RefAttr":$target, "int64_t":$bytes,
      "int64_t":$order, "::llvm::StringRef":$communicator, "::llvm::StringRef":$stream), [{
    build($_builder, $_state, event, source, target, bytes, /*logical=*/::mlir::IntegerAttr(), Traffic::AllToAll,
          order, communicator, stream);
  }]>];
  let assemblyFormat = [{
    custom<Ref>($source) `to` custom<Ref>($target) `bytes` $bytes (`for` $logical^)? ($traffic^)? `order` $order `over` $communicator `on` $stream attr-dict
  }];
  let hasVerifier = 1;
}
def Exec_ShiftOp : Exec_Collective<"shift"> {
  let summary = "`bytes` from each member to the next one, from the last to the first";
  let description = [{`source` and `target` are of different buffers. `traffic` is tensor_parallel or sequence_parallel.}];
  let arguments = (ins Exec_RefAttr:$source, Exec_RefAttr:$target, I64Attr:$bytes, Exec_Traffic:$traffic,
                       I64Attr:$order, FlatSymbolRefAttr:$communicator, FlatSymbolRefAttr:$stream);
  let assemblyFormat = [{
    custom<Ref>($source) `to` custom<Ref>($target) `bytes` $bytes $traffic `order` $order `over` $communicator `on` $stream attr-dict
  }];
  let hasVerifier = 1;
}
def Exec_AddOp : Exec_Action<"add"> {
  let summary = "target += source, in fp32 and rounded to the type: one edge of a reduction tree on this rank";
  let arguments = (ins Exec_RefAttr:$target, Exec_RefAttr:$source, I64Attr:$elements, TypeAttr:$type, FlatSymbolRefAttr:$stream);
  let assemblyFormat = "custom<Ref>($target) `,` custom<Ref>($source) `elements` $elements `:` $type `on` $stream attr-dict";
}
def Exec_CopyOp : Exec_Action<"copy", [], "Copy"> {
  let summary = "`bytes` from one memory to another";
  let description = [{
    Between buffers of the device's and the host's memories, or of one of them, on a stream of kind copy;
    between the host's and the disk's on one of kind disk.

    ```mlir
    %0 = exec.copy @b0.grad.0 to @host.grad.f32 bytes 4096 on @download
    %1 = exec.copy @b0.m to @host.m.f32 bytes 4096 on @disk
    ```
  }];
  let arguments = (ins Exec_RefAttr:$source, Exec_RefAttr:$target, I64Attr:$bytes, FlatSymbolRefAttr:$stream);
  let assemblyFormat = "custom<Ref>($source) `to` custom<Ref>($target) `bytes` $bytes `on` $stream attr-dict";
}
def Exec_SendOp : Exec_Transfer<"send"> {
  let summary = "sends bytes to a member of the communicator (rendezvous)";
  let description = [{
    `peer` is the receiver's place among the members, that of its position. `tag` names
    the value, `micro_batch` is which of its; the receiver's are the same. `traffic` is send_recv or tied.
  }];
  let arguments = (ins Exec_RefAttr:$source, I64Attr:$bytes, I64Attr:$peer, StrAttr:$tag,
                       OptionalAttr<I64Attr>:$micro_batch, Exec_Traffic:$traffic,
                       FlatSymbolRefAttr:$communicator, FlatSymbolRefAttr:$stream);
  let assemblyFormat = [{
    custom<Ref>($source) `bytes` $bytes `to` $peer `tag` $tag (`micro_batch` $micro_batch^)? $traffic `over` $communicator `on` $stream attr-dict
  }];
  let hasVerifier = 1;
}
def Exec_RecvOp : Exec_Transfer<"recv"> {
  let summary = "receives what the peer sends under the same tag";
  let arguments = (ins Exec_RefAttr:$target, I64Attr:$bytes, I64Attr:$peer, StrAttr:$tag,
                       OptionalAttr<I64Attr>:$micro_batch, Exec_Traffic:$traffic,
                       FlatSymbolRefAttr:$communicator, FlatSymbolRefAttr:$stream);
  let assemblyFormat = [{
    custom<Ref>($target) `bytes` $bytes `from` $peer `tag` $tag (`micro_batch` $micro_batch^)? $traffic `over` $communicator `on` $stream attr-dict
  }];
  let hasVerifier = 1;
}
def Exec_NormOp : Exec_Action<"norm"> {
  let summary = "sums the squares of a bucket's gradient exactly into a record";
  let description = [{
    `gradient` is this rank's slice, reduced, or with `whole` all of the rank's own part of the
    sum; `record` gets the digits of the sum
    and the first parameter with an element that is not finite. Runs as soon as
    the gradient is complete, so that nothing else keeps its bytes.
  }];
  let arguments = (ins Exec_RefAttr:$gradient, FlatSymbolRefAttr:$bucket, Exec_RefAttr:$record, FlatSymbolRefAttr:$stream,
                       UnitAttr:$whole);
  let assemblyFormat = "custom<Ref>($gradient) `of` $bucket (`whole` $whole^)? `to` custom<Ref>($record) `on` $stream attr-dict";
}
def Exec_AgreeOp : Exec_Collective<"agree"> {
  let summary = "the step's one exact exchange over all ranks, then the decision";
  let description = [{
    Exchanges the records in `norms` (one for each bucket this position owns),
    the stop request and the losses in `losses` (one f32 slot a micro-batch;
    empty on positions without the loss), and writes the step's scalars. `measures` are
    the parts of metrics that this position computes, one f32 slot for each of them and
    each micro-batch: part p has `lengths[p]` elements, which lie from `places[p]` on
    among those that a micro-batch gives of all metrics (`exec.metrics`). `outputs` are those
    of the model (`numbers`, among `exec.outputs`) that a program without a loss computes
    here, one slot of `bytes` for each and each micro-batch: whoever runs it takes them then.
  }];
  let arguments = (ins Exec_RefArrayAttr:$norms, Exec_RefArrayAttr:$losses, OptionalAttr<Exec_RefArrayAttr>:$measures,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$places,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$lengths,
                       OptionalAttr<Exec_RefArrayAttr>:$outputs,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$numbers,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$bytes, I64Attr:$order,
                       FlatSymbolRefAttr:$communicator, FlatSymbolRefAttr:$stream);
  let assemblyFormat = [{
    `norms` custom<Refs>($norms) `losses` custom<Refs>($losses)
    (`measures` custom<Refs>($measures)^ `places` $places `lengths` $lengths)?
    (`outputs` custom<Refs>($outputs)^ `numbers` $numbers `bytes` $bytes)?
    `order` $order `over` $communicator `on` $stream attr-dict
  }];
  let hasVerifier = 1;
}
def Exec_UpdateOp : Exec_Action<"update"> {
  let summary = "runs a flat update kernel over a bucket's slice or the whole of it";
  let description = [{
    `buffers` are the parameter, its gradient and the optimizer's states, all
    starting at the same element of the bucket: 0, or with `sliced` this rank's
    first. `elements` is how many there are. Where a bucket is updated part by part, `from` is
    how many come before this part.

    A rule that sees norms of whole parameters has two updates of a bucket. That with `direction`
    changes the states and puts where the step goes in the gradient's place; its `record` gets, for each
    trained parameter of the module, the digits of the sums of squares of the parameter and of its
    direction. That without changes the parameter by the norms in the records of all ranks, and where the
    rule keeps numbers by parameter (1-bit LAMB) the bucket's `coefficients`, too.

    Between the updates of a rule that sees whole matrices, or parameters, `exec.transform` makes of the whole
    direction what the second one takes as the gradient. It is `unpadded`: what lies between parameters,
    where no transform writes, it leaves alone. A rule may have records besides.
  }];
  let arguments = (ins SymbolRefAttr:$kernel, FlatSymbolRefAttr:$bucket, Exec_RefArrayAttr:$buffers,
                       I64Attr:$elements, DefaultValuedAttr<I64Attr, "0">:$from, UnitAttr:$sliced,
                       UnitAttr:$direction, UnitAttr:$unpadded, OptionalAttr<Exec_RefAttr>:$record,
                       OptionalAttr<Exec_RefAttr>:$coefficients, FlatSymbolRefAttr:$stream);
  let builders = [OpBuilder<(ins "::mlir::Type":$event, "::mlir::SymbolRefAttr":$kernel, "::llvm::StringRef":$bucket,
      "::mlir::ArrayAttr":$buffers, "int64_t":$elements, "bool":$sliced, "::llvm::StringRef":$stream), [{
    build($_builder, $_state, event, kernel, bucket, buffers, elements, /*from=*/0, sliced,
          /*direction=*/false, /*unpadded=*/false, /*record=*/RefAttr(), /*coefficients=*/RefAttr(), stream);
  }]>];
  let assemblyFormat = [{
    $kernel `of` $bucket custom<Refs>($buffers) `elements` $elements (`from` $from^)? (`sliced` $sliced^)? (`direction` $direction^)? (`unpadded` $unpadded^)? (`record` custom<Ref>($record)^)? (`coefficients` custom<Ref>($coefficients)^)? `on` $stream attr-dict
  }];
}

def Exec_TransformOp : Exec_Action<"transform"> {
  let summary = "runs a segment on a whole matrix, or parameter, as part of a bucket's update";
  let description = [{
    `buffers` are what the segment reads and writes: the direction first, what it makes of it last (of tensor
    shards all of them, those of other ranks too), the scalars and what is kept of the whole parameter between them. `temp` is its scratch. It belongs to no micro-batch,
    and to no block. The matrix is `elements` of the bucket behind the first `from`. With `sliced` only
    those ranks compute it whose slices of the bucket have a part of it.
  }];
  let arguments = (ins FlatSymbolRefAttr:$segment, FlatSymbolRefAttr:$bucket, Exec_RefArrayAttr:$buffers,
                       I64Attr:$elements, DefaultValuedAttr<I64Attr, "0">:$from, UnitAttr:$sliced,
                       OptionalAttr<Exec_RefAttr>:$temp, FlatSymbolRefAttr:$stream);
  let assemblyFormat = [{
    $segment `of` $bucket custom<Refs>($buffers) `elements` $elements (`from` $from^)? (`sliced` $sliced^)? (`temp` custom<Ref>($temp)^)? `on` $stream attr-dict
  }];
}

def Exec_MapOp : Exec_Action<"map"> {
  let summary = "runs a kernel over buffers, one element, row or column of each at a time";
  let description = [{
    `buffers` are the kernel's operands and, where its results are not in place (`graph.in_place`),
    its results behind them; of each `elements` are read or written. Of a kernel over rows these are
    rows, however long a row of each operand or result is; what has no row for each is read whole.
    Of one over columns they are the columns, all of which it sums: operands are read whole.
    Threads take a multiple of `grain` each. With it a pass puts computation
    of its own between others' actions: what goes over the wire in another type, say.

    ```mlir
    module @kernels attributes {dsopt.target = #target} {
      func.func nested @narrow(%x: tensor<64xf32>) -> tensor<64xbf16> attributes {graph.iterate = #graph.iteration<flat>, graph.range = array<i64: 64>} { ... }
    }
    %0 = exec.map @kernels::@narrow [@b0.whole.0.0, @b0.wire] elements 4096 on @compute
    ```
  }];
  let arguments = (ins SymbolRefAttr:$kernel, Exec_RefArrayAttr:$buffers, I64Attr:$elements,
                       DefaultValuedAttr<I64Attr, "4096">:$grain, FlatSymbolRefAttr:$stream);
  let builders = [OpBuilder<(ins "::mlir::Type":$event, "::mlir::SymbolRefAttr":$kernel, "::mlir::ArrayAttr":$buffers,
      "int64_t":$elements, "::llvm::StringRef":$stream), [{
    build($_builder, $_state, event, kernel, buffers, elements, /*grain=*/4096, stream);
  }]>];
  let assemblyFormat = "$kernel custom<Refs>($buffers) `elements` $elements (`grain` $grain^)? `on` $stream attr-dict";
}

def Exec_FoldOp : Exec_Action<"fold"> {
  let summary = "running = momentum * running + (1 - momentum) * statistic for each micro-batch of the step";
  let description = [{
    `statistics` holds `bytes` for each micro-batch of each data-parallel rank, rank
    by rank in their run orders; `places` (bytes), `elements` and `momenta` have an
    entry for each of `targets`. Micro-batches are folded in the order of their index
    among all ranks' (DESIGN 2.1 rule 9), and not at all if the step is not applied.
  }];
  let arguments = (ins Exec_RefAttr:$statistics, Exec_RefArrayAttr:$targets, DenseI64ArrayAttr:$places,
                       DenseI64ArrayAttr:$elements, F64ArrayAttr:$momenta, I64Attr:$bytes, FlatSymbolRefAttr:$stream);
  let assemblyFormat = [{
    custom<Ref>($statistics) `bytes` $bytes `into` custom<Refs>($targets) `places` $places `elements` $elements `momenta` $momenta
    `on` $stream attr-dict
  }];
}

//===----------------------------------------------------------------------===//
// Inside segments: functions with the attribute exec.segment over memrefs
//===----------------------------------------------------------------------===//

def Exec_TempOp : Exec_Op<"temp", [Pure]> {
  let summary = "a temporary at a fixed offset of the segment's scratch";
  let arguments = (ins I64Attr:$offset);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "`at` $offset attr-dict `:` type($result)";
}
def Exec_ViewOp : Exec_Op<"view", [Pure]> {
  let summary = "the same bytes under another shape, or some of them under strides";
  let description = [{
    The source is contiguous. The result is all or some of its elements, those
    with a strided layout for routines that take strides.
  }];
  let arguments = (ins AnyMemRef:$source);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}
def Exec_LaunchOp : Exec_Op<"launch", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel over its range, split over threads at multiples of `grain`";
  let arguments = (ins SymbolRefAttr:$kernel, Variadic<AnyMemRef>:$inputs, Variadic<AnyMemRef>:$outputs,
                       I64Attr:$range, I64Attr:$grain);
  let assemblyFormat = [{
    $kernel `range` $range `grain` $grain `(` $inputs `)` `->` `(` $outputs `)` attr-dict
    `:` type($inputs) `->` type($outputs)
  }];
}
def Exec_GemmOp : Exec_Op<"gemm", [AttrSizedOperandSegments]> {
  let summary = "matrix product; `into_gradient` obeys the run's accumulate flag";
  let description = [{
    By `kernel`, which is compiled for its shape (compile-products), or else by tiles of a library.
    With `whole` (its M, N and K) it is a part of a product, as graph.matmul_part has it. `workspace` is scratch
    of a device's products. `packed` is b as an action has packed it for the kernel (pack-weights), which then
    reads nothing of b.
  }];
  let arguments = (ins AnyMemRef:$lhs, AnyMemRef:$rhs, AnyMemRef:$result,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b, UnitAttr:$into_gradient,
                       Optional<AnyMemRef>:$addend, Optional<AnyMemRef>:$workspace, Optional<AnyMemRef>:$packed,
                       OptionalAttr<DenseI64ArrayAttr>:$whole, OptionalAttr<Exec_ProductKernelAttr>:$kernel);
  let assemblyFormat = [{
    $lhs `,` $rhs (`packed` $packed^ `:` type($packed))? (`plus` $addend^ `:` type($addend))? `->` $result (`of` $whole^)? (`by` $kernel^)?
    (`workspace` $workspace^ `:` type($workspace))? attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let hasVerifier = 1;
}
def Exec_AttentionOp : Exec_Op<"attention"> {
  let summary = "graph.attention by tiles; rows of all but the mask, lse and workspace may have strides";
  let description = [{`workspace` is scratch for `threads` threads (Runtime/Attention.h).}];
  let arguments = (ins AnyMemRef:$q, AnyMemRef:$k, AnyMemRef:$v, Optional<AnyMemRef>:$mask, AnyMemRef:$result,
                       AnyMemRef:$lse, AnyMemRef:$workspace, F64Attr:$scale, UnitAttr:$causal, OptionalAttr<I64Attr>:$begin,
                       OptionalAttr<I64Attr>:$step, I64Attr:$threads);
  let assemblyFormat = "operands attr-dict `:` type(operands)";
}
def Exec_AttentionGradOp : Exec_Op<"attention_grad"> {
  let summary = "graph.attention_grad by tiles, with the same freedom of strides";
  let arguments = (ins AnyMemRef:$q, AnyMemRef:$k, AnyMemRef:$v, Optional<AnyMemRef>:$mask, AnyMemRef:$result,
                       AnyMemRef:$lse, AnyMemRef:$grad, AnyMemRef:$q_grad, AnyMemRef:$k_grad, AnyMemRef:$v_grad,
                       AnyMemRef:$workspace, F64Attr:$scale, UnitAttr:$causal, OptionalAttr<I64Attr>:$begin,
                       OptionalAttr<I64Attr>:$step, I64Attr:$threads);
  let assemblyFormat = "operands attr-dict `:` type(operands)";
}
def Exec_AttentionPartOp : Exec_Op<"attention_part", [AttrSizedOperandSegments]> {
  let summary = "graph.attention_part by tiles, with the same freedom of strides";
  let arguments = !con((ins AnyMemRef:$q, AnyMemRef:$k, AnyMemRef:$v, Optional<AnyMemRef>:$mask, Optional<AnyMemRef>:$previous,
                            Optional<AnyMemRef>:$previous_lse, AnyMemRef:$result, AnyMemRef:$lse, AnyMemRef:$workspace),
                       Dsopt_AttentionPlace, (ins I64Attr:$threads));
  let assemblyFormat = "operands attr-dict `:` type(operands)";
}
def Exec_AttentionPartGradOp : Exec_Op<"attention_part_grad", [AttrSizedOperandSegments]> {
  let summary = "graph.attention_part_grad by tiles, with the same freedom of strides";
  let arguments = !con((ins AnyMemRef:$q, AnyMemRef:$k, AnyMemRef:$v, Optional<AnyMemRef>:$mask, AnyMemRef:$result, AnyMemRef:$lse,
                            AnyMemRef:$grad, Optional<AnyMemRef>:$q_previous, Optional<AnyMemRef>:$k_previous,
                            Optional<AnyMemRef>:$v_previous, AnyMemRef:$q_grad, AnyMemRef:$k_grad, AnyMemRef:$v_grad,
                            AnyMemRef:$workspace),
                       Dsopt_AttentionPlace, (ins I64Attr:$threads));
  let assemblyFormat = "operands attr-dict `:` type(operands)";
}
def Exec_CachedAttentionOp : Exec_Op<"cached_attention"> {
  let summary = "graph.cached_attention by tiles; rows of q, k, v and the result may have strides";
  let arguments = (ins AnyMemRef:$q, AnyMemRef:$k, AnyMemRef:$v, AnyMemRef:$slots, AnyMemRef:$positions,
                       Optional<AnyMemRef>:$mask, AnyMemRef:$keys, AnyMemRef:$values, AnyMemRef:$result,
                       AnyMemRef:$workspace, F64Attr:$scale, I64Attr:$threads);
  let assemblyFormat = "operands attr-dict `:` type(operands)";
}
def Exec_LinearNllOp : Exec_Op<"linear_nll", [AttrSizedOperandSegments]> {
  let summary = "graph.linear_nll_grad by tiles of rows";
  let description = [{
    `workspace` holds a tile of logits. Gradients of weight and bias are stored, or
    obey the run's accumulate flag where they are marked. `kernels` (compile-products) are those of its
    products, in a tile of rows and in the last one that has fewer: logits, gradient of x, gradient of the
    weight; unit for one that is the library's or that there is not.
  }];
  let arguments = (ins AnyMemRef:$x, AnyMemRef:$weight, Optional<AnyMemRef>:$bias, AnyMemRef:$labels, AnyMemRef:$grad,
                       AnyMemRef:$loss, Optional<AnyMemRef>:$x_grad, Optional<AnyMemRef>:$weight_grad,
                       Optional<AnyMemRef>:$bias_grad, AnyMemRef:$workspace, I64Attr:$ignore_index, UnitAttr:$transpose_b,
                       UnitAttr:$weight_into_gradient, UnitAttr:$bias_into_gradient, OptionalAttr<ArrayAttr>:$kernels);
  let assemblyFormat = "operands attr-dict `:` type(operands)";
  let hasVerifier = 1;
}
def Exec_CtcOp : Exec_Op<"ctc"> {
  let summary = "graph.ctc, a sample at a time";
  let arguments = (ins AnyMemRef:$logs, AnyMemRef:$targets, AnyMemRef:$input_lengths, AnyMemRef:$target_lengths,
                       AnyMemRef:$workspace, AnyMemRef:$loss, I64Attr:$blank, UnitAttr:$zero_infinity);
  let assemblyFormat = "operands attr-dict `:` type(operands)";
}
def Exec_CtcGradOp : Exec_Op<"ctc_grad"> {
  let summary = "graph.ctc_grad, a sample at a time";
  let arguments = (ins AnyMemRef:$logs, AnyMemRef:$targets, AnyMemRef:$input_lengths, AnyMemRef:$target_lengths,
                       AnyMemRef:$grad, AnyMemRef:$workspace, AnyMemRef:$logs_grad, I64Attr:$blank,
                       UnitAttr:$zero_infinity);
  let assemblyFormat = "operands attr-dict `:` type(operands)";
}
def Exec_ScatterOp : Exec_Op<"scatter"> {
  let summary = "result = data, then each row of updates is put at its index, or combined (graph.scatter)";
  let arguments = (ins AnyMemRef:$data, AnyMemRef:$indices, AnyMemRef:$updates, AnyMemRef:$result, Dsopt_ScatterMode:$mode);
  let assemblyFormat = [{
    $mode $data `,` $indices `,` $updates `->` $result attr-dict
    `:` type($data) `,` type($indices) `,` type($updates) `->` type($result)
  }];
}
def Exec_ScatterAddOp : Exec_Op<"scatter_add"> {
  let summary = "result = 0 (or kept, into a gradient that accumulates); result[index] += row, in order";
  let description = [{
    A result in bf16 takes each row's sum, made in fp32, and rounds once. With `sums` the
    result holds another gradient, and each of its elements takes one sum, made from zero
    and rounded to its type: what `exec.add` of a gradient of its own would give. `workspace`
    is the scratch for either.
  }];
  let arguments = (ins AnyMemRef:$rows, AnyMemRef:$indices, AnyMemRef:$result, Optional<AnyMemRef>:$workspace,
                       UnitAttr:$into_gradient, UnitAttr:$sums);
  let assemblyFormat = [{
    $rows `,` $indices `->` $result (`workspace` $workspace^)? attr-dict
    `:` type($rows) `,` type($indices) `->` type($result) (`workspace` type($workspace)^)?
  }];
}
def Exec_AccumulateOp : Exec_Op<"accumulate"> {
  let summary = "stores a value to a gradient, or adds it where the run accumulates, rounded to its type";
  let arguments = (ins AnyMemRef:$value, AnyMemRef:$gradient);
  let assemblyFormat = "$value `->` $gradient attr-dict `:` type($value) `->` type($gradient)";
}

#endif // DSOPT_DIALECT_EXEC_EXECOPS
