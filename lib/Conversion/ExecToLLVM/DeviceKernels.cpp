//===- DeviceKernels.cpp - what launches know of kernels ------------------===//

#include "DeviceKernels.h"

#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Target.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace dsopt;

LogicalResult DeviceKernels::declare(ModuleOp kernels) {
  for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>())
    if (auto perBlock = kernel->getAttrOfType<IntegerAttr>(exec::kPerBlockAttr))
      if (failed(declare(kernel, perBlock.getInt())))
        return failure();
  return success();
}

/// The kernel's name in PTX, ended by a zero.
LLVM::GlobalOp DeviceKernels::nameOf(LLVM::LLVMFuncOp kernel) {
  OpBuilder builder(kernel.getContext());
  std::string text = deviceName(kernel.getName()) + '\0';
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text.size());
  auto global =
      LLVM::GlobalOp::create(builder, kernel.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal,
                             (kernel.getName() + ".name").str(), builder.getStringAttr(text));
  symbols.insert(global, cast<ModuleOp>(symbols.getOp()).getBody()->begin());
  return global;
}

LogicalResult DeviceKernels::declare(LLVM::LLVMFuncOp kernel, int64_t perBlock) {
  auto threads = kernel->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getReqntidAttrName());
  if (!threads || threads.empty() || kernel.getNumArguments() < 2)
    return kernel.emitError(
               "is no kernel of a device: expected a range's begin and end as its first arguments "
               "and ")
           << NVVM::NVVMDialect::getReqntidAttrName();
  graph::makeWay(symbols, kernel.getName());
  if (symbols.lookup(kernel.getName()))
    return kernel.emitError(
        "has the name of a symbol in the module of the segments, expected one of its own");
  Location loc = kernel.getLoc();
  LLVM::GlobalOp name = nameOf(kernel);
  OpBuilder builder(kernel.getContext());
  Type ptr = LLVM::LLVMPointerType::get(kernel.getContext()), i64 = builder.getI64Type();
  auto type = LLVM::LLVMStructType::getLiteral(kernel.getContext(), {ptr, i64, i64, i64});
  auto global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::External,
                                       kernel.getName(), Attribute());
  symbols.insert(global, cast<ModuleOp>(symbols.getOp()).getBody()->begin());
  builder.createBlock(&global.getInitializerRegion());
  Value value = LLVM::UndefOp::create(builder, loc, type);
  value = LLVM::InsertValueOp::create(builder, loc, value, LLVM::AddressOfOp::create(builder, loc, name),
                                      ArrayRef<int64_t>(0));
  int64_t fields[] = {int64_t(kernel.getNumArguments()) - 2, threads[0], perBlock};
  for (auto [index, field] : llvm::enumerate(fields))
    value =
        LLVM::InsertValueOp::create(builder, loc, value, LLVM::ConstantOp::create(builder, loc, i64, field),
                                    ArrayRef<int64_t>(int64_t(index) + 1));
  LLVM::ReturnOp::create(builder, loc, value);
  auto module = kernel->getParentOfType<ModuleOp>();
  globals[SymbolRefAttr::get(module.getSymNameAttr(), FlatSymbolRefAttr::get(kernel.getNameAttr()))] = global;
  return success();
}
