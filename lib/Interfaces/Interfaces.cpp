//===- Interfaces.cpp - the generated parts of the interfaces -------------===//

#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Enums.h"

#include "mlir/IR/BuiltinTypes.h"

llvm::StringRef dsopt::describe(UpdateScope scope) {
  switch (scope) {
  case UpdateScope::Elements:
    return "each element by itself";
  case UpdateScope::Parameters:
    return "norms of whole parameters";
  case UpdateScope::Matrices:
    return "whole matrices";
  }
  llvm_unreachable("unknown scope");
}

#include "dsopt/Interfaces/CostedOpInterface.cpp.inc"
#include "dsopt/Interfaces/DecomposableOpInterface.cpp.inc"
#include "dsopt/Interfaces/DifferentiableOpInterface.cpp.inc"
#include "dsopt/Interfaces/Enums.cpp.inc"
#include "dsopt/Interfaces/LowerableOpInterface.cpp.inc"
#include "dsopt/Interfaces/OptimizerOpInterface.cpp.inc"
#include "dsopt/Interfaces/ProductOpInterface.cpp.inc"
#include "dsopt/Interfaces/RoutineOpInterface.cpp.inc"
#include "dsopt/Interfaces/RuntimeCallOpInterface.cpp.inc"
