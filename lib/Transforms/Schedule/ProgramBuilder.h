//===- ProgramBuilder.h - writes one position's program ---------*- C++ -*-===//
//
// Declares buffers and appends actions. Before each action it writes the waits
// that its accesses need (Timeline.h): whoever builds a program says what runs in
// which order on which stream, never what it has to wait for; only waits that
// bound memory are asked for by name.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_SCHEDULE_PROGRAMBUILDER_H
#define DSOPT_LIB_TRANSFORMS_SCHEDULE_PROGRAMBUILDER_H

#include "Timeline.h"

namespace dsopt {

class ProgramBuilder {
public:
  ProgramBuilder(mlir::ModuleOp module, AccessAnalysis &analysis, int64_t position,
                 std::pair<int64_t, int64_t> blocks, bool evaluates, mlir::IntegerAttr variant);

  struct BufferTraits {
    int64_t slots = 1;
    bool persistent = false;
    int64_t payload = -1; ///< bytes of a slot that are not padding, -1: all
    llvm::StringRef symbol = {};
  };
  /// The buffer's symbol; declares it where it is new.
  mlir::FlatSymbolRefAttr buffer(const llvm::Twine &name, mlir::Type type, llvm::StringRef kind,
                                 BufferTraits traits);
  mlir::FlatSymbolRefAttr buffer(const llvm::Twine &name, mlir::Type type, llvm::StringRef kind) {
    return buffer(name, type, kind, BufferTraits());
  }
  exec::RefAttr ref(mlir::FlatSymbolRefAttr buffer, int64_t slot = 0, int64_t offset = 0,
                    int64_t perRank = 0) {
    return exec::RefAttr::get(context, buffer, slot, offset, perRank);
  }

  /// Appends an action after the waits it needs.
  template <typename OpTy, typename... Args> OpTy emit(Args &&...args) {
    auto op = OpTy::create(actions, location, exec::EventType::get(context), std::forward<Args>(args)...);
    order(op);
    return op;
  }
  /// Later actions of `stream` start after `action` (null: nothing to do).
  void wait(mlir::Operation *action, exec::Stream stream);
  /// The next collective's place in the program's order.
  int64_t nextOrder() { return collectives++; }
  /// Whether an action did not fit its segment or bucket (reported).
  bool failed() const { return broken; }

  exec::ProgramOp program;
  mlir::MLIRContext *context;

private:
  void order(mlir::Operation *action);
  void insertWait(mlir::Operation *action, exec::Stream stream, mlir::OpBuilder &builder);

  mlir::Location location;
  mlir::OpBuilder buffers, actions;
  AccessAnalysis &analysis;
  Timeline timeline;
  HazardTracker hazards;
  llvm::DenseMap<mlir::StringAttr, exec::BufferOp> declared;
  int64_t collectives = 0;
  bool broken = false;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_SCHEDULE_PROGRAMBUILDER_H
