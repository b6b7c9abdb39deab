//===- CompiledForward.cpp - a model's outputs by compiled kernels --------===//

#include "CompiledForward.h"

#include "Kernels/CPU/Runtime.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Layouts.h"
#include "dsopt/Pipeline/Pipelines.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir;

namespace dsopt {

/// The passes of stages 1 to 3 that have a meaning without a backward pass.
static constexpr llvm::StringLiteral kToKernels =
    "builtin.module(attach-target{threads=8},canonicalize,cse,raise-attention,raise-linear-nll,decompose-"
    "composites,flatten-rows,"
    "canonicalize,cse,absorb-movements,form-kernels)";
static constexpr llvm::StringLiteral kToSegments = "builtin.module(blocks-to-segments,nest-kernels)";
static constexpr llvm::StringLiteral kToLLVM =
    "builtin.module(builtin.module(lower-kernels),segments-to-llvm)";

namespace {
/// An output that the segment computes, or where else its bytes come from.
struct Output {
  RankedTensorType type;
  /// The result of the segment whose bytes it has; -1: none.
  int64_t result = -1;
  /// The function's argument; -1: none.
  int64_t argument = -1;
  ElementsAttr constant;
  FlatSymbolRefAttr parameter;
};

class Forward {
public:
  Forward(ModuleOp module, const std::map<std::string, std::vector<char>> &inputs)
      : module(module), inputs(inputs) {}

  LogicalResult compile();
  FailureOr<std::vector<HostTensor>> run(int threads);

private:
  LogicalResult splitOutputs(func::FuncOp forward);
  LogicalResult bind(func::FuncOp segment);
  FailureOr<std::vector<char>> readParameter(FlatSymbolRefAttr name);
  FailureOr<std::vector<char>> inputBytes(RankedTensorType type, StringRef name);

  ModuleOp module;
  const std::map<std::string, std::vector<char>> &inputs;
  std::vector<Output> outputs;
  std::vector<std::string> argumentNames;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  /// What each argument of the segment points to; `result` counts what it writes.
  struct Slot {
    std::vector<char> bytes;
    int64_t result = -1;
  };
  std::vector<Slot> slots;
  int64_t tempBytes = 0;
  dsopt_segment entry = nullptr;
};
} // namespace

/// The bytes of a constant; a bool takes one.
static std::vector<char> bytesOf(ElementsAttr value) {
  std::vector<char> bytes;
  if (auto dense = dyn_cast<DenseElementsAttr>(value); dense && dense.getElementType().isInteger(1)) {
    for (bool bit : dense.getValues<bool>())
      bytes.push_back(bit);
  } else if (dense && dense.isSplat()) {
    for (int64_t i = 0; i < dense.getNumElements(); ++i)
      llvm::append_range(bytes, dense.getRawData());
  } else if (dense) {
    llvm::append_range(bytes, dense.getRawData());
  }
  return bytes;
}

LogicalResult Forward::splitOutputs(func::FuncOp forward) {
  auto ret = cast<func::ReturnOp>(forward.front().getTerminator());
  SmallVector<Value> computed;
  llvm::DenseMap<Value, int64_t> known;
  for (Value value : ret.getOperands()) {
    Output output{cast<RankedTensorType>(value.getType()), -1, -1, {}, {}};
    Value root = graph::locate(value).root;
    if (auto argument = dyn_cast<BlockArgument>(root)) {
      output.argument = argument.getArgNumber();
    } else if (auto constant = root.getDefiningOp<graph::ConstantOp>()) {
      output.constant = constant.getValue();
    } else if (auto read = root.getDefiningOp<graph::ReadOp>()) {
      output.parameter = read.getStateAttr();
    } else {
      auto [it, isNew] = known.try_emplace(root, computed.size());
      if (isNew)
        computed.push_back(value);
      output.result = it->second;
    }
    outputs.push_back(output);
  }
  ret->setOperands(computed);
  forward.setAllResultAttrs(ArrayRef<DictionaryAttr>());
  forward.setType(
      FunctionType::get(module.getContext(), forward.getArgumentTypes(), ValueRange(computed).getTypes()));
  return success();
}

FailureOr<std::vector<char>> Forward::inputBytes(RankedTensorType type, StringRef name) {
  auto found = inputs.find(name.str());
  if (found == inputs.end())
    return module.emitError("has no bytes for input '") << name << "'";
  if ((int64_t)found->second.size() != graph::numBytes(type))
    return module.emitError("has ") << found->second.size() << " bytes for input '" << name << "', expected "
                                    << graph::numBytes(type) << " for " << type;
  return found->second;
}

FailureOr<std::vector<char>> Forward::readParameter(FlatSymbolRefAttr name) {
  auto parameter = module.lookupSymbol<graph::ParameterOp>(name);
  SmallString<128> path(module->getAttrOfType<StringAttr>(graph::kModelFolderAttr).getValue());
  if (llvm::sys::path::is_absolute(parameter.getFile()))
    path = parameter.getFile();
  else
    llvm::sys::path::append(path, parameter.getFile());
  int64_t bytes = graph::numBytes(parameter.getType());
  auto buffer = llvm::MemoryBuffer::getFileSlice(path, bytes, parameter.getOffset());
  if (!buffer)
    return module.emitError("cannot read '") << path << "': " << buffer.getError().message();
  return std::vector<char>((*buffer)->getBufferStart(), (*buffer)->getBufferEnd());
}

LogicalResult Forward::bind(func::FuncOp segment) {
  tempBytes = segment->getAttrOfType<IntegerAttr>(exec::kTempAttr).getInt();
  int64_t result = 0;
  for (unsigned i = 0; i < segment.getNumArguments(); ++i) {
    Slot slot;
    auto symbol = [&](StringRef name) { return segment.getArgAttrOfType<FlatSymbolRefAttr>(i, name); };
    auto type = cast<MemRefType>(segment.getArgument(i).getType());
    auto tensor = RankedTensorType::get(type.getShape(), type.getElementType());
    FailureOr<std::vector<char>> bytes = std::vector<char>();
    if (auto parameter = symbol(exec::kParameterAttr)) {
      bytes = readParameter(parameter);
    } else if (auto constant = symbol(exec::kConstantAttr)) {
      auto global = module.lookupSymbol<memref::GlobalOp>(constant);
      bytes = bytesOf(cast<ElementsAttr>(*global.getInitialValue()));
    } else if (segment.getArgAttrOfType<exec::AccessModeAttr>(i, exec::kAccessAttr).getValue() ==
               exec::AccessMode::Write) {
      bytes = std::vector<char>(graph::numBytes(tensor));
      slot.result = result++;
    } else {
      bytes = inputBytes(tensor, argumentNames[i]);
    }
    if (failed(bytes))
      return failure();
    slot.bytes = std::move(*bytes);
    slots.push_back(std::move(slot));
  }
  return success();
}

LogicalResult Forward::compile() {
  if (failed(runPipeline(module, kToKernels)))
    return failure();
  auto forward = module.lookupSymbol<func::FuncOp>(graph::kForwardFunction);
  Builder builder(module.getContext());
  forward->setAttr(graph::kBlockAttr, builder.getI64IntegerAttr(0));
  forward->setAttr(graph::kPhaseAttr, graph::PhaseAttr::get(module.getContext(), Phase::F));
  for (unsigned i = 0; i < forward.getNumArguments(); ++i)
    argumentNames.push_back(forward.getArgAttrOfType<StringAttr>(i, graph::kNameAttr).str());
  if (failed(splitOutputs(forward)) || failed(runPipeline(module, kToSegments)) ||
      failed(bind(module.lookupSymbol<func::FuncOp>(graph::kForwardFunction))) ||
      failed(runPipeline(module, kToLLVM)))
    return failure();

  ObjectOptions options;
  options.optLevel = 1;
  ObjectBuffers objects;
  if (failed(emitObjects(module, options, {}, "", objects)))
    return failure();
  auto problem = [&](llvm::Error error) {
    return module.emitError("cannot be loaded: ") << llvm::toString(std::move(error));
  };
  auto made = llvm::orc::LLJITBuilder().create();
  if (!made)
    return problem(made.takeError());
  jit = std::move(*made);
  auto process =
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(jit->getDataLayout().getGlobalPrefix());
  if (!process)
    return problem(process.takeError());
  jit->getMainJITDylib().addGenerator(std::move(*process));
  for (std::unique_ptr<llvm::MemoryBuffer> &object : objects)
    if (llvm::Error error = jit->addObjectFile(std::move(object)))
      return problem(std::move(error));
  auto symbol = jit->lookup("forward");
  if (!symbol)
    return problem(symbol.takeError());
  entry = symbol->toPtr<dsopt_segment>();
  return success();
}

/// Storage that is aligned as arenas of a program are.
static char *aligned(std::vector<char> &storage, int64_t bytes) {
  storage.assign(bytes + 64, 0);
  return reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(storage.data()) + 63) / 64 * 64);
}

