//===- SegmentsToLLVM.cpp - segments to calls of the runtime --------------===//
//
// A segment is straight-line code: its buffers are loaded from the array it is
// given, scratch is pointer arithmetic, every operation one call of dsopt_rt_*.
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"
#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/TypeSwitch.h"

namespace dsopt {
#define GEN_PASS_DEF_SEGMENTSTOLLVM
#include "dsopt/Conversion/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
constexpr int64_t kConstantAlignment = 64;

/// Constants of 64-bit integers that describe a routine's work, one global for each content.
class Descriptors {
public:
  explicit Descriptors(SymbolTable &symbols) : symbols(symbols) {}

  LLVM::GlobalOp get(StringRef routine, ArrayRef<int64_t> fields) {
    OpBuilder builder(symbols.getOp()->getContext());
    auto value =
        DenseElementsAttr::get(RankedTensorType::get({int64_t(fields.size())}, builder.getI64Type()), fields);
    LLVM::GlobalOp &global = globals[value];
    if (!global) {
      auto type = LLVM::LLVMArrayType::get(builder.getI64Type(), fields.size());
      global = LLVM::GlobalOp::create(builder, symbols.getOp()->getLoc(), type, /*isConstant=*/true,
                                      LLVM::Linkage::External,
                                      (routine + "." + Twine(globals.size() - 1)).str(), value);
      symbols.insert(global, cast<ModuleOp>(symbols.getOp()).getBody()->begin());
    }
    return global;
  }

private:
  SymbolTable &symbols;
  DenseMap<Attribute, LLVM::GlobalOp> globals;
};

/// Kernels that segments launch; those in a module of their own are declared in the segments'.
class Kernels {
public:
  explicit Kernels(SymbolTable &symbols) : symbols(symbols) {}

  /// The one that `launch` launches, or an error there.
  FailureOr<LLVM::LLVMFuncOp> get(Operation *launch, SymbolRefAttr name) {
    LLVM::LLVMFuncOp &known = kernels[name];
    if (known)
      return known;
    auto module = cast<ModuleOp>(symbols.getOp());
    auto kernel = tables.lookupSymbolIn<LLVM::LLVMFuncOp>(module, name);
    if (!kernel)
      return launch->emitOpError("launches ")
             << name << ", expected a kernel that is lowered to the LLVM dialect";
    if (kernel->getParentOp() == module)
      return known = kernel;
    graph::makeWay(symbols, kernel.getName());
    if (symbols.lookup(kernel.getName()))
      return launch->emitOpError("launches ")
             << name << ", expected no other symbol of that name in the module of the segments";
    OpBuilder builder(module.getContext());
    known = LLVM::LLVMFuncOp::create(builder, kernel.getLoc(), kernel.getName(), kernel.getFunctionType());
    symbols.insert(known, module.getBody()->begin());
    return known;
  }

private:
  SymbolTable &symbols;
  SymbolTableCollection tables;
  DenseMap<Attribute, LLVM::LLVMFuncOp> kernels;
};

/// Builds the LLVM function of one segment.
class SegmentLowering : RuntimeCallBuilder {
public:
  SegmentLowering(func::FuncOp segment, SymbolTable &symbols, Descriptors &descriptors, Kernels &kernels,
                  const DeviceKernels *device)
      : segment(segment), symbols(symbols), descriptors(descriptors), kernels(kernels), device(device),
        builder(segment.getContext()), loc(segment.getLoc()),
        ptr(LLVM::LLVMPointerType::get(segment.getContext())), i64(builder.getI64Type()) {}

  LogicalResult run();

private:
  LogicalResult lower(Operation &op);
  LogicalResult lowerLaunch(exec::LaunchOp launch);

  Value pointer(Value memref) override {
    return memref ? pointers.lookup(memref) : Value(LLVM::ZeroOp::create(builder, loc, ptr));
  }
  Value descriptor(StringRef routine, ArrayRef<int64_t> fields) override {
    return LLVM::AddressOfOp::create(builder, loc, descriptors.get(routine, fields));
  }
  Value constant(int64_t value) override { return LLVM::ConstantOp::create(builder, loc, i64, value); }
  Value accumulates(bool intoGradient) override {
    return intoGradient ? Value(function.getArgument(3)) : constant(0);
  }
  void call(StringRef name, ArrayRef<Value> arguments) override;
  FailureOr<Value> kernel(Operation *op, SymbolRefAttr name) override;
  Value array(ArrayRef<Value> values) override;
  LogicalResult launch(Operation *op, SymbolRefAttr kernel, int64_t range, int64_t grain,
                       ArrayRef<Value> pointers) override;
  Value accumulateFlag() override;
  /// What the segment begins with, made where it is first needed.
  Value atEntry(Value &value, llvm::function_ref<Value()> make);

