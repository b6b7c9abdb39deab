//===- KernelPlan.cpp - kernels against a GPU's limits --------------------===//
//
// One row for each call that a step of rank 0 makes, as -report=kernels has after a run, but by calculation:
// bytes and flops from the calls' descriptions, registers and shared memory from ptxas, and the time that
// a GPU's limits give. What ranks exchange is not in it.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Pipeline/Plan.h"

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Target/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Rows of less than this share of the step on the first GPU are one line.
static constexpr double kLeastShare = 0.0005;

namespace {
/// What a step does of one kind of call.
struct Row {
  DictionaryAttr call;
  double calls = 0, bytes = 0, flops = 0;

  StringRef kind() const { return call.getAs<StringAttr>("kind").getValue(); }
  StringRef what() const { return call.getAs<StringAttr>("what").getValue(); }
  Type type() const { return call.getAs<TypeAttr>("type").getValue(); }
  bool isKernel() const { return kind() == "kernel" || kind() == "update"; }
  /// The kernel's name in PTX.
  std::string kernel() const { return isKernel() ? deviceName(what().split(' ').first) : ""; }
  double seconds(const DeviceLimits &device) const {
    return device.limitSeconds(type(), !isKernel(), flops, bytes);
  }
};

/// The calls of a step of the first position.
class StepCalls {
public:
  explicit StepCalls(ModuleOp module) : module(module), calls(module->getAttrOfType<ArrayAttr>(kCallsAttr)) {
    for (Operation &op : module.getOps())
      if (auto made = op.getAttrOfType<DenseI64ArrayAttr>(kCallsAttr))
        segments[SymbolTable::getSymbolName(&op)] = made;
    SmallVector<ProgramOp> programs = getStepPrograms(module);
    if (programs.empty() || !calls)
      return;
    auto updates = module->getAttrOfType<DictionaryAttr>(kUpdateCallsAttr);
    programs.front().walk([&](ActionOpInterface action) {
      if (FlatSymbolRefAttr segment = action.getCalledSegment())
        if (auto made = segments.lookup(segment.getAttr()))
          for (int64_t index : made.asArrayRef())
            add(index, 1);
      if (auto update = dyn_cast<UpdateOp>(*action))
        // Its kernel is described by a granule of elements.
        if (auto index = updates.getAs<IntegerAttr>(update.getKernel().getLeafReference()))
          add(index.getInt(), double(update.getElements()) / dist::kGranule);
    });
  }

  std::vector<Row> rows() const {
    std::vector<Row> rows;
    for (const auto &[index, row] : found)
      rows.push_back(row);
    return rows;
  }

private:
  /// A call that does so many times what its description says.
  void add(int64_t index, double times) {
    Row &row = found[index];
    row.call = cast<DictionaryAttr>(calls[index]);
    row.calls += 1;
    row.bytes += times * row.call.getAs<IntegerAttr>("bytes").getInt();
    row.flops += times * row.call.getAs<IntegerAttr>("flops").getInt();
  }

  ModuleOp module;
  ArrayAttr calls;
  llvm::DenseMap<StringAttr, DenseI64ArrayAttr> segments;
  llvm::MapVector<int64_t, Row> found;
};
} // namespace

namespace {
/// What a step is made of, in what data is counted: tokens where there are some, else rows.
struct Samples {
  int64_t count = 0;
  StringLiteral name = "rows";
};

/// What ptxas says of an architecture's kernels.
struct ArchitectureFigures {
  KernelFigures kernels;
  llvm::MapVector<StringRef, KernelFigures> routines; ///< by image
};

class KernelTable {
public:
  KernelTable(ModuleOp module, TargetAttr target, llvm::raw_ostream &out)
      : module(module), target(target), rows(StepCalls(module).rows()), out(out) {
    for (ModuleOp kernels : module.getOps<ModuleOp>())
      for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>())
        if (auto block = kernel->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getReqntidAttrName()))
          threads[deviceName(kernel.getName())] = block[0];
  }

  /// Asks ptxas. Without, registers stay unknown.
  LogicalResult assemble(const ObjectOptions &options, StringRef assembler);
  void print() {
    std::vector<TargetAttr> targets = splitArchitectures(target);
    printHead(targets);
    for (auto [index, one] : llvm::enumerate(targets)) {
      printArchitecture(one.getArch(), figures.empty() ? KernelFigures() : figures[index].kernels);
      if (!figures.empty())
        printRoutines(devicesOf(one.getArch()).front(), figures[index]);
    }
    printWords();
  }

private:
  void printHead(ArrayRef<TargetAttr> targets);
  void printArchitecture(StringRef arch, const KernelFigures &figures);
  void printRow(const Row &row, ArrayRef<DeviceLimits> devices, const KernelFigures &figures);
  void printSums(ArrayRef<DeviceLimits> devices);
  void printRoutines(const DeviceLimits &device, const ArchitectureFigures &figures);
  /// Registers, shared memory, threads of a block and the share of the warps.
  void printFigure(const DeviceLimits &device, const KernelFigure &figure, int64_t block);
  void printWords();
  Samples samples() const;

  ModuleOp module;
  TargetAttr target;
  std::vector<ArchitectureFigures> figures; ///< by architecture; none without ptxas
  std::vector<Row> rows;
  llvm::StringMap<int64_t> threads; ///< of a block, by kernel
  llvm::raw_ostream &out;
};
} // namespace

