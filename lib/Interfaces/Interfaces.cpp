//===- Interfaces.cpp - the generated parts of the interfaces -------------===//

#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Enums.h"

#include "mlir/IR/BuiltinTypes.h"

#include "dsopt/Interfaces/CostedOpInterface.cpp.inc"
#include "dsopt/Interfaces/DecomposableOpInterface.cpp.inc"
#include "dsopt/Interfaces/DifferentiableOpInterface.cpp.inc"
#include "dsopt/Interfaces/Enums.cpp.inc"
#include "dsopt/Interfaces/LowerableOpInterface.cpp.inc"
