//===- Symbols.h - the compiler's symbols beside the model's ----*- C++ -*-===//
#ifndef DSOPT_DIALECT_GRAPH_SYMBOLS_H
#define DSOPT_DIALECT_GRAPH_SYMBOLS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace dsopt::graph {
/// Makes a symbol free for something of the compiler's own: a parameter or state that has it is renamed.
/// Models choose their parameters' names, and know nothing of what the compiler calls its functions and
/// programs.
void makeWay(mlir::SymbolTable &symbols, llvm::StringRef symbol);
/// Names of parameters that others are `part_of`: nothing reads them, parts are trained in their place.
llvm::DenseSet<mlir::StringAttr> findWholes(mlir::ModuleOp module);
class ParameterOp;
class ReadOp;
/// The parameter that is read, or that what is read is state of: one of 16 bits is updated by its master.
mlir::FlatSymbolRefAttr parameterRead(ReadOp read, mlir::SymbolTable &symbols);
/// The parameter that updates see whole: what a tensor shard is part of, else the parameter itself.
mlir::StringAttr seenWhole(ParameterOp parameter);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_SYMBOLS_H
