//===- ExecDialect.cpp - the exec dialect: registration and verifiers -----===//

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Exec/Convolution.h"
#include "dsopt/Dialect/Exec/Epilogue.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dsopt::exec;

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// `@b0.param[1]+64+256*edp`.
static RefAttr parseAddress(AsmParser &parser) {
  FlatSymbolRefAttr buffer;
  int64_t slot = 0, offset = 0;
  dsopt::AxisSteps steps{};
  if (parser.parseAttribute(buffer))
    return {};
  if (succeeded(parser.parseOptionalLSquare()) && (parser.parseInteger(slot) || parser.parseRSquare()))
    return {};
  while (succeeded(parser.parseOptionalPlus())) {
    int64_t bytes;
    if (parser.parseInteger(bytes))
      return {};
    if (failed(parser.parseOptionalStar())) {
      offset += bytes;
      continue;
    }
    SMLoc location = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name))
      return {};
    std::optional<dsopt::Axis> axis = dsopt::findAxis(name);
    if (!axis) {
      parser.emitError(location, "got axis '") << name << "', expected edp, ep, sp or tp";
      return {};
    }
    steps[static_cast<size_t>(*axis)] += bytes;
  }
  return RefAttr::get(parser.getContext(), buffer, slot, offset, steps);
}

template <typename Printer> static void printAddress(Printer &printer, RefAttr ref) {
  printer << ref.getBuffer();
  if (ref.getSlot())
    printer << '[' << ref.getSlot() << ']';
  if (ref.getOffset())
    printer << '+' << ref.getOffset();
  for (auto [axis, bytes] : llvm::enumerate(ref.getSteps()))
    if (bytes)
      printer << '+' << bytes << '*' << dsopt::kAxisNames[axis];
}

std::string dsopt::exec::describe(RefAttr ref) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printAddress(os, ref);
  return text;
}

static ParseResult parseRef(OpAsmParser &parser, RefAttr &ref) {
  ref = parseAddress(parser);
  return success(ref != nullptr);
}
static void printRef(OpAsmPrinter &printer, Operation *, RefAttr ref) { printAddress(printer, ref); }

static ParseResult parseRefs(OpAsmParser &parser, ArrayAttr &refs) {
  SmallVector<Attribute> list;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        list.push_back(parseAddress(parser));
        return success(list.back() != nullptr);
      }))
    return failure();
  refs = parser.getBuilder().getArrayAttr(list);
  return success();
}
static void printRefs(OpAsmPrinter &printer, Operation *, ArrayAttr refs) {
  printer << '[';
  llvm::interleaveComma(refs.getAsRange<RefAttr>(), printer,
                        [&](RefAttr ref) { printAddress(printer, ref); });
  printer << ']';
}

static ParseResult parseAxes(OpAsmParser &parser, dsopt::dist::AxesAttr &axes) {
  axes = dyn_cast_or_null<dsopt::dist::AxesAttr>(dsopt::dist::AxesAttr::parse(parser, Type()));
  return success(axes != nullptr);
}
static void printAxes(OpAsmPrinter &printer, Operation *, dsopt::dist::AxesAttr axes) { axes.print(printer); }

#include "dsopt/Dialect/Exec/ExecDialect.cpp.inc"
#include "dsopt/Dialect/Exec/ExecEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dsopt/Dialect/Exec/ExecTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dsopt/Dialect/Exec/ExecAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dsopt/Dialect/Exec/ExecOps.cpp.inc"

Attribute RefAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  RefAttr ref = parseAddress(parser);
  return ref && succeeded(parser.parseGreater()) ? ref : Attribute();
}
void RefAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAddress(printer, *this);
  printer << '>';
}

void ExecDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dsopt/Dialect/Exec/ExecTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dsopt/Dialect/Exec/ExecAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dsopt/Dialect/Exec/ExecOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dsopt/Dialect/Exec/ExecConvolutionOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dsopt/Dialect/Exec/ExecEpilogueOps.cpp.inc"
      >();
}

LogicalResult CommunicatorOp::verifySymbolUses(SymbolTableCollection &) {
  return dsopt::dist::verifyAxes(*this, getAxes());
}

SmallVector<std::pair<int64_t, int64_t>, 1> ProgramOp::getChunks() {
  SmallVector<std::pair<int64_t, int64_t>, 1> chunks;
  for (ArrayRef<int64_t> bounds = getBlocks(); bounds.size() > 1; bounds = bounds.drop_front(2))
    chunks.push_back({bounds[0], bounds[1]});
  return chunks;
}

