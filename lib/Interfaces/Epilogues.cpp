//===- Epilogues.cpp - products with an epilogue --------------------------===//

#include "dsopt/Interfaces/Epilogues.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

static_assert(static_cast<int>(dsopt::Epilogue::Bias) == DSOPT_EPILOGUE_BIAS &&
              static_cast<int>(dsopt::Epilogue::BiasGelu) == DSOPT_EPILOGUE_BIAS_GELU &&
              static_cast<int>(dsopt::Epilogue::GeluGrad) == DSOPT_EPILOGUE_GELU_GRAD);

#include "dsopt/Interfaces/Epilogue.cpp.inc"
