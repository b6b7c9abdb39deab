//===- Decoder.cpp - instructions become operations -----------------------===//

#include "Decoder.h"
#include "Warp.h"

#include <algorithm>
#include <cstring>

namespace softdevice {

namespace {
struct NamedSpecial {
  const char *name;
  Special special;
  int bytes;
};
} // namespace

static constexpr NamedSpecial kSpecials[] = {
    {"%tid.x", Special::TidX, 4},
    {"%tid.y", Special::TidY, 4},
    {"%tid.z", Special::TidZ, 4},
    {"%ntid.x", Special::NtidX, 4},
    {"%ntid.y", Special::NtidY, 4},
    {"%ntid.z", Special::NtidZ, 4},
    {"%ctaid.x", Special::CtaidX, 4},
    {"%ctaid.y", Special::CtaidY, 4},
    {"%ctaid.z", Special::CtaidZ, 4},
    {"%nctaid.x", Special::NctaidX, 4},
    {"%nctaid.y", Special::NctaidY, 4},
    {"%nctaid.z", Special::NctaidZ, 4},
    {"%laneid", Special::LaneId, 4},
    {"%warpid", Special::WarpId, 4},
    {"%nwarpid", Special::NWarpId, 4},
    {"%smid", Special::SmId, 4},
    {"%nsmid", Special::NSmId, 4},
    {"%lanemask_eq", Special::LaneMaskEq, 4},
    {"%lanemask_lt", Special::LaneMaskLt, 4},
    {"%lanemask_le", Special::LaneMaskLe, 4},
    {"%lanemask_gt", Special::LaneMaskGt, 4},
    {"%lanemask_ge", Special::LaneMaskGe, 4},
    {"%clock", Special::Clock, 4},
    {"%clock64", Special::Clock64, 8},
    {"%globaltimer", Special::GlobalTimer, 8},
    {"%dynamic_smem_size", Special::DynamicSharedBytes, 4},
};

static void runUnsupported(Warp &warp, const Op &op) {
  throw Fault("an instruction that the software device does not have: " +
              describePlace(warp, op, __builtin_ctz(warp.active)));
}

static int64_t align(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

static void addSymbols(const Operand &operand, std::set<std::string> &named) {
  if (operand.kind == Operand::Kind::Symbol)
    named.insert(operand.symbol);
  for (const Operand &part : operand.parts)
    addSymbols(part, named);
}

static void countUses(const Operand &operand, std::vector<int> &uses) {
  if (operand.kind == Operand::Kind::Register)
    ++uses[operand.index];
  for (const auto *list : {&operand.parts, &operand.second})
    for (const Operand &part : *list)
      countUses(part, uses);
}

Decoder::Decoder(const Module &module, const Function &function,
                 const std::function<uint64_t(const std::string &)> &addressOf)
    : function(function), addressOf(addressOf), uses(function.registers.size()) {
  kernel.name = function.name;
  kernel.target = module.target;
  for (int axis = 0; axis < 3; ++axis) {
    kernel.required[axis] = function.required[axis];
    kernel.most[axis] = function.most[axis];
  }
  for (const Variable &parameter : function.parameters) {
    kernel.parameterBytes = align(kernel.parameterBytes, parameter.align);
    kernel.parameters.push_back(parameter);
    kernel.parameterOffsets.push_back(kernel.parameterBytes);
    places[parameter.name] = {"param", kernel.parameterBytes};
    kernel.parameterBytes += parameter.bytes;
  }
  // What other kernels have in shared memory is not in this one's.
  std::set<std::string> named;
  for (const Statement &one : function.body)
    for (const Operand &operand : one.operands) {
      addSymbols(operand, named);
      countUses(operand, uses);
    }
  for (const Variable &variable : module.variables)
    if (variable.space != "shared" || named.count(variable.name))
      place(variable);
  for (const Variable &variable : function.variables)
    place(variable);
  kernel.sharedEnd = align(kernel.sharedEnd, 128);
  // Dynamic shared memory begins behind all that is static.
  for (const Variable &variable : module.variables)
    if (variable.isExternal && variable.space == "shared")
      places[variable.name] = {"shared", kernel.sharedEnd};
  for (Type type : function.registers)
    registers.push_back(type == Type::Pred ? kernel.predicates++ : addRow(bytesOf(type)));
  nothing = addRow(16);
}

void Decoder::place(const Variable &variable) {
  bool isShared = variable.space == "shared";
  int64_t *end = isShared ? &kernel.sharedEnd : variable.space == "local" ? &kernel.localBytes : nullptr;
  if (end && !variable.isExternal) {
    *end = align(*end, variable.align);
    places[variable.name] = {variable.space, *end};
    *end += variable.bytes;
  } else if (!end) {
    places[variable.name] = {variable.space, 0};
  }
  if (isShared && !variable.isExternal) {
    kernel.sharedBytes = align(kernel.sharedBytes, variable.align) + variable.bytes;
    kernel.sharedGaps.push_back(kernel.sharedEnd);
    kernel.sharedEnd += kSharedGap;
  }
}

uint32_t Decoder::addRow(int bytes) {
  uint32_t place = static_cast<uint32_t>(align(kernel.rows.size(), 64));
  kernel.rows.resize(place + bytes * kLanes);
  return place;
}

uint32_t Decoder::constantRow(uint64_t bits, int bytes) {
  if (bytes < 8)
    bits &= (1ull << 8 * bytes) - 1;
  auto [found, isNew] = constants.try_emplace({bits, bytes}, 0);
  if (isNew) {
    found->second = addRow(bytes);
    for (int lane = 0; lane < kLanes; ++lane)
      std::memcpy(&kernel.rows[found->second + lane * bytes], &bits, bytes);
  }
  return found->second;
}

bool Decoder::take(const std::string &word) {
  for (size_t i = 1; i < taken.size(); ++i)
    if (!taken[i] && statement->opcode[i] == word)
      return taken[i] = true;
  return false;
}

std::string Decoder::takeOne(std::initializer_list<const char *> words) {
  for (const char *word : words)
    if (take(word))
      return word;
  return "";
}

Type Decoder::takeType() {
  for (size_t i = 1; i < taken.size(); ++i)
    if (Type type = typeNamed(statement->opcode[i]); !taken[i] && type != Type::None) {
      taken[i] = true;
      return type;
    }
  return Type::None;
}

Round Decoder::takeRounding() {
  static constexpr std::pair<const char *, Round> kRounds[] = {
      {"rn", Round::Nearest},  {"rz", Round::Zero},  {"rm", Round::Down},  {"rp", Round::Up},
      {"rni", Round::Nearest}, {"rzi", Round::Zero}, {"rmi", Round::Down}, {"rpi", Round::Up}};
  for (auto [name, round] : kRounds)
    if (take(name))
      return round;
  return Round::Nearest;
}

const Operand &Decoder::operand(size_t index) const {
  if (index >= statement->operands.size())
    fail("operand " + std::to_string(index) + " is missing in '" + statement->text + "'");
  return statement->operands[index];
}

uint64_t Decoder::symbolValue(const std::string &name) const {
  auto found = places.find(name);
  if (found == places.end())
    fail("'" + name + "' is not declared");
  const auto &[space, offset] = found->second;
  return space == "global" || space == "const" ? addressOf(name) : offset;
}

std::string Decoder::spaceOf(const Operand &operand) const {
  const Operand &base =
      operand.kind == Operand::Kind::Address && !operand.parts.empty() ? operand.parts[0] : operand;
  auto found = places.find(base.symbol);
  return found == places.end() ? "" : found->second.first;
}

std::optional<int64_t> Decoder::constant(const Operand &operand) const {
  if (operand.kind != Operand::Kind::Literal || operand.type != Type::None)
    return std::nullopt;
  return static_cast<int64_t>(operand.bits);
}

uint32_t Decoder::read(const Operand &operand, Type type) {
  switch (operand.kind) {
  case Operand::Kind::Register:
    if (function.registers[operand.index] == Type::Pred)
      fail("a predicate where a value is expected in '" + statement->text + "'");
    return registers[operand.index];
  case Operand::Kind::Literal: {
    uint64_t bits = operand.bits;
    if (type == Type::F32 && operand.type == Type::F64) {
      double value;
      std::memcpy(&value, &bits, sizeof(value));
      float narrow = static_cast<float>(value);
      bits = 0;
      std::memcpy(&bits, &narrow, sizeof(narrow));
    }
    return constantRow(bits, bytesOf(type));
  }
  case Operand::Kind::Symbol:
    return constantRow(symbolValue(operand.symbol) + operand.offset, bytesOf(type));
  case Operand::Kind::Special: {
    for (const NamedSpecial &row : kSpecials)
      if (operand.symbol == row.name) {
        auto [found, isNew] = specials.try_emplace(operand.symbol, 0);
        if (isNew) {
          found->second = addRow(8);
          kernel.specials.push_back({found->second, row.special});
        }
        return found->second;
      }
    if (operand.symbol == "WARP_SZ")
      return constantRow(kLanes, bytesOf(type));
    fail("'" + operand.symbol + "' is no register");
  }
  default:
    fail("an operand of '" + statement->text + "' is of the wrong kind");
  }
}

uint32_t Decoder::write(const Operand &operand) {
  if (operand.kind == Operand::Kind::Sink)
    return nothing;
  if (operand.kind != Operand::Kind::Register || function.registers[operand.index] == Type::Pred)
    fail("the destination of '" + statement->text + "' is no register of values");
  return registers[operand.index];
}

bool Decoder::isUsed(const Operand &operand) const {
  return operand.kind == Operand::Kind::Register && uses[operand.index] > 1;
}

uint32_t Decoder::predicate(const Operand &operand) {
  if (operand.kind == Operand::Kind::Sink)
    return 0;
  if (operand.kind != Operand::Kind::Register || function.registers[operand.index] != Type::Pred)
    fail("an operand of '" + statement->text + "' is no predicate");
  return registers[operand.index];
}

int Decoder::width(const Operand &operand, Type otherwise) const {
  if (operand.kind == Operand::Kind::Register)
    return bytesOf(function.registers[operand.index]);
  if (operand.kind == Operand::Kind::Special) {
    for (const NamedSpecial &row : kSpecials)
      if (operand.symbol == row.name)
        return row.bytes;
  }
  return bytesOf(otherwise);
}

void Decoder::address(const Operand &operand, Op &op) {
  if (operand.kind != Operand::Kind::Address)
    fail("an operand of '" + statement->text + "' is no address");
  op.number = operand.offset;
  if (operand.parts.empty()) {
    op.a = constantRow(0, 8);
    op.width = 8;
    return;
  }
  op.a = read(operand.parts[0], Type::U64);
  op.width = width(operand.parts[0], Type::U64);
}

int Decoder::label(const std::string &name) const {
  auto found = function.labels.find(name);
  if (found == function.labels.end())
    fail("there is no label '" + name + "'");
  return found->second;
}

const std::vector<std::string> &Decoder::branchTable(const std::string &name) const {
  auto found = function.branchTables.find(name);
  if (found == function.branchTables.end())
    fail("there is no branch table '" + name + "'");
  return found->second;
}

Op Decoder::decodeOne() {
  using Family = bool (*)(Decoder &, Op &);
  static constexpr Family kFamilies[] = {decodeMoves,  decodeArithmetic,  decodeFloats,  decodeBits,
                                         decodeMemory, decodeConversions, decodeControl, decodeComparisons,
                                         decodeWarps,  decodeMatrices,    decodeAtomics, decodeCopies};
  for (Family family : kFamilies) {
    Op op;
    taken.assign(statement->opcode.size(), false);
    taken[0] = true;
    if (family(*this, op) && op.run && std::find(taken.begin(), taken.end(), false) == taken.end())
      return op;
  }
  kernel.unsupported.push_back("line " + std::to_string(statement->line) + ": " + statement->text);
  Op op;
  op.run = runUnsupported;
  return op;
}

Kernel Decoder::decode() {
  for (const Statement &one : function.body) {
    statement = &one;
    Op op = decodeOne();
    op.guard = one.guard < 0 ? 0 : registers[one.guard];
    op.negated = one.negated;
    op.line = one.line;
    op.text = one.text;
    op.index = static_cast<int>(kernel.ops.size());
    kernel.ops.push_back(std::move(op));
  }
  // What runs past the end has ended.
  Op end;
  end.run = [](Warp &warp, const Op &) { warp.leave(warp.active); };
  end.line = function.line;
  end.text = "(end)";
  end.index = static_cast<int>(kernel.ops.size());
  kernel.ops.push_back(std::move(end));
  return std::move(kernel);
}

Kernel decode(const Module &module, const Function &function,
              const std::function<uint64_t(const std::string &)> &addressOf) {
  return Decoder(module, function, addressOf).decode();
}

} // namespace softdevice