  func::FuncOp segment;
  SymbolTable &symbols;
  Descriptors &descriptors;
  Kernels &kernels;
  const DeviceKernels *device; ///< null: kernels are the host's
  OpBuilder builder;
  Location loc; ///< of what is lowered
  Type ptr, i64;
  LLVM::LLVMFuncOp function;
  Value slots, flag; ///< of array and accumulateFlag, if there are
  int64_t mostSlots = 0;
  DenseMap<Value, Value> pointers;
};
} // namespace

void SegmentLowering::call(StringRef name, ArrayRef<Value> rest) {
  SmallVector<Value> arguments{function.getArgument(0)};
  llvm::append_range(arguments, rest);
  auto callee = symbols.lookup<LLVM::LLVMFuncOp>(name);
  if (!callee) {
    graph::makeWay(symbols, name);
    auto types = llvm::map_to_vector(arguments, [](Value value) { return value.getType(); });
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), types);
    OpBuilder outside(builder.getContext());
    callee = LLVM::LLVMFuncOp::create(outside, UnknownLoc::get(builder.getContext()), name, type);
    symbols.insert(callee, cast<ModuleOp>(symbols.getOp()).getBody()->begin());
  }
  LLVM::CallOp::create(builder, loc, callee, arguments);
}

FailureOr<Value> SegmentLowering::kernel(Operation *op, SymbolRefAttr name) {
  FailureOr<LLVM::LLVMFuncOp> function = kernels.get(op, name);
  if (failed(function))
    return failure();
  return Value(LLVM::AddressOfOp::create(builder, loc, *function));
}

LogicalResult SegmentLowering::launch(Operation *op, SymbolRefAttr name, int64_t range, int64_t grain,
                                      ArrayRef<Value> pointers) {
  if (device) {
    LLVM::GlobalOp onDevice = device->find(name);
    if (!onDevice)
      return op->emitOpError("launches ") << name << ", expected a kernel that is lowered for the device";
    Value arguments = array(pointers);
    call("dsopt_rt_launch_device",
         {LLVM::AddressOfOp::create(builder, loc, onDevice), constant(range), arguments});
    return success();
  }
  Value arguments = array(pointers);
  FailureOr<Value> address = kernel(op, name);
  if (failed(address))
    return failure();
  call("dsopt_rt_launch", {*address, constant(range), constant(grain), arguments});
  return success();
}

LogicalResult SegmentLowering::lowerLaunch(exec::LaunchOp op) {
  SmallVector<Value> pointers;
  for (Value memref : op->getOperands()) {
    if (!cast<MemRefType>(memref.getType()).getLayout().isIdentity())
      return op.emitOpError("takes a buffer of type ") << memref.getType() << ", expected a contiguous one";
    pointers.push_back(pointer(memref));
  }
  return launch(op, op.getKernel(), op.getRange(), op.getGrain(), pointers);
}

Value SegmentLowering::atEntry(Value &value, llvm::function_ref<Value()> make) {
  if (!value) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.front());
    value = make();
  }
  return value;
}

Value SegmentLowering::array(ArrayRef<Value> values) {
  // One for all calls, which have read it when they return; how large it is is known in the end.
  atEntry(slots, [&] { return LLVM::AllocaOp::create(builder, loc, ptr, ptr, constant(1)); });
  mostSlots = std::max<int64_t>(mostSlots, values.size());
  for (auto [index, value] : llvm::enumerate(values)) {
    Value slot = LLVM::GEPOp::create(builder, loc, ptr, ptr, slots, ArrayRef<LLVM::GEPArg>(int32_t(index)));
    LLVM::StoreOp::create(builder, loc, value, slot);
  }
  return slots;
}

Value SegmentLowering::accumulateFlag() {
  return atEntry(flag, [&] {
    Value place = LLVM::AllocaOp::create(builder, loc, ptr, i64, constant(1));
    LLVM::StoreOp::create(builder, loc, function.getArgument(3), place);
    return place;
  });
}

LogicalResult SegmentLowering::lower(Operation &op) {
  loc = op.getLoc();
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<exec::TempOp>([&](exec::TempOp temp) {
        pointers[temp.getResult()] =
            LLVM::GEPOp::create(builder, loc, ptr, builder.getI8Type(), function.getArgument(2),
                                ArrayRef<LLVM::GEPArg>(constant(temp.getOffset())));
        return success();
      })
      .Case<exec::ViewOp>([&](exec::ViewOp view) {
        auto type = cast<MemRefType>(view.getType());
        SmallVector<int64_t> strides;
        int64_t offset;
        (void)type.getStridesAndOffset(strides, offset);
        Value source = pointer(view.getSource());
        if (offset)
          source = LLVM::GEPOp::create(
              builder, loc, ptr, builder.getI8Type(), source,
              ArrayRef<LLVM::GEPArg>(constant(offset * ((type.getElementTypeBitWidth() + 7) / 8))));
        pointers[view.getResult()] = source;
        return success();
      })
      .Case<exec::LaunchOp>([&](exec::LaunchOp launch) { return lowerLaunch(launch); })
      .Case<RuntimeCallOpInterface>([&](RuntimeCallOpInterface call) { return call.buildCall(*this); })
      .Case<func::ReturnOp>([&](func::ReturnOp) {
        LLVM::ReturnOp::create(builder, loc, ValueRange());
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError("is in a segment, expected operations of the exec dialect");
      });
}

