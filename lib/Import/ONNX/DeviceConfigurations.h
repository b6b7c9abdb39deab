//===- DeviceConfigurations.h - cuts that a model is annotated with -*- C++ -*-===//
//
// Since IR version 11 nodes say on which devices they run and how their tensors are sharded. What they say of
// initializers are cuts that are asked for, as -shard asks; all else is chosen by the compiler, which is
// said.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_IMPORT_ONNX_DEVICECONFIGURATIONS_H
#define DSOPT_LIB_IMPORT_ONNX_DEVICECONFIGURATIONS_H

#include "ModelFile.h"

#include "llvm/ADT/StringMap.h"

namespace dsopt::onnx_import {

/// What a node asks for an initializer.
struct AskedCut {
  int64_t dim = -1;   ///< -1: it stays whole
  int64_t shards = 1; ///< that the node counts on
  std::string by;     ///< the node and its configuration, for messages
};

class DeviceConfigurations {
public:
  /// Emits an error where the file contradicts itself, and warnings about what is not done. The program is
  /// compiled for so many tensor shards; 0: that is not known yet.
  llvm::LogicalResult read(const ModelFile &file, int64_t tensorShards, mlir::Location location);
  /// What is asked for an initializer; null where nothing is.
  const AskedCut *find(llvm::StringRef initializer) const {
    auto found = asked.find(initializer);
    return found == asked.end() ? nullptr : &found->second;
  }
  /// Warns of what is asked for initializers of which `isParameter` does not hold.
  void warnOfOthers(llvm::function_ref<bool(llvm::StringRef)> isParameter, mlir::Location location) const;

private:
  llvm::LogicalResult readSpec(const ModelFile &file, const onnx::ShardingSpecProto &spec,
                               const onnx::NodeProto &node, const std::string &by, mlir::Location location);
  void warn(int64_t tensorShards, mlir::Location location) const;

  llvm::StringMap<AskedCut> asked;
  std::vector<std::string> notes; ///< of single nodes, that are warned of
  std::string firstValue, firstStage;
  int64_t values = 0, stages = 0; ///< specs of what is no initializer, nodes with a pipeline stage
};

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_DEVICECONFIGURATIONS_H
