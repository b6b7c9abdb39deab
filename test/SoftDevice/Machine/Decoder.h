//===- Decoder.h - instructions become operations ---------------*- C++ -*-===//
//
// One function for each family of instructions: it takes what it understands and says
// whether it did. A spelling of which a word is left over is not understood.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_MACHINE_DECODER_H
#define DSOPT_TEST_SOFTDEVICE_MACHINE_DECODER_H

#include "Kernel.h"

#include <optional>

namespace softdevice {

/// How results are rounded.
enum class Round : uint8_t { Nearest, Zero, Down, Up };

class Decoder {
public:
  Decoder(const Module &module, const Function &function,
          const std::function<uint64_t(const std::string &)> &addressOf);
  Kernel decode();

  //===--------------------------------------------------------------------===//
  // The instruction at hand
  //===--------------------------------------------------------------------===//

  const Statement *statement = nullptr;
  const std::string &base() const { return statement->opcode[0]; }
  /// Takes a word of the spelling, wherever it stands.
  bool take(const std::string &word);
  /// Takes the first of the words that is there; empty if none is.
  std::string takeOne(std::initializer_list<const char *> words);
  /// Takes the first word that is a type.
  Type takeType();
  /// Takes .rn, .rz, .rm, .rp, for integers with an i; Nearest if there is none.
  Round takeRounding();
  bool has(size_t operands) const { return statement->operands.size() == operands; }
  const Operand &operand(size_t index) const;
  [[noreturn]] void fail(const std::string &text) const { throw SyntaxError(statement->line, text); }

  //===--------------------------------------------------------------------===//
  // Places of operands
  //===--------------------------------------------------------------------===//

  /// The row of an operand that is read as `type`: of a register, or one that is filled.
  uint32_t read(const Operand &operand, Type type);
  /// The row of a register that is written; a row for nothing where it is `_`.
  uint32_t write(const Operand &operand);
  uint32_t predicate(const Operand &operand);
  /// Whether a register is named somewhere else, too.
  bool isUsed(const Operand &operand) const;
  /// Bytes of the register; 4 for special registers, else those of `otherwise`.
  int width(const Operand &operand, Type otherwise) const;
  /// The row and the offset of [base + offset], and the width of the row.
  void address(const Operand &operand, Op &op);
  /// The space of the variable that an operand names; empty if it is none.
  std::string spaceOf(const Operand &operand) const;
  /// The value of a literal operand.
  std::optional<int64_t> constant(const Operand &operand) const;
  int label(const std::string &name) const;
  const std::vector<std::string> &branchTable(const std::string &name) const;
  uint32_t constantRow(uint64_t bits, int bytes);

private:
  Op decodeOne();
  uint32_t addRow(int bytes);
  uint64_t symbolValue(const std::string &name) const;
  void place(const Variable &variable);

  const Function &function;
  std::function<uint64_t(const std::string &)> addressOf;
  Kernel kernel;
  std::vector<bool> taken;         ///< words of the spelling
  std::vector<uint32_t> registers; ///< rows or predicates
  std::vector<int> uses;           ///< of registers: how often they are named
  std::map<std::pair<uint64_t, int>, uint32_t> constants;
  std::map<std::string, uint32_t> specials;
  std::map<std::string, std::pair<std::string, uint64_t>> places; ///< spaces and offsets of variables
  uint32_t nothing = 0;                                           ///< a row that is never read
};

// Each takes the instructions of one file.
bool decodeArithmetic(Decoder &decoder, Op &op);
bool decodeBits(Decoder &decoder, Op &op);
bool decodeFloats(Decoder &decoder, Op &op);
bool decodeConversions(Decoder &decoder, Op &op);
bool decodeComparisons(Decoder &decoder, Op &op);
bool decodeMoves(Decoder &decoder, Op &op);
bool decodeMemory(Decoder &decoder, Op &op);
bool decodeAtomics(Decoder &decoder, Op &op);
bool decodeCopies(Decoder &decoder, Op &op);
bool decodeControl(Decoder &decoder, Op &op);
bool decodeWarps(Decoder &decoder, Op &op);
bool decodeMatrices(Decoder &decoder, Op &op);

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_MACHINE_DECODER_H
