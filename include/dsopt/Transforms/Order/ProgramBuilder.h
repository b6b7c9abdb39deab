//===- ProgramBuilder.h - writes one position's program ---------*- C++ -*-===//
//
// Declares buffers and appends actions: what runs in which order on which stream,
// never what it has to wait for (InsertWaits.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TRANSFORMS_ORDER_PROGRAMBUILDER_H
#define DSOPT_TRANSFORMS_ORDER_PROGRAMBUILDER_H

#include "dsopt/Dialect/Exec/Actions.h"

#include "llvm/ADT/DenseMap.h"

namespace dsopt {

/// An address so many bytes further.
inline exec::RefAttr shifted(exec::RefAttr ref, int64_t bytes) {
  return exec::RefAttr::get(ref.getContext(), ref.getBuffer(), ref.getSlot(), ref.getOffset() + bytes,
                            ref.getSteps());
}
/// The part of this rank where parts of so many bytes, one for each rank along axes, lie from an address on.
inline exec::RefAttr ownPart(exec::RefAttr ref, int64_t bytes, dist::AxesAttr axes, const Grid &grid) {
  return exec::RefAttr::get(ref.getContext(), ref.getBuffer(), ref.getSlot(), ref.getOffset(),
                            grid.stepsAlong(axes.getParts(), bytes));
}

class ProgramBuilder {
public:
  /// Continues a program: actions are appended to its schedule until `insertBefore` or `insertAfter` says
  /// otherwise. Its collectives have to be numbered anew at the end.
  explicit ProgramBuilder(exec::ProgramOp program);
  ProgramBuilder(mlir::ModuleOp module, int64_t position, llvm::ArrayRef<int64_t> blocks, bool evaluates,
                 mlir::IntegerAttr variant);

  struct BufferTraits {
    int64_t slots = 1;
    bool persistent = false;
    int64_t payload = -1; ///< bytes of a slot that are not padding, -1: all
    llvm::StringRef symbol = {};
    std::optional<exec::BufferRole> role = std::nullopt;
    llvm::StringRef of = {};     ///< the bucket
    llvm::StringRef state = {};  ///< which of what is kept of it
    int64_t use = -1;            ///< of an accumulator
    llvm::StringRef memory = {}; ///< empty: the program's first one
  };
  /// Declares a memory behind the program's others, where it is new, and aligns its buffers at least so.
  void memory(llvm::StringRef name, exec::MemoryKind kind, int64_t alignment = exec::kAlignment);
  /// The buffer's symbol; declares it where it is new.
  mlir::FlatSymbolRefAttr buffer(const llvm::Twine &name, mlir::Type type, exec::BufferKind kind,
                                 BufferTraits traits);
  mlir::FlatSymbolRefAttr buffer(const llvm::Twine &name, mlir::Type type, exec::BufferKind kind) {
    return buffer(name, type, kind, BufferTraits());
  }
  exec::RefAttr ref(mlir::FlatSymbolRefAttr buffer, int64_t slot = 0, int64_t offset = 0) {
    return exec::RefAttr::get(context, buffer, slot, offset, {});
  }

  /// The program's buffer of that role (and bucket, and use or state); null if it has none.
  exec::BufferOp find(exec::BufferRole role, llvm::StringRef of = {}, int64_t use = -1,
                      llvm::StringRef state = {});
  /// The buffer that an address lies in.
  exec::BufferOp bufferOf(exec::RefAttr ref) const { return declared.lookup(ref.getBuffer().getAttr()); }

  /// Writes an action.
  template <typename OpTy, typename... Args> OpTy emit(Args &&...args) {
    return OpTy::create(actions, location, exec::EventType::get(context), std::forward<Args>(args)...);
  }
  /// Writes an action that differs from another one in what is set afterwards.
  template <typename OpTy> OpTy repeat(OpTy op) {
    // Without the maps that clone() keeps of what else it clones: most actions repeat another.
    return mlir::cast<OpTy>(actions.insert(
        mlir::Operation::create(op->getLoc(), op->getName(), op->getResultTypes(), op->getOperands(),
                                op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
                                /*successors=*/{}, /*numRegions=*/0)));
  }
  /// Writes what is no action.
  template <typename OpTy, typename... Args> OpTy write(Args &&...args) {
    return OpTy::create(actions, location, std::forward<Args>(args)...);
  }
  /// What is written next stands in front of `op`, or behind it.
  void insertBefore(mlir::Operation *op) { actions.setInsertionPoint(op); }
  void insertAfter(mlir::Operation *op) { actions.setInsertionPointAfter(op); }
  /// The next collective's place in the order of those written here.
  int64_t nextOrder() { return collectives++; }

  exec::ProgramOp program;
  mlir::MLIRContext *context;

private:
  mlir::Location location;
  mlir::OpBuilder buffers, actions;
  using Role = std::tuple<int, mlir::Attribute, mlir::Attribute, int64_t>;
  static Role roleOf(exec::BufferOp buffer);
  void keep(exec::BufferOp buffer);

  llvm::DenseMap<mlir::StringAttr, exec::BufferOp> declared;
  llvm::DenseMap<Role, exec::BufferOp> roles;
  int64_t collectives = 0;
};

} // namespace dsopt

#endif // DSOPT_TRANSFORMS_ORDER_PROGRAMBUILDER_H
