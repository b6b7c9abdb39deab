//===- ExecEnums.td - choices of the exec dialect --------------*- tablegen -*-===//

#ifndef DSOPT_DIALECT_EXEC_EXECENUMS
#define DSOPT_DIALECT_EXEC_EXECENUMS

include "mlir/IR/EnumAttr.td"

def Exec_StreamKind : I32EnumAttr<"StreamKind", "what a stream's actions do: the runtime has queues of these kinds", [
    I32EnumAttrCase<"Compute", 0, "compute">, I32EnumAttrCase<"Communication", 1, "communication">,
    I32EnumAttrCase<"Copy", 2, "copy">, I32EnumAttrCase<"Disk", 3, "disk">, I32EnumAttrCase<"Host", 4, "host">]> {
  let cppNamespace = "::dsopt::exec";
}

def Exec_MemoryKind : I32EnumAttr<"MemoryKind", "where a memory is", [
    I32EnumAttrCase<"Device", 0, "device">, I32EnumAttrCase<"Host", 1, "host">, I32EnumAttrCase<"Disk", 2, "disk">]> {
  let cppNamespace = "::dsopt::exec";
}

def Exec_BufferKind : I32EnumAttr<"BufferKind", "what a buffer's bytes are counted as", [
    I32EnumAttrCase<"Parameters", 0, "parameters">, I32EnumAttrCase<"Gradients", 1, "gradients">,
    I32EnumAttrCase<"Optimizer", 2, "optimizer">, I32EnumAttrCase<"Activations", 3, "activations">,
    I32EnumAttrCase<"Buffers", 4, "buffers">, I32EnumAttrCase<"Reduction", 5, "reduction">,
    I32EnumAttrCase<"Tied", 6, "tied">, I32EnumAttrCase<"Constants", 7, "constants">,
    I32EnumAttrCase<"Secondary", 8, "secondary">, I32EnumAttrCase<"Packed", 9, "packed">,
    I32EnumAttrCase<"Cache", 10, "cache">]> {
  let cppNamespace = "::dsopt::exec";
}

def Exec_ProgramKind : I32EnumAttr<"ProgramKind", "what programs are run for: a step, an evaluation, a step whose updates lag one behind, a step behind the optimizer's freeze; one that exchanges compressed gradients, one that each rank makes by itself, and one in which ranks meet; the first step behind the freeze since the program was started", [
    I32EnumAttrCase<"Step", 0, "step">, I32EnumAttrCase<"Evaluation", 1, "evaluation">,
    I32EnumAttrCase<"DelayedStep", 2, "delayed">, I32EnumAttrCase<"FrozenStep", 3, "frozen">,
    I32EnumAttrCase<"CompressedStep", 4, "compressed">, I32EnumAttrCase<"LocalStep", 5, "local">,
    I32EnumAttrCase<"JoinStep", 6, "join">, I32EnumAttrCase<"FirstFrozenStep", 7, "first">]> {
  let cppNamespace = "::dsopt::exec";
}

def Exec_BufferRole : I32EnumAttr<"BufferRole", "what a buffer is to those that look for it", [
    I32EnumAttrCase<"Seed", 0, "seed">, I32EnumAttrCase<"Scalars", 1, "scalars">,
    I32EnumAttrCase<"Staging", 2, "staging">, I32EnumAttrCase<"Stored", 3, "stored">,
    I32EnumAttrCase<"Master", 4, "master">, I32EnumAttrCase<"Gathered", 5, "gathered">,
    I32EnumAttrCase<"Accumulator", 6, "accumulator">, I32EnumAttrCase<"Pending", 7, "pending">,
    I32EnumAttrCase<"State", 8, "state">, I32EnumAttrCase<"Kept", 9, "kept">]> {
  let cppNamespace = "::dsopt::exec";
}

def Exec_Traffic : I32EnumAttr<"Traffic", "what bytes between ranks are counted as", [
    I32EnumAttrCase<"AllGather", 0, "all_gather">, I32EnumAttrCase<"ReduceScatter", 1, "reduce_scatter">,
    I32EnumAttrCase<"SendRecv", 2, "send_recv">, I32EnumAttrCase<"Tied", 3, "tied">,
    I32EnumAttrCase<"AllToAll", 4, "all_to_all">, I32EnumAttrCase<"TensorParallel", 5, "tensor_parallel">,
    I32EnumAttrCase<"SequenceParallel", 6, "sequence_parallel">]> {
  let cppNamespace = "::dsopt::exec";
}

def Exec_AccessMode : I32Enum<"AccessMode", "what a segment does with an argument; update is both where the run accumulates and a write elsewhere, add both everywhere", [
    I32EnumCase<"Read", 0, "read">, I32EnumCase<"Write", 1, "write">, I32EnumCase<"Update", 2, "update">,
    I32EnumCase<"Add", 3, "add">]> {
  let cppNamespace = "::dsopt::exec";
}

def Exec_ProductPacking : I32Enum<"ProductPacking", "where a kernel of a product reads b from", [
    I32EnumCase<"None", 0, "none">, I32EnumCase<"Fused", 1, "fused">, I32EnumCase<"Transpose", 2, "transpose">,
    I32EnumCase<"Registers", 3, "registers">, I32EnumCase<"Lines", 4, "lines">]> {
  let cppNamespace = "::dsopt::exec";
}

#endif // DSOPT_DIALECT_EXEC_EXECENUMS
