//===- Passes.td - when collectives start -----------------------*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_OVERLAP_PASSES
#define DSOPT_TRANSFORMS_OVERLAP_PASSES

include "mlir/Pass/PassBase.td"

def ShareGathers : Pass<"share-gathers", "::mlir::ModuleOp"> {
  let summary = "let a gather serve a window of micro-batches";
  let description = [{
    Input: programs in which each gather serves one micro-batch, up to its `exec.release`. Output:
    one gather for each `gather-window` of micro-batches, kept to the last release of the window;
    windows of one target that overlap, or follow without a run between, share a gather (so do
    forward's and backward's while both are open). There are no releases any more: what a buffer
    holds is needed to its last reader. Collectives are numbered anew.

    With `max-reuse-distance` a gather also serves the next use of its bucket where the runs between
    are given fewer elements of gathered buckets than that. With `max-live-parameters` only so much is
    shared that no run has more gathered elements than that (the shortest ways between two uses come
    first); a run that is itself given more is an error.

    ```mlir
    %0 = exec.gather @b0.param to @b0.full ...
    %1 = exec.run @block0.F [... @b0.full] micro_batch 0 on @compute
    exec.release %0
    %2 = exec.gather @b0.param to @b0.full ...
    %3 = exec.run @block0.F [... @b0.full] micro_batch 1 on @compute
    exec.release %2
    // becomes, with gather-window=2
    %0 = exec.gather @b0.param to @b0.full ...
    %1 = exec.run @block0.F [... @b0.full] micro_batch 0 on @compute
    %3 = exec.run @block0.F [... @b0.full] micro_batch 1 on @compute
    ```
  }];
  let options = [
    Option<"gatherWindow", "gather-window", "int64_t", "0", "micro-batches a gather serves (0: as dsopt.options says, else 1)">,
    Option<"maxReuseDistance", "max-reuse-distance", "int64_t", "-1", "elements used before a next use for which a bucket stays whole (-1: as dsopt.options says, else none)">,
    Option<"maxLiveParameters", "max-live-parameters", "int64_t", "-1", "gathered elements at once (-1: as dsopt.options says, else any number)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def PrefetchGathers : Pass<"prefetch-gathers", "::mlir::ModuleOp"> {
  let summary = "start gathers some runs ahead of the run that needs them";
  let description = [{
    Input: programs in which whole parameters are gathered right in front of a run. Output: each
    such gather stands behind the run that is `distance` runs further ahead, and starts when that
    run is complete; never in front of a run that still needs what the buffer holds. Collectives are
    numbered anew. While `bucket-size` elements and more are there for later runs alone no further gather
    starts early, and none with which more than `max-live-parameters` elements would be whole at once, or
    more than `memory` bytes be held beside a run (in order of issue).
    A remark (category `overlap`) says which gathers are not ahead of their run, and why.

    ```mlir
    %0 = exec.run @block0.F ...
    %1 = exec.run @block1.F ...
    %2 = exec.gather @b2.param to @b2.full ...
    %3 = exec.run @block2.F [... @b2.full] ...
    // becomes, with distance=1
    %0 = exec.run @block0.F ...
    exec.wait %0 on @comm
    %2 = exec.gather @b2.param to @b2.full ...
    %1 = exec.run @block1.F ...
    %3 = exec.run @block2.F [... @b2.full] ...
    ```
  }];
  let options = [
    Option<"distance", "distance", "int64_t", "-1", "runs ahead (-1: as dsopt.options says, else 1)">,
    Option<"bucketSize", "bucket-size", "int64_t", "-1", "elements gathered ahead that are enough (-1: as dsopt.options says, else any number)">,
    Option<"memory", "memory", "int64_t", "0", "bytes beside a run, with what is gathered early (0: as dsopt.options says, else any number)">,
    Option<"maxLiveParameters", "max-live-parameters", "int64_t", "-1", "gathered elements at once (-1: as dsopt.options says, else any number)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def GatherByNode : Pass<"gather-by-node", "::mlir::ModuleOp"> {
  let summary = "keep gathered parameters within each node for the step's later gathers";
  let description = [{
    Input: programs in which parameters are gathered over @dp, where `dsopt.options` has
    `secondary_params = "node"` and a `node_size` between 1 and the data-parallel ranks; others stay as
    they are. Output: the communicators @node and @across, a buffer of kind `secondary` for each bucket
    that is gathered, and in the place of a gather those within the node that make the bucket whole from
    there, one for each node's slices. In front of a step's first (and where slices have changed since)
    a gather @across brings them from the other nodes. Collectives are numbered anew.

    ```mlir
    %0 = exec.gather @b0.param to @b0.full bytes 256 all_gather order 0 over @dp on @comm
    %1 = exec.run @block0.F ...
    %2 = exec.gather @b0.param to @b0.full bytes 256 all_gather order 1 over @dp on @comm
    // becomes, with 2 of 4 ranks in a node
    %0 = exec.gather @b0.param to @b0.secondary bytes 256 all_gather order 0 over @across on @comm
    %1 = exec.gather @b0.secondary to @b0.full bytes 256 all_gather order 1 over @node on @comm
    %2 = exec.gather @b0.secondary+256 to @b0.full+512 bytes 256 all_gather order 2 over @node on @comm
    %3 = exec.run @block0.F ...
    %4 = exec.gather @b0.secondary to @b0.full bytes 256 all_gather order 3 over @node on @comm
    %5 = exec.gather @b0.secondary+256 to @b0.full+512 bytes 256 all_gather order 4 over @node on @comm
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def ThrottleReductions : Pass<"throttle-reductions", "::mlir::ModuleOp"> {
  let summary = "bound the gradients that are on their way";
  let description = [{
    Input: programs. Output: a run that writes a gradient to be reduced waits for the
    `in-flight`-last reduction before it, so that the bytes of the one before that are free. What begins a
    gradient that is copied to the host waits in the same way for the `in-flight`-last copy of one.

    ```mlir
    exec.wait %r0 on @compute                       // new, with in-flight=2 and reductions %r0, %r1
    %3 = exec.run @block0.W [... @b0.whole.0.0] ...
    ```
  }];
  let options = [Option<"inFlight", "in-flight", "int64_t", "0", "reductions (0: as dsopt.options says, else 2)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def ReportOverlap : Pass<"report-overlap", "::mlir::ModuleOp"> {
  let summary = "say what computation has to wait for at once";
  let description = [{
    Input: programs with their waits. Output: the same, and a remark (category `overlap`) for
    reductions, copies and gathers that the compute stream waits for although no run lies between what
    they had to wait for and what waits for them, with the buffer that both touch; and for those that
    cannot start before the last run is complete. Of what travels between sequence shards (hops along a ring, exchanges
    of heads, sums) it says how long runs of each phase wait for it, by the times that the plan has of a step. Without
    remarks nothing is looked for.

    ```mlir
    %0 = exec.run @block1.B ...
    exec.wait %0 on @comm
    %1 = exec.reduce @b1.whole.0.0 to @b1.grad.0 ...
    exec.wait %1 on @compute
    %2 = exec.norm @b1.grad.0 ...   // no run lies between
    ```
  }];
}

#endif // DSOPT_TRANSFORMS_OVERLAP_PASSES
