//===- ExecBase.td - the exec dialect and the base of its operations --------===//

#ifndef DSOPT_DIALECT_EXEC_EXECBASE
#define DSOPT_DIALECT_EXEC_EXECBASE

include "mlir/IR/OpBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::dsopt::exec";
  let summary = "when it runs: actions on streams, every byte placed";
  let description = [{
    One `exec.program` for each pipeline position: all its ranks run the same list
    of actions. Streams are declared in the module, beside the
    communicators; each runs its actions in order, one at a time. Order across
    streams exists only through `exec.wait`. Segments are functions with the
    attribute `exec.segment`; their arguments are buffers.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::mlir::func::FuncDialect", "::dsopt::dist::DistDialect"];
}

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

#endif // DSOPT_DIALECT_EXEC_EXECBASE
