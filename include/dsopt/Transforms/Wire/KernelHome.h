//===- KernelHome.h - where a pass adds kernels -----------------*- C++ -*-===//
//
// Beside the target's others where these are in a module of their own (nest-kernels), else in
// the module itself.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TRANSFORMS_WIRE_KERNELHOME_H
#define DSOPT_TRANSFORMS_WIRE_KERNELHOME_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dsopt {

class KernelHome {
public:
  /// Rows that the types of a kernel over rows say: it runs on any number of them.
  static constexpr int64_t kRows = 64;

  explicit KernelHome(mlir::ModuleOp module)
      : nested(module.lookupSymbol<mlir::ModuleOp>(exec::kKernelsModule)), home(nested ? nested : module),
        symbols(home) {}

  mlir::MLIRContext *getContext() { return home.getContext(); }
  mlir::Location getLoc() { return home.getLoc(); }
  /// A kernel that was added, or a name that none has.
  mlir::func::FuncOp lookup(llvm::StringRef name) { return symbols.lookup<mlir::func::FuncOp>(name); }
  std::string freeName(llvm::StringRef name) { return graph::freeSymbol(symbols, name.str()); }

  /// Adds a function that is in no module; how it iterates is set where it does not say so.
  mlir::SymbolRefAttr add(mlir::func::FuncOp function, graph::Iteration iteration) {
    if (!function->hasAttr(graph::kIterateAttr)) {
      int64_t range = iteration == graph::Iteration::Rows ? kRows : dist::kGranule;
      function->setAttr(graph::kIterateAttr, graph::IterationAttr::get(getContext(), iteration));
      function->setAttr(graph::kRangeAttr, mlir::DenseI64ArrayAttr::get(getContext(), {range}));
    }
    return add(function);
  }
  /// Adds a kernel that is compiled by what else it says.
  mlir::SymbolRefAttr add(mlir::func::FuncOp function) {
    nested ? function.setNested() : function.setPrivate();
    symbols.insert(function);
    return symbolOf(function);
  }
  /// What actions call it by.
  mlir::SymbolRefAttr symbolOf(mlir::func::FuncOp function) {
    auto symbol = mlir::FlatSymbolRefAttr::get(function);
    return nested ? mlir::SymbolRefAttr::get(nested.getSymNameAttr(), symbol) : mlir::SymbolRefAttr(symbol);
  }

private:
  mlir::ModuleOp nested, home; ///< null where kernels are in the module itself
  mlir::SymbolTable symbols;
};

} // namespace dsopt

#endif // DSOPT_TRANSFORMS_WIRE_KERNELHOME_H