bool ProgramOp::hasBlock(int64_t block) {
  return llvm::any_of(getChunks(), [&](auto chunk) { return chunk.first <= block && block < chunk.second; });
}

LogicalResult ProgramOp::verify() {
  ArrayRef<int64_t> bounds = getBlocks();
  bool ascending = !bounds.empty() && bounds.size() % 2 == 0 && bounds.front() >= 0;
  for (size_t i = 1; i < bounds.size(); ++i)
    ascending &= i % 2 ? bounds[i - 1] < bounds[i] : bounds[i - 1] <= bounds[i];
  if (!ascending)
    return emitOpError("has blocks ")
           << getBlocksAttr() << ", expected the first and the end of one chunk or more, ascending";
  int64_t schedules = 0;
  for (Operation &op : getBody().front()) {
    if (!isa<MemoryOp, BufferOp, ScheduleOp>(op))
      return op.emitOpError("in a program, expected a memory, a buffer or the schedule");
    schedules += isa<ScheduleOp>(op);
  }
  if (schedules > 1)
    return emitOpError("has ") << schedules << " schedules, expected one";
  SmallVector<MemoryOp> memories = getMemories(*this);
  for (auto buffer : getBody().front().getOps<BufferOp>()) {
    if (buffer.getKind() == BufferKind::Constants)
      continue;
    if (buffer.getMemory() && memoryOf(buffer, memories) == memories.size())
      return buffer.emitOpError("is in ") << buffer.getMemoryAttr() << ", which is no memory of its program";
    if (memories.empty())
      return buffer.emitOpError("is in no memory: expected its program to have one");
  }
  llvm::DenseMap<std::tuple<int, Attribute, Attribute, int64_t>, BufferOp> roles;
  for (auto buffer : getBody().front().getOps<BufferOp>()) {
    if (!buffer.getRole())
      continue;
    auto [other, isNew] = roles.try_emplace({(int)*buffer.getRole(), buffer.getStateAttr(),
                                             buffer.getOfAttr(), (int64_t)buffer.getUse().value_or(0)},
                                            buffer);
    if (isNew)
      continue;
    InFlightDiagnostic diag = buffer.emitOpError("has the role of ")
                              << other->second.getSymNameAttr() << ", expected one buffer in each";
    diag.attachNote(other->second.getLoc()) << "the other is here";
    return diag;
  }
  return success();
}

LogicalResult ScheduleOp::verify() {
  for (Operation &op : getBody().front())
    if (!isAction(&op) && !isa<WaitOp, ReleaseOp>(op))
      return op.emitOpError("in a schedule, expected an action, a wait or a release");
  return success();
}

LogicalResult ReleaseOp::verify() {
  if (!getGather().getDefiningOp<GatherOp>())
    return emitOpError("ends what is no exec.gather");
  return success();
}

/// What bytes are counted as: their kind of transfer, or one of the `others`.
static LogicalResult verifyTraffic(Operation *op, Traffic traffic, Traffic kind, ArrayRef<Traffic> others) {
  if (traffic == kind || llvm::is_contained(others, traffic))
    return success();
  InFlightDiagnostic diag = op->emitOpError("is counted as ")
                            << stringifyTraffic(traffic) << ", expected " << stringifyTraffic(kind);
  for (Traffic other : others)
    diag << (other == others.back() ? " or " : ", ") << stringifyTraffic(other);
  return diag;
}

LogicalResult GatherOp::verify() {
  if (auto wire = getWire(); wire && !wire->isBF16() && !wire->isInteger(8))
    return emitOpError("travels as ") << *wire << ", expected bf16 or i8";
  if (getWire() && getSlice().getBuffer() == getTarget().getBuffer())
    return emitOpError("of a part of its own target travels as ")
           << *getWire() << ", expected the slice in another buffer";
  return verifyTraffic(*this, getTraffic(), Traffic::AllGather,
                       {Traffic::Tied, Traffic::TensorParallel, Traffic::SequenceParallel});
}
LogicalResult SendOp::verify() {
  return verifyTraffic(*this, getTraffic(), Traffic::SendRecv, Traffic::Tied);
}
LogicalResult RecvOp::verify() {
  return verifyTraffic(*this, getTraffic(), Traffic::SendRecv, Traffic::Tied);
}

