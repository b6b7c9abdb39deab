//===- CopyHostKernels.cpp - a device's program gets kernels of its host ---===//
//
// What a host stream does to bytes in the host's memory is the host's code, from the same
// function: each operation of an update rounds alike on both, and what no processor has an
// instruction for is the same polynomial, so that its bits are the same.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Exec/Streams.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/OptionsDialect.h"
#include "dsopt/Target/Passes.h"
#include "dsopt/Target/Target.h"

#include "llvm/ADT/TypeSwitch.h"

namespace dsopt {
#define GEN_PASS_DEF_COPYHOSTKERNELS
#include "dsopt/Target/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
/// The module of the host's kernels in a device's program.
class HostKernels {
public:
  explicit HostKernels(ModuleOp module) : module(module) {}

  /// The host's copy of a kernel, made where there is none; null with a diagnostic at `user`.
  SymbolRefAttr get(Operation *user, SymbolRefAttr kernel) {
    SymbolRefAttr &copy = copies[kernel];
    if (copy)
      return copy;
    auto function = tables.lookupSymbolIn<func::FuncOp>(module, kernel);
    if (!function || !isForDevice(function)) {
      user->emitOpError("is the host's and runs ") << kernel << ", expected a kernel of the device";
      return nullptr;
    }
    if (!nested && failed(makeModule()))
      return nullptr;
    auto made = function.clone();
    made.setName((function.getName() + ".host").str());
    return copy = SymbolRefAttr::get(nested.getSymNameAttr(),
                                     FlatSymbolRefAttr::get(SymbolTable(nested).insert(made)));
  }

private:
  LogicalResult makeModule() {
    FailureOr<TargetAttr> host = getHostTarget(module);
    if (failed(host))
      return failure();
    SymbolTable symbols(module);
    graph::makeWay(symbols, exec::kHostKernelsModule);
    nested = ModuleOp::create(module.getLoc(), exec::kHostKernelsModule);
    nested->setAttr(kTargetAttr, *host);
    symbols.insert(nested);
    return success();
  }

  ModuleOp module, nested;
  SymbolTableCollection tables;
  DenseMap<SymbolRefAttr, SymbolRefAttr> copies;
};

struct CopyHostKernels : dsopt::impl::CopyHostKernelsBase<CopyHostKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!isForDevice(module))
      return;
    exec::Streams streams(module);
    HostKernels kernels(module);
    auto refer = [&](auto op) {
      int stream = streams.find(op.getStreamAttr());
      if (stream < 0 || streams[stream].getKind() != exec::StreamKind::Host)
        return WalkResult::advance();
      SymbolRefAttr copy = kernels.get(op, op.getKernelAttr());
      if (!copy)
        return WalkResult::interrupt();
      op.setKernelAttr(copy);
      return WalkResult::advance();
    };
    WalkResult walked = module.walk([&](Operation *op) {
      return llvm::TypeSwitch<Operation *, WalkResult>(op).Case<exec::UpdateOp, exec::MapOp>(refer).Default(
          WalkResult::advance());
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
