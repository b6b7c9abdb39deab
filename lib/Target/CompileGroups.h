//===- CompileGroups.h - functions compiled in groups -----------*- C++ -*-===//
//
// Functions are compiled in groups, each an LLVM module of its own: translated
// one after the other, handed over as bitcode, optimized and turned into machine
// code (PTX for a device) by any thread, or taken from the cache. Groups depend on the module alone.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TARGET_COMPILEGROUPS_H
#define DSOPT_LIB_TARGET_COMPILEGROUPS_H

#include "dsopt/Target/Target.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace dsopt {
/// Adds data to a module that is to be compiled.
using AddData = llvm::function_ref<void(llvm::Module &)>;

/// What is compiled together, and for what: one architecture.
struct Group {
  TargetAttr target;
  llvm::SmallVector<char, 0> bitcode;
  bool isKept = true;    ///< by the cache
  std::string name = {}; ///< under which the cache keeps it besides, if it is a group of known kernels
  std::unique_ptr<llvm::MemoryBuffer> object = nullptr; ///< if it is there already
};

/// Functions that are compiled together.
inline constexpr size_t kGroup = 4;

/// The functions with a body, or an object that is known, and the globals that other objects can see.
void collectRoots(mlir::ModuleOp module, llvm::SmallVectorImpl<mlir::Operation *> &functions,
                  llvm::SmallVectorImpl<mlir::Operation *> &globals, const KnownKernels *known = nullptr);

/// Copies operations of the LLVM dialect to a module of their own: `roots` whole,
/// with what is local to the object and used by them; other symbols declared.
mlir::OwningOpRef<mlir::ModuleOp> extract(mlir::ModuleOp module, mlir::SymbolTable &symbols,
                                          llvm::ArrayRef<mlir::Operation *> roots);

/// Translates to LLVM IR with everything set that optimization looks at.
std::unique_ptr<llvm::Module> translate(mlir::ModuleOp part, TargetAttr target, llvm::TargetMachine &machine,
                                        llvm::LLVMContext &context);

/// The machine that a module is for; an error where there is none.
std::unique_ptr<llvm::TargetMachine> makeMachine(mlir::ModuleOp module, TargetAttr target, unsigned optLevel);

/// Appends the groups of a module's functions; before them its data, with what `addTables` adds. Takes the
/// objects of `known` kernels, where it declares them.
llvm::LogicalResult collectGroups(mlir::ModuleOp module, TargetAttr target, unsigned optLevel,
                                  AddData addTables, std::vector<Group> &groups, KnownKernels &known);

/// What each group becomes: an object, or PTX. Takes the objects that are there.
llvm::LogicalResult compileGroups(mlir::ModuleOp module, std::vector<Group> &groups,
                                  const ObjectOptions &options, ObjectBuffers &compiled);

} // namespace dsopt

#endif // DSOPT_LIB_TARGET_COMPILEGROUPS_H
