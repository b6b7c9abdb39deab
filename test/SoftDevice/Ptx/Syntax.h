//===- Syntax.h - a PTX module as it is written -----------------*- C++ -*-===//
//
// What `parseModule` makes of PTX text: what a module declares. `parseBody` makes of a function statements
// that still carry their spelling, with names resolved to registers and parameters. The meaning is Decode's.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_PTX_SYNTAX_H
#define DSOPT_TEST_SOFTDEVICE_PTX_SYNTAX_H

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace softdevice {

/// PTX's scalar types.
enum class Type : uint8_t {
  None,
  Pred,
  B8,
  U8,
  S8,
  B16,
  U16,
  S16,
  F16,
  BF16,
  B32,
  U32,
  S32,
  F32,
  F16x2,
  BF16x2,
  TF32,
  B64,
  U64,
  S64,
  F64,
  B128
};

/// Bytes of a value in memory; a predicate has none.
int bytesOf(Type type);
bool isFloat(Type type);
bool isSigned(Type type);
/// The type that is spelled so without its dot ("u32"); None if there is none.
Type typeNamed(std::string_view name);

/// Text that is no PTX, or not of the kind that is understood: with its line.
struct SyntaxError : std::runtime_error {
  SyntaxError(int line, const std::string &text)
      : std::runtime_error("PTX line " + std::to_string(line) + ": " + text), line(line) {}
  int line;
};

struct Operand {
  enum class Kind {
    Register, ///< `index` among the function's
    Literal,  ///< `bits`; a float literal has its `type`
    Special,  ///< `symbol`: "%tid.x"
    Symbol,   ///< a variable, parameter, function or label: `symbol`
    Address,  ///< [base + offset]: the base in `parts`, if there is one
    Vector,   ///< {a, b}: `parts`
    Group,    ///< (a, b): `parts`, of calls
    Sink      ///< _
  };
  Kind kind = Kind::Sink;
  int index = -1;
  uint64_t bits = 0;
  Type type = Type::None;
  std::string symbol;
  int64_t offset = 0;
  bool negated = false;
  std::vector<Operand> parts;
  /// `d|p`: the second destination, of setp and shfl.
  std::vector<Operand> second;
};

struct Statement {
  int guard = -1; ///< a predicate register
  bool negated = false;
  std::vector<std::string> opcode; ///< "ld", "global", "f32"
  std::vector<Operand> operands;
  int line = 0;
  std::string text;
};

/// A variable in global, constant, shared or local memory, or a parameter.
struct Variable {
  std::string name, space;
  int64_t align = 1, bytes = 0;
  Type type = Type::None;
  bool isExternal = false;   ///< dynamic shared memory
  std::vector<char> initial; ///< shorter than `bytes`: zeros follow
};

struct Function {
  std::string name;
  bool isEntry = false, hasBody = false;
  std::vector<Variable> parameters;
  std::vector<Type> registers;
  std::vector<Variable> variables; ///< shared and local ones declared inside
  std::vector<Statement> body;
  std::map<std::string, int> labels;                            ///< index of the next statement
  std::map<std::string, std::vector<std::string>> branchTables; ///< .branchtargets
  int64_t required[3] = {0, 0, 0};                              ///< .reqntid; 0: not said
  int64_t most[3] = {0, 0, 0};                                  ///< .maxntid
  int line = 0;
  std::string text;  ///< of what is in braces, and with them
  int firstLine = 0; ///< of the text
};

struct Module {
  std::string version, target;
  std::vector<Variable> variables; ///< of module scope
  std::vector<Function> functions;
};

/// Throws SyntaxError. Of functions, what is in their braces is left as text: a library has many kernels, of
/// which a program runs few.
Module parseModule(std::string_view text);
/// Fills in registers, variables, statements and labels from the text. Throws SyntaxError.
void parseBody(Function &function);

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_PTX_SYNTAX_H