FailureOr<std::vector<HostTensor>> Forward::run(int threads) {
  runtime::ThreadPool pool(threads, 0, runtime::prepareThread);
  auto rt = std::make_unique<dsopt_rt>();
  rt->pool = &pool;
  std::vector<std::vector<char>> storage(slots.size() + 1);
  std::vector<void *> pointers;
  std::vector<std::pair<char *, size_t>> results;
  for (auto [slot, memory] : llvm::zip(slots, storage)) {
    char *place = aligned(memory, slot.bytes.size());
    llvm::copy(slot.bytes, place);
    pointers.push_back(place);
    if (slot.result >= 0)
      results.push_back({place, slot.bytes.size()});
  }
  entry(rt.get(), pointers.data(), aligned(storage.back(), tempBytes), 0);

  std::vector<HostTensor> tensors;
  for (const Output &output : outputs) {
    FailureOr<std::vector<char>> bytes = std::vector<char>();
    if (output.result >= 0)
      bytes->assign(results[output.result].first,
                    results[output.result].first + results[output.result].second);
    else if (output.argument >= 0)
      bytes = inputBytes(output.type, argumentNames[output.argument]);
    else if (output.parameter)
      bytes = readParameter(output.parameter);
    else
      bytes = bytesOf(output.constant);
    if (failed(bytes))
      return failure();
    tensors.push_back({output.type, std::move(*bytes)});
  }
  return tensors;
}

FailureOr<std::vector<HostTensor>>
runForward(ModuleOp module, const std::map<std::string, std::vector<char>> &inputs, ArrayRef<int> threads) {
  Forward forward(module, inputs);
  if (failed(forward.compile()))
    return failure();
  FailureOr<std::vector<HostTensor>> first = failure();
  for (int count : threads) {
    auto results = forward.run(count);
    if (failed(results))
      return failure();
    if (failed(first))
      first = std::move(results);
    else
      for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(*first, *results)))
        if (std::get<0>(pair).bytes != std::get<1>(pair).bytes)
          return module.emitError("output ") << index << " has other bytes with " << count << " threads";
  }
  return first;
}

} // namespace dsopt