LogicalResult AgreeOp::verify() {
  size_t parts = getPlaces().size(), measures = getMeasures() ? getMeasures()->size() : 0;
  if (getLengths().size() != parts || (parts ? !measures || measures % parts : measures))
    return emitOpError("measures ")
           << measures << " values of " << parts << " places and " << getLengths().size()
           << " lengths, expected a place and a length for each part of a metric, and as "
              "many values of each as there are micro-batches";
  for (auto [place, length] : llvm::zip_equal(getPlaces(), getLengths()))
    if (place < 0 || length < 1)
      return emitOpError("measures ")
             << length << " elements at place " << place << ", expected 1 or more from 0 on";
  size_t numbers = getNumbers().size(), outputs = getOutputs() ? getOutputs()->size() : 0;
  if (getBytes().size() != numbers || (numbers ? !outputs || outputs % numbers : outputs))
    return emitOpError("has ") << outputs << " places of " << numbers << " outputs and " << getBytes().size()
                               << " sizes, expected a size of each output, and as many places as there are "
                                  "micro-batches";
  return success();
}

LogicalResult ReduceOp::verify() {
  bool inParts = getWire() && getWire()->isInteger(4) && getMethod() == ReductionMethod::AllToAll;
  if (auto wire = getWire(); wire && !(getType().isF32() && (wire->isBF16() || inParts)))
    return emitOpError("of ") << getType() << " travels as " << *wire
                              << ", expected f32 as bf16, or as i4 by all_to_all";
  if (getFast() && getMethod() != ReductionMethod::ReduceScatter)
    return emitOpError("is fast by ")
           << stringifyReductionMethod(getMethod()) << ", where owners add along the canonical tree";
  return success();
}

LogicalResult AllToAllOp::verify() {
  if (getSource().getBuffer() == getTarget().getBuffer())
    return emitOpError("is from ") << getSource().getBuffer() << " to itself, expected another buffer";
  if ((int64_t)getBytes() < 1)
    return emitOpError("has ") << (int64_t)getBytes() << " bytes for each member, expected at least 1";
  return verifyTraffic(*this, getTraffic(), Traffic::AllToAll,
                       {Traffic::TensorParallel, Traffic::SequenceParallel});
}

LogicalResult ShiftOp::verify() {
  if (getSource().getBuffer() == getTarget().getBuffer())
    return emitOpError("is from ") << getSource().getBuffer() << " to itself, expected another buffer";
  if ((int64_t)getBytes() < 1)
    return emitOpError("has ") << (int64_t)getBytes() << " bytes, expected at least 1";
  return verifyTraffic(*this, getTraffic(), Traffic::TensorParallel, {Traffic::SequenceParallel});
}

/// What a buffer's role asks of it.
static LogicalResult verifyRole(BufferOp buffer, MemRefType type) {
  std::optional<BufferRole> role = buffer.getRole();
  bool ofUse = role == BufferRole::Accumulator;
  if (buffer.getUse().has_value() != ofUse)
    return buffer.emitOpError(ofUse ? "is an accumulator of no use" : "is of a use")
           << ", expected the use of an accumulator";
  bool isState = role == BufferRole::State || role == BufferRole::Kept;
  if (buffer.getState().has_value() != isState)
    return buffer.emitOpError(isState ? "is a state without its name" : "has the name of a state")
           << ", expected the name of a state, or of what is kept";
  if (!role)
    return success();
  bool ofBucket = *role != BufferRole::Seed && *role != BufferRole::Scalars && *role != BufferRole::Staging;
  if (buffer.getOf().has_value() != ofBucket)
    return buffer.emitOpError("has the role ")
           << stringifyBufferRole(*role) << ", expected one " << (ofBucket ? "of a bucket" : "of no bucket");
  bool persists = *role != BufferRole::Gathered && *role != BufferRole::Accumulator;
  if (persists && !buffer.getPersistent())
    return buffer.emitOpError("has the role ") << stringifyBufferRole(*role) << ", expected it persistent";
  int64_t rank = *role == BufferRole::Seed ? 0 : 1;
  Type element = type.getElementType();
  bool fits = *role == BufferRole::Kept      ? element.isIntOrFloat()
              : *role == BufferRole::Staging ? element.isInteger(8)
              : ofBucket                     ? isa<FloatType>(element)
                                             : element.isF32();
  if (type.getRank() != rank || !fits)
    return buffer.emitOpError("has the role ")
           << stringifyBufferRole(*role) << " and type " << type << ", expected "
           << (*role == BufferRole::Seed      ? "one f32"
               : *role == BufferRole::Kept    ? "numbers in one dimension"
               : *role == BufferRole::Staging ? "bytes (i8) in one dimension"
                                              : "floats in one dimension");
  return success();
}