LogicalResult SegmentLowering::run() {
  if (!segment.getBody().hasOneBlock())
    return segment.emitError("has ") << segment.getBody().getBlocks().size() << " blocks, expected one";
  builder.setInsertionPoint(segment);
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), {ptr, ptr, ptr, i64});
  function = LLVM::LLVMFuncOp::create(builder, loc, segment.getName(), type);
  function->setDiscardableAttrs(segment->getDiscardableAttrDictionary());

  builder.setInsertionPointToStart(function.addEntryBlock(builder));
  for (BlockArgument argument : segment.getArguments()) {
    if (argument.use_empty())
      continue;
    Value slot = LLVM::GEPOp::create(builder, loc, ptr, ptr, function.getArgument(1),
                                     ArrayRef<LLVM::GEPArg>(int32_t(argument.getArgNumber())));
    pointers[argument] = LLVM::LoadOp::create(builder, loc, ptr, slot);
  }
  for (Operation &op : segment.getBody().front())
    if (failed(lower(op)))
      return failure();
  if (slots) {
    auto alloca = slots.getDefiningOp<LLVM::AllocaOp>();
    builder.setInsertionPoint(alloca);
    alloca.getArraySizeMutable().assign(constant(mostSlots));
  }
  symbols.remove(segment);
  symbols.insert(function);
  segment.erase();
  return success();
}

/// The bytes of a constant as a dense attribute of one dimension; bools take a byte each.
static FailureOr<DenseElementsAttr> flatten(memref::GlobalOp global, MemRefType type) {
  Type element = type.getElementType();
  auto flat = RankedTensorType::get({type.getNumElements()}, element);
  Attribute value = *global.getInitialValue();
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    int64_t bytes = (type.getElementTypeBitWidth() + 7) / 8 * type.getNumElements();
    if (!blob || int64_t(blob->getData().size()) != bytes)
      return global.emitOpError("has a resource of ")
             << (blob ? blob->getData().size() : 0) << " bytes, expected " << bytes;
    if (element.isInteger(1))
      flat = RankedTensorType::get(flat.getShape(), IntegerType::get(type.getContext(), 8));
    return DenseElementsAttr::getFromRawBuffer(flat, blob->getData());
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return global.emitOpError("has a value of an unknown kind, expected dense elements");
  if (!element.isInteger(1))
    return dense.isSplat() ? dense.resizeSplat(flat) : dense.reshape(flat);
  SmallVector<int8_t> bytes;
  for (bool bit : dense.getValues<bool>())
    bytes.push_back(bit);
  return DenseElementsAttr::get(
      RankedTensorType::get(flat.getShape(), IntegerType::get(type.getContext(), 8)),
      ArrayRef<int8_t>(bytes));
}

static LogicalResult lowerGlobal(memref::GlobalOp global, SymbolTable &symbols) {
  auto type = cast<MemRefType>(global.getType());
  auto value = flatten(global, type);
  if (failed(value))
    return failure();
  OpBuilder builder(global);
  auto array = LLVM::LLVMArrayType::get(value->getElementType(), type.getNumElements());
  auto lowered =
      LLVM::GlobalOp::create(builder, global.getLoc(), array, /*isConstant=*/true, LLVM::Linkage::External,
                             global.getSymName(), *value, kConstantAlignment);
  symbols.remove(global);
  global.erase();
  symbols.insert(lowered);
  return success();
}

namespace {
struct SegmentsToLLVM : dsopt::impl::SegmentsToLLVMBase<SegmentsToLLVM> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    Descriptors descriptors(symbols);
    Kernels kernels(symbols);
    DeviceKernels device(symbols);
    bool onDevice = isForDevice(module);
    if (onDevice)
      for (auto nested : llvm::make_early_inc_range(module.getOps<ModuleOp>()))
        if (failed(device.declare(nested)))
          return signalPassFailure();
    for (auto segment : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (segment->hasAttr(exec::kSegmentAttr) &&
          failed(SegmentLowering(segment, symbols, descriptors, kernels, onDevice ? &device : nullptr).run()))
        return signalPassFailure();
    for (auto global : llvm::make_early_inc_range(module.getOps<memref::GlobalOp>()))
      if (global.getConstant() && global.getInitialValue() && failed(lowerGlobal(global, symbols)))
        return signalPassFailure();
  }
};
} // namespace
