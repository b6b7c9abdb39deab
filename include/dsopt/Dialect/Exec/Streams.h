//===- Streams.h - the streams of a module, counted -------------*- C++ -*-===//
#ifndef DSOPT_DIALECT_EXEC_STREAMS_H
#define DSOPT_DIALECT_EXEC_STREAMS_H

#include "dsopt/Dialect/Exec/Actions.h"

namespace dsopt::exec {

/// Programs name streams, passes count them: by their place in the module.
class Streams {
public:
  /// Of no module: there are no streams.
  explicit Streams(mlir::ModuleOp module);

  int size() const { return streams.size(); }
  StreamOp operator[](int index) const { return streams[index]; }
  /// The stream of that name, -1 if there is none.
  int find(mlir::FlatSymbolRefAttr name) const {
    for (int index = 0; index < size(); ++index)
      if (names[index] == name.getAttr())
        return index;
    return -1;
  }
  /// The stream of an action or a wait of a verified schedule.
  int of(mlir::Operation *op) const { return find(getStream(op)); }

private:
  llvm::SmallVector<StreamOp> streams;
  llvm::SmallVector<mlir::StringAttr> names;
};

} // namespace dsopt::exec

#endif // DSOPT_DIALECT_EXEC_STREAMS_H
