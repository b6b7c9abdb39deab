//===- dsopt-opt.cpp - runs single passes on IR at any stage --------------===//

#include "dsopt/Pipeline/RegisterAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  dsopt::registerAllDialects(registry);
  dsopt::registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "dsopt-opt: every pass of the dsopt compiler\n", registry));
}
