//===- DecodingWriter.h - rows at positions of sequences --------*- C++ -*-===//
//
// Makes of a function of one sequence one of rows that are each a position of a sequence in a slot. Private
// to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_GENERATE_DECODINGWRITER_H
#define DSOPT_LIB_TRANSFORMS_GENERATE_DECODINGWRITER_H

#include "RowsWriter.h"

namespace dsopt {

class DecodingWriter : public RowsWriter {
public:
  DecodingWriter(mlir::func::FuncOp function, const RowPlaces &places, int64_t rows, int64_t slots,
                 int64_t context);

  /// Behind write(): the result has `picked` of the rows.
  void pickRows(int64_t picked);

private:
  mlir::Value numbers(int64_t offset) override;
  bool writeMixer(mlir::Operation *op) override;
  mlir::Value addArgument(llvm::StringRef name, int64_t elements);
  mlir::Value picked(mlir::Value value, RowPlace place);
  mlir::FlatSymbolRefAttr addCache(mlir::Value rows);
  mlir::Value addedTo(mlir::Value scores);
  mlir::Value columnsOf(mlir::Value heads);

  int64_t slotCount, context;
  mlir::Value positions, slots, picks;
  int64_t pickCount = 0, caches = 0;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_GENERATE_DECODINGWRITER_H