/// Threads of the blocks of each kernel in a text.
static void readThreads(StringRef text, llvm::StringMap<int64_t> &threads) {
  StringRef kernel;
  for (StringRef line : llvm::split(text, '\n')) {
    if (auto [before, after] = line.split(".entry "); !after.empty())
      kernel = after.take_until([](char c) { return c == '('; });
    int64_t count = 0;
    if (line.consume_front(".maxntid ") && !line.consumeInteger(10, count))
      threads[kernel] = count;
  }
}

LogicalResult KernelTable::assemble(const ObjectOptions &options, StringRef assembler) {
  FailureOr<std::vector<KernelFigures>> made = assembleKernels(module, options, assembler);
  if (failed(made))
    return failure();
  llvm::StringSet<> called;
  for (const Row &row : rows)
    for (StringRef name : routinesOf(row.call))
      called.insert(name);
  std::vector<Routine> routines = collectRoutines(module);
  std::vector<TargetAttr> targets = splitArchitectures(target);
  for (auto [one, kernels] : llvm::zip_equal(targets, *made)) {
    ArchitectureFigures &found = figures.emplace_back();
    found.kernels = std::move(kernels);
    for (const Routine &routine : routines) {
      if (!called.contains(routine.name))
        continue;
      FailureOr<KernelFigures> said = assembleKernels(module, routine.ptx, one, options, assembler);
      if (failed(said))
        return failure();
      readThreads(routine.ptx, threads);
      found.routines[routine.name] = std::move(*said);
    }
  }
  return success();
}

void KernelTable::printFigure(const DeviceLimits &device, const KernelFigure &figure, int64_t block) {
  int64_t warps = device.residentBlocks(block, figure.registers, figure.shared) * ((block + 31) / 32);
  out << llvm::format("%5lld %7lld %6lld %5.0f%%", (long long)figure.registers, (long long)figure.shared,
                      (long long)block, 100.0 * warps / device.warps);
}

void KernelTable::printRoutines(const DeviceLimits &device, const ArchitectureFigures &figures) {
  for (const auto &[image, kernels] : figures.routines) {
    SmallVector<StringRef> names(kernels.keys());
    llvm::sort(names);
    for (StringRef name : names) {
      out << llvm::left_justify("of the runtime", 30);
      printFigure(device, kernels.lookup(name), threads.lookup(name));
      out << "  " << name << "\n";
    }
  }
}

Samples KernelTable::samples() const {
  auto inputs = module->getAttrOfType<ArrayAttr>(kInputsAttr);
  if (!inputs)
    return {};
  int64_t steps = dist::getGrid(module).dataParallel() *
                  options::micro_batches(module).value_or(getMicroBatches(getStepPrograms(module)));
  Samples found;
  for (auto input : inputs.getAsRange<DictionaryAttr>()) {
    auto type = dyn_cast<ShapedType>(input.getAs<TypeAttr>("type").getValue());
    if (!type || type.getRank() == 0)
      continue;
    if (input.getAs<StringAttr>("name").getValue() == "input_ids")
      return {steps * type.getNumElements(), "tokens"};
    if (!found.count)
      found.count = steps * type.getDimSize(0);
  }
  return found;
}

void KernelTable::printHead(ArrayRef<TargetAttr> targets) {
  int64_t ranks = dist::getGrid(module).size();
  out << "kernels of a step" << (ranks > 1 ? " of rank 0 of " + std::to_string(ranks) : "")
      << ", by calculation: nothing was run\n";
  for (TargetAttr one : targets)
    for (const DeviceLimits &device : devicesOf(one.getArch()))
      out << llvm::formatv(
          "  {0,-5} {1:F0} GB/s, TFLOP/s: {2:F0} bf16, {3:F0} tf32, {4:F1} fp32; {5} multiprocessors\n",
          device.name, device.memory / 1e9, device.half / 1e12, device.tf32 / 1e12, device.fp32 / 1e12,
          device.processors);
  if (figures.empty())
    out << "no ptxas is there: registers, and so occupancy, are unknown (./dev setup -cuda installs one)\n";
}

