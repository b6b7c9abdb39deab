//===- Interfaces.cpp - the generated parts of the interfaces -------------===//

#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Caches.h"
#include "dsopt/Interfaces/Enums.h"
#include "dsopt/Interfaces/OptimizerRegistry.h"
#include "dsopt/Interfaces/Reductions.h"
#include "dsopt/Interfaces/SequenceOps.h"

#include "mlir/IR/BuiltinTypes.h"

llvm::StringRef dsopt::describe(UpdateScope scope) {
  switch (scope) {
  case UpdateScope::Elements:
    return "each element by itself";
  case UpdateScope::Parameters:
    return "norms of whole parameters";
  case UpdateScope::Matrices:
    return "whole matrices";
  case UpdateScope::Tensors:
    return "whole parameters";
  }
  llvm_unreachable("unknown scope");
}

std::set<std::string> dsopt::registeredOptimizers(mlir::MLIRContext &context) {
  std::set<std::string> names;
  for (mlir::RegisteredOperationName op : context.getRegisteredOperations())
    if (auto *rule = op.getInterface<OptimizerOpInterface>())
      for (llvm::StringRef name : rule->getOptimizers())
        names.insert(name.str());
  return names;
}

#include "dsopt/Interfaces/CachingOpInterface.cpp.inc"
#include "dsopt/Interfaces/CostedOpInterface.cpp.inc"
#include "dsopt/Interfaces/DecomposableOpInterface.cpp.inc"
#include "dsopt/Interfaces/DifferentiableOpInterface.cpp.inc"
#include "dsopt/Interfaces/Enums.cpp.inc"
#include "dsopt/Interfaces/FloatSumOpInterface.cpp.inc"
#include "dsopt/Interfaces/LowerableOpInterface.cpp.inc"
#include "dsopt/Interfaces/OptimizerOpInterface.cpp.inc"
#include "dsopt/Interfaces/ProductOpInterface.cpp.inc"
#include "dsopt/Interfaces/Reductions.cpp.inc"
#include "dsopt/Interfaces/RoutineOpInterface.cpp.inc"
#include "dsopt/Interfaces/RuntimeCallOpInterface.cpp.inc"
#include "dsopt/Interfaces/SequenceOpInterface.cpp.inc"
#include "dsopt/Interfaces/ShardedReductionOpInterface.cpp.inc"
#include "dsopt/Interfaces/TileableOpInterface.cpp.inc"
