//===- ProgramWriter.h - writes the program table ---------------*- C++ -*-===//
//
// Split over EmitProgram.cpp (the program) and EmitPosition.cpp (what the ranks
// of one pipeline position do).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TARGET_PROGRAMWRITER_H
#define DSOPT_LIB_TARGET_PROGRAMWRITER_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Streams.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Target/Target.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

#include <map>

namespace dsopt {

class ProgramWriter {
public:
  ProgramWriter(mlir::ModuleOp module, llvm::raw_ostream &text, llvm::raw_ostream &actions);
  llvm::LogicalResult write(llvm::ArrayRef<DeviceImage> images);

private:
  // EmitProgram.cpp
  void writeNames(TargetAttr host);
  void writeImages(TargetAttr target, llvm::ArrayRef<DeviceImage> images);
  void writeLayout(TargetAttr target);
  void writeInputs();
  void writeBound();
  void writeMetrics();
  void writeOutputs();
  void writeShapes(int64_t size);
  /// The same of outputs.
  void writeOutputShapes(int64_t size);
  void writeParameters();
  void writeParts(llvm::ArrayRef<graph::ParameterOp> parts);
  void writeBuckets();
  void writeCommunicators();
  void writeCalls();
  /// `keepsZeros`: nothing is written between parameters.
  void writeGroups(dist::BucketOp bucket, bool keepsZeros);
  /// A string member; names that are not UTF-8 are repaired.
  void string(llvm::StringRef key, llvm::StringRef value) {
    json->attribute(key, llvm::json::fixUTF8(value));
  }
  void shape(mlir::Type type);
  /// A type's shape as an element of an array.
  void extents(mlir::Type type);
  void numbers(llvm::StringRef key, llvm::ArrayRef<int64_t> values);
  /// The element type as MLIR spells it.
  static std::string typeName(mlir::Type type);
  /// The bucket that a buffer of the program is of, -1 if none.
  int64_t bucketOf(exec::RefAttr ref) const {
    return bucketOfBuffer.lookup_or(ref.getBuffer().getAttr(), -1);
  }

  // EmitPosition.cpp
  llvm::LogicalResult writePosition(exec::ProgramOp program);
  llvm::LogicalResult writeBuffers(exec::ProgramOp program);
  llvm::LogicalResult writeLoads(exec::ProgramOp program);
  llvm::LogicalResult writeUpdates(exec::ProgramOp program);
  /// The actions as a document of their own, and where it is.
  llvm::LogicalResult writeSection(exec::ProgramOp program);
  llvm::LogicalResult writeActions(exec::ProgramOp program);
  llvm::LogicalResult writeAction(mlir::Operation &op);
  template <typename Op> void writeCall(Op run);
  llvm::LogicalResult writeRun(exec::RunOp run);
  llvm::LogicalResult writeTransform(exec::TransformOp transform);
  /// `dictionary` of integers as an object under `key`.
  void integers(llvm::StringRef key, mlir::DictionaryAttr dictionary);
  void ref(exec::RefAttr ref);
  void temp(exec::RefAttr ref);
  void refs(llvm::ArrayRef<exec::RefAttr> list);
  /// The communicator of an action; an error if the module has none of that name.
  llvm::LogicalResult communicator(mlir::Operation &action);
  /// The bytes that an action touches: which of its addresses, and addresses of others.
  void touches(mlir::Operation &action);
  void writeUses();
  /// The buffers that outlive a step and that an action changes.
  llvm::LogicalResult changes(mlir::Operation &action);
  void writeMemories(exec::ProgramOp program);
  void writeQueues();
  int64_t indexOfBucket(mlir::Attribute symbol) const {
    return bucketIndex.lookup(llvm::cast<mlir::FlatSymbolRefAttr>(symbol).getValue());
  }

  struct Place {
    int64_t bucket, offset;
  };
  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  exec::Streams streams;
  llvm::json::OStream document;
  llvm::raw_ostream &actions;
  llvm::json::OStream *json = &document;       ///< what is written to
  llvm::SmallVector<exec::ProgramOp> programs; ///< of a step
  llvm::SmallVector<dist::BucketOp> buckets;
  llvm::SmallVector<mlir::DictionaryAttr> inputs;
  llvm::StringMap<int64_t> bucketIndex, inputIndex, communicatorIndex;
  llvm::DenseMap<mlir::StringAttr, Place> places;           ///< of parameters
  llvm::StringMap<int64_t> bufferIndex;                     ///< of the program that is written
  llvm::DenseMap<mlir::StringAttr, int64_t> bucketOfBuffer; ///< likewise
  llvm::SmallVector<exec::RefAttr> written; ///< of the action that is written: its addresses, its temp behind
  std::map<std::vector<int64_t>, int64_t> uses; ///< what actions do with their addresses, by number
};

} // namespace dsopt

#endif // DSOPT_LIB_TARGET_PROGRAMWRITER_H
