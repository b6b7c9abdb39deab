//===- Passes.td - programs, from first principles --------------*- tablegen -*-===//

#ifndef DSOPT_VERIFY_PASSES
#define DSOPT_VERIFY_PASSES

include "mlir/Pass/PassBase.td"

def VerifyExec : Pass<"verify-exec", "::mlir::ModuleOp"> {
  let summary = "refuse programs that race, overlap, mismatch, deadlock or leave something out";
  let description = [{
    What holds after stage 6, recomputed from the programs alone. In each
    program: addresses lie in their buffers and buffers in their memories; conflicting
    accesses of different streams are ordered by waits; what is read was wholly
    written, on every rank that reads it, and what is written is read; no gradient
    is lost or added twice; buffers that share bytes are never alive together;
    collectives ascend in order, those of a communicator and all reductions on one
    stream; every gradient is reduced before the agreement. Between programs: sends and receives match in order, tag, bytes
    and traffic; all agree once; and with rendezvous transfers that buffer nothing
    no position waits for ever. In all of them together: each phase of each block
    runs once on each micro-batch whose loss is agreed on, W after B after F and
    gradients in ascending order of micro-batches; each trained bucket has one norm
    and one update, at the position of its first block.
  }];
}

#endif // DSOPT_VERIFY_PASSES