LogicalResult MemoryOp::verify() {
  if (int64_t alignment = getAlignment(); alignment < kAlignment || !llvm::isPowerOf2_64(alignment))
    return emitOpError("has an alignment of ")
           << alignment << ", expected a power of two of at least " << kAlignment;
  if (getBytes() && ((int64_t)*getBytes() < 0 || *getBytes() % getAlignment()))
    return emitOpError("has ") << (int64_t)*getBytes() << " bytes, expected a multiple of " << getAlignment();
  return success();
}

LogicalResult BufferOp::verify() {
  auto type = dyn_cast<MemRefType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError("has type ") << getType() << ", expected a memref of static shape";
  if ((int64_t)getSlots() < 1)
    return emitOpError("has ") << (int64_t)getSlots() << " slots, expected at least 1";
  if (getStride() % kAlignment || (int64_t)getStride() < bytesOf(type))
    return emitOpError("has a stride of ")
           << (int64_t)getStride() << " bytes, expected a multiple of " << kAlignment << " of at least "
           << bytesOf(type) << ", the bytes of " << type;
  if (getOffset() && ((int64_t)*getOffset() < 0 || *getOffset() % kAlignment))
    return emitOpError("is at offset ") << (int64_t)*getOffset() << ", expected a multiple of " << kAlignment;
  if (getMemory() && getKind() == BufferKind::Constants)
    return emitOpError("is in ") << getMemoryAttr() << ", expected constants in the program's image";
  return verifyRole(*this, type);
}

LogicalResult ViewOp::verify() {
  auto source = cast<MemRefType>(getSource().getType()), result = cast<MemRefType>(getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!source.getLayout().isIdentity() || !source.hasStaticShape() || !result.hasStaticShape() ||
      source.getElementType() != result.getElementType() ||
      failed(result.getStridesAndOffset(strides, offset)))
    return emitOpError("shows ") << source << " as " << result
                                 << ", expected a contiguous source of the same element type";
  int64_t last = offset;
  for (auto [extent, stride] : llvm::zip_equal(result.getShape(), strides))
    last += (extent - 1) * stride;
  if (result.getNumElements() && last >= source.getNumElements())
    return emitOpError("shows ") << source << " as " << result << ", expected its elements";
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getKernelAttr()))
    return emitOpError("launches ") << getKernelAttr() << ", which is no function of this module";
  return success();
}

LogicalResult GemmOp::verify() {
  auto a = cast<MemRefType>(getLhs().getType()), b = cast<MemRefType>(getRhs().getType()),
       c = cast<MemRefType>(getResult().getType());
  int64_t rank = c.getRank();
  if (rank < 2 || a.getRank() != rank || b.getRank() != rank)
    return emitOpError("has operands of rank ")
           << a.getRank() << " and " << b.getRank() << " and a result of rank " << rank
           << ", expected equal ranks of at least 2";
  int64_t m = a.getDimSize(rank - (getTransposeA() ? 1 : 2)),
          k = a.getDimSize(rank - (getTransposeA() ? 2 : 1));
  int64_t kb = b.getDimSize(rank - (getTransposeB() ? 1 : 2)),
          n = b.getDimSize(rank - (getTransposeB() ? 2 : 1));
  if (k != kb)
    return emitOpError("contracts ") << k << " with " << kb << " elements, expected equal sizes";
  if (c.getDimSize(rank - 2) != m || c.getDimSize(rank - 1) != n)
    return emitOpError("has a result of type ") << c << ", expected " << m << "x" << n << " matrices";
  if (getWhole() && (rank != 2 || getWhole()->size() != 3))
    return emitOpError("is a part of a product [") << *getWhole() << "], expected matrices of three extents";
  if (getAddend() && !getWhole())
    return emitOpError("adds to a sum, expected a part of a product to do so");
  if (getPacked() && failed(verifyPackedB(*this, getPacked(), getRhs())))
    return failure();
  return success();
}