void KernelTable::printArchitecture(StringRef arch, const KernelFigures &figures) {
  SmallVector<DeviceLimits, 2> devices = devicesOf(arch);
  double all = 0;
  for (const Row &row : rows)
    all += row.seconds(devices.front());
  llvm::sort(rows, [&](const Row &a, const Row &b) {
    double left = a.seconds(devices.front()), right = b.seconds(devices.front());
    return left != right ? left > right : a.what() < b.what();
  });
  out << "\n" << arch << "\n    calls        MB     GFLOP  regs  shared  block  warps";
  for (const DeviceLimits &device : devices)
    out << llvm::right_justify((device.name + " us").str(), 10);
  out << "  limit\n";
  int64_t others = 0;
  SmallVector<double> othersSeconds(devices.size());
  for (const Row &row : rows) {
    if (row.seconds(devices.front()) >= kLeastShare * all) {
      printRow(row, devices, figures);
      continue;
    }
    ++others;
    for (auto [sum, device] : llvm::zip_equal(othersSeconds, devices))
      sum += row.seconds(device);
  }
  if (others) {
    out << llvm::left_justify("", 57);
    for (double seconds : othersSeconds)
      out << llvm::format("%10.1f", seconds * 1e6);
    out << "          " << others << " more rows\n";
  }
  printSums(devices);
}

void KernelTable::printRow(const Row &row, ArrayRef<DeviceLimits> devices, const KernelFigures &figures) {
  out << llvm::format("%9.0f %9.1f %9.2f ", row.calls, row.bytes / 1e6, row.flops / 1e9);
  auto known = figures.find(row.kernel());
  int64_t block = threads.lookup(row.kernel());
  const DeviceLimits &first = devices.front();
  if (known != figures.end() && block) {
    printFigure(first, known->second, block);
  } else if (block) {
    out << llvm::format("%5s %7s %6lld %6s", "?", "?", (long long)block, "?");
  } else {
    out << llvm::format("%5s %7s %6s %6s", "-", "-", "-", "-");
  }
  for (const DeviceLimits &device : devices)
    out << llvm::format("%10.1f", row.seconds(device) * 1e6);
  bool isMemory = row.bytes / first.memory >= row.flops / first.flopsPerSecond(row.type(), !row.isKernel());
  out << (isMemory ? "  memory  " : "  flops   ") << row.kind();
  if (!row.type().isF32())
    out << " " << row.type();
  out << " " << row.what();
  if (auto place = row.call.getAs<StringAttr>("place"))
    out << "  [" << place.getValue() << "]";
  out << "\n";
}

void KernelTable::printSums(ArrayRef<DeviceLimits> devices) {
  double calls = 0, flops = 0;
  Type type;
  for (const Row &row : rows) {
    calls += row.calls;
    if (row.isKernel())
      continue;
    flops += row.flops;
    if (!type || !row.type().isF32())
      type = row.type();
  }
  Samples made = samples();
  bool isWhole = getStepPrograms(module).size() == 1;
  for (const DeviceLimits &device : devices) {
    double limit = 0;
    for (const Row &row : rows)
      limit += row.seconds(device);
    double predicted = limit / kReachedOfLimit + calls * kLaunchSeconds;
    for (auto [seconds, said] : {std::pair(limit, "at its limits"), std::pair(predicted, "predicted")}) {
      out << llvm::formatv("{0,-5} {1,-14} {2,9:F2} ms", device.name, said, seconds * 1e3);
      if (isWhole && made.count)
        out << llvm::formatv(", {0:F0} {1}/s", made.count / seconds, made.name);
      if (type)
        out << llvm::formatv(", {0:F1} % of {1:F0} TFLOP/s",
                             100 * flops / (seconds * device.flopsPerSecond(type, /*isProduct=*/true)),
                             device.flopsPerSecond(type, true) / 1e12);
      out << "\n";
    }
  }
  out << llvm::formatv("{0:F3} TFLOP of products and attention in {1:F0} calls", flops / 1e12, calls);
  if (made.count)
    out << llvm::formatv("; {0} {1} a step", made.count, made.name);
  out << "\n";
}

void KernelTable::printWords() {
  out << "\nwarps      of those that a multiprocessor holds, by registers, shared memory and block\n"
         "us         of all calls of a row: its bytes over the memory's rate, or its flops over\n"
         "           the matrix units' (kernels: the fp32 units'), whichever is longer (limit)\n";
  out << llvm::formatv("predicted  each call at {0:F0} % of its limit and {1:F0} us to start, one after the\n"
                       "           other; what ranks exchange is not in it\n",
                       kReachedOfLimit * 100, kLaunchSeconds * 1e6);
  out << "% of       flops of products and attention over the time, against the matrix units' rate:\n"
         "           model flops utilisation, where nothing is computed again (-recompute)\n";
}

LogicalResult dsopt::printKernels(ModuleOp module, const ObjectOptions &options, StringRef assembler,
                                  llvm::raw_ostream &out) {
  FailureOr<TargetAttr> target = getTarget(module);
  if (failed(target))
    return failure();
  if (target->getKind() != TargetKind::CUDA)
    return module.emitError("-plan=kernels compares with GPUs' limits, but the program is for ")
           << stringifyTargetKind(target->getKind()) << ": give -target=cuda, or run it with -report=kernels";
  KernelTable table(module, *target, out);
  if (!assembler.empty() && failed(table.assemble(options, assembler)))
    return failure();
  table.print();
  return success();
}
