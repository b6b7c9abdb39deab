//===- Passes.td - waits and addresses --------------------------*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_ARENA_PASSES
#define DSOPT_TRANSFORMS_ARENA_PASSES

include "mlir/Pass/PassBase.td"

def InsertWaits : Pass<"insert-waits", "::mlir::ModuleOp"> {
  let summary = "write the waits that actions need, from what they read and write alone";
  let description = [{
    Input: programs whose actions stand in an order that is right if all ran one after the other.
    Output: the same with an `exec.wait` wherever an action touches bytes that an earlier action of
    another stream writes, or writes bytes that one reads, unless other waits imply it. Waits that
    are there stay if they say something new.

    ```mlir
    %0 = exec.run @block0.F [@input.x, @block0.F.0] micro_batch 0 on @compute
    exec.wait %0 on @send                           // new
    %1 = exec.send @block0.F.0 bytes 4096 to 1 tag "block0.F.0" micro_batch 0 send_recv on @send
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def DedupeSegments : Pass<"dedupe-segments", "::mlir::ModuleOp"> {
  let summary = "make equal segments one function";
  let description = [{
    Input: segments and programs that run them. Output: the same without those
    segments that are equal to an earlier one in types, accesses and operations;
    which parameter an argument is does not count, since a run names its buffers.
    Blocks of equal structure are so compiled once; runs say which they are for.

    ```mlir
    exec.run @block3.F [...] micro_batch 0 on @compute
    // becomes, where block 1 is equal
    exec.run @block1.F for <3 F> [...] micro_batch 0 on @compute
    ```
  }];
}

def PlanMemory : Pass<"plan-memory", "::mlir::ModuleOp"> {
  let summary = "give every buffer its place in its memory";
  let description = [{
    Input: programs whose buffers have no offsets. Output, for each memory by itself:
    offsets, its size, the bound no plan can beat and what is `live` of it (bytes by class at
    the peak); for each program its `traffic` (bytes one rank sends in a step). Two
    buffers share bytes only where each use of one is complete before the next of the
    other starts, by streams and waits. Several packing orders are tried, the smallest
    memory is kept. More of the device's memory than the budget is an error that says what is
    alive at the peak.

    ```mlir
    exec.buffer @b0.full : memref<8320xf32> buffers slots 1 stride 33280 gathered of @b0
    // becomes
    exec.buffer @b0.full at 16640 : memref<8320xf32> buffers slots 1 stride 33280 gathered of @b0
    ```
  }];
  let options = [Option<"budget", "budget", "int64_t", "0", "bytes a rank may use (0: as dsopt.options says)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def DescribeChanges : Pass<"describe-changes", "::mlir::ModuleOp"> {
  let summary = "note what each action touches, and changes of the state that outlives a step";
  let description = [{
    Expects segments and kernels as operations, before they become code. Leaves on each
    action that writes to persistent buffers, and on each update, their names in
    `exec.changes`: a checkpoint that is still being taken of them holds the action back.
    Leaves on each action in `exec.touches` which bytes it reads and writes, which
    DSOPT_CHECK_ACCESSES compares with what it does. Changes nothing else.

    ```mlir
    exec.update @k::@sgd of @b0 [@b0.param, @b0.grad] elements 64 on @compute
    // adds, where only the parameter is persistent
    {exec.changes = [@b0.param],
     exec.touches = [#exec.touch<<@b0.param> 256 update>, #exec.touch<<@b0.grad> 256 read>,
                     #exec.touch<<@scalars> 64 read>]}
    ```
  }];
}

#endif // DSOPT_TRANSFORMS_ARENA_PASSES
