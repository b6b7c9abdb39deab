//===- Parser.cpp - PTX text becomes functions and statements -------------===//

#include "Lexer.h"
#include "Syntax.h"

#include <cstring>
#include <optional>

namespace softdevice {

namespace {
class Parser {
public:
  Parser(std::string_view text, int line, bool hasBodies)
      : source(text), tokens(tokenize(text, line, hasBodies)) {}
  Module parse();
  void body(Function &function) {
    scopes.assign(1, {});
    expect("{");
    block(function);
  }

private:
  const Token &peek(size_t ahead = 0) const { return tokens[std::min(at + ahead, tokens.size() - 1)]; }
  bool is(std::string_view text, size_t ahead = 0) const {
    return peek(ahead).kind != Token::Kind::Text && peek(ahead).text == text;
  }
  const Token &next() { return tokens[std::min(at++, tokens.size() - 1)]; }
  bool take(std::string_view text) { return is(text) && (++at, true); }
  [[noreturn]] void fail(const std::string &expected) const {
    throw SyntaxError(peek().line, "got '" + std::string(peek().text) + "', expected " + expected);
  }
  void expect(std::string_view text) {
    if (!take(text))
      fail("'" + std::string(text) + "'");
  }
  /// A name without dots.
  std::string name(const char *what) {
    std::string made = word(what);
    if (made.find('.') != made.npos)
      throw SyntaxError(peek().line, "'" + made + "' is no name: it has a dot");
    return made;
  }
  std::string word(const char *what) {
    if (peek().kind != Token::Kind::Word)
      fail(what);
    return std::string(next().text);
  }
  int64_t integer() {
    bool isNegative = take("-");
    if (peek().kind != Token::Kind::Number)
      fail("a number");
    int64_t value = static_cast<int64_t>(readNumber(next()).first);
    return isNegative ? -value : value;
  }
  /// To the end of a directive that means nothing here.
  void skipDirective() {
    while (!is(";") && !is("}") && peek().kind != Token::Kind::End)
      next();
    take(";");
  }

  Variable variable(const std::string &space, bool isExternal);
  void initialize(Variable &variable);
  Function function(bool isEntry);
  std::vector<Variable> parameters();
  void block(Function &function);
  void registers(Function &function);
  void branchTable(Function &function, const std::string &name);
  Statement statement(const Function &function);
  Operand operand(const Function &function);
  Operand simpleOperand(const Function &function);
  std::optional<int> registerNamed(const std::string &name) const;

  std::string_view source;
  std::vector<Token> tokens;
  size_t at = 0;
  std::vector<std::map<std::string, int>> scopes; ///< names of registers, the innermost last
  Module module;
};
} // namespace

std::optional<int> Parser::registerNamed(const std::string &name) const {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
    if (auto found = scope->find(name); found != scope->end())
      return found->second;
  return std::nullopt;
}

/// After `.global`, `.shared`, `.local`, `.const` or `.param`: alignment, type, name, size and what it begins
/// with.
Variable Parser::variable(const std::string &space, bool isExternal) {
  Variable variable;
  variable.space = space;
  variable.isExternal = isExternal;
  while (peek().kind == Token::Kind::Word && peek().text[0] == '.') {
    std::string directive = word("a type").substr(1);
    if (Type type = typeNamed(directive); type != Type::None)
      variable.type = type;
    else if (directive == "align")
      variable.align = integer();
    else if (directive != "ptr" && directive != "global" && directive != "shared" && directive != "local" &&
             directive != "const" && directive != "generic")
      throw SyntaxError(peek().line, "'." + directive + "' of a variable is not understood");
  }
  if (variable.type == Type::None)
    fail("a type");
  variable.align = std::max<int64_t>(variable.align, bytesOf(variable.type));
  variable.name = name("a name");
  variable.bytes = bytesOf(variable.type);
  while (take("[")) {
    if (!is("]"))
      variable.bytes *= integer();
    else if (isExternal)
      variable.bytes = 0;
    expect("]");
  }
  if (take("="))
    initialize(variable);
  return variable;
}

void Parser::initialize(Variable &variable) {
  int size = bytesOf(variable.type);
  bool isList = take("{");
  do {
    if (isList && is("}"))
      break;
    if (peek().kind == Token::Kind::Word)
      throw SyntaxError(peek().line,
                        "an address as the initial value of " + variable.name + " is not understood");
    bool isNegative = take("-");
    auto [bits, type] = readNumber(next());
    if (isNegative)
      bits = -bits;
    variable.initial.insert(variable.initial.end(), reinterpret_cast<char *>(&bits),
                            reinterpret_cast<char *>(&bits) + size);
  } while (take(","));
  if (isList)
    expect("}");
}

std::vector<Variable> Parser::parameters() {
  std::vector<Variable> list;
  expect("(");
  while (!take(")")) {
    if (!take(".param") && !take(".reg"))
      fail("a parameter");
    list.push_back(variable("param", false));
    take(",");
  }
  return list;
}

Function Parser::function(bool isEntry) {
  Function function;
  function.isEntry = isEntry;
  function.line = peek().line;
  if (is("("))
    parameters();
  function.name = name("a function's name");
  if (is("("))
    function.parameters = parameters();
  while (peek().kind != Token::Kind::Body && !is(";")) {
    std::string directive = word("a directive");
    int64_t *sizes = directive == ".reqntid"   ? function.required
                     : directive == ".maxntid" ? function.most
                                               : nullptr;
    bool hasNumbers = peek().kind == Token::Kind::Number;
    for (int axis = 0; hasNumbers && (axis == 0 || take(",")); ++axis) {
      int64_t value = integer();
      if (sizes && axis < 3)
        sizes[axis] = value;
    }
  }
  if (take(";"))
    return function;
  function.hasBody = true;
  function.firstLine = peek().line;
  function.text = next().text;
  return function;
}

void Parser::registers(Function &function) {
  Type type = typeNamed(word("a type").substr(1));
  if (type == Type::None)
    fail("a type of registers");
  do {
    std::string name = word("a register's name");
    int64_t count = -1;
    if (take("<")) {
      count = integer();
      expect(">");
    }
    for (int64_t i = 0; i < std::max<int64_t>(count, 1); ++i) {
      scopes.back()[count < 0 ? name : name + std::to_string(i)] =
          static_cast<int>(function.registers.size());
      function.registers.push_back(type);
    }
  } while (take(","));
  expect(";");
}

void Parser::branchTable(Function &function, const std::string &name) {
  do
    function.branchTables[name].push_back(word("a label"));
  while (take(","));
  expect(";");
}

/// Up to the closing brace.
void Parser::block(Function &function) {
  while (!take("}")) {
    if (peek().kind == Token::Kind::End)
      fail("'}'");
    if (take("{")) {
      scopes.emplace_back();
      block(function);
      scopes.pop_back();
    } else if (take(".reg")) {
      registers(function);
    } else if (is(".shared") || is(".local") || is(".param")) {
      std::string space = word("a space").substr(1);
      function.variables.push_back(variable(space, false));
      expect(";");
    } else if (peek().kind == Token::Kind::Word && is(":", 1)) {
      std::string name = word("a label");
      next();
      if (take(".branchtargets"))
        branchTable(function, name);
      else
        function.labels[name] = static_cast<int>(function.body.size());
    } else if (take(".loc")) {
      // "1 20 3" or "1 20 3, function_name ..., inlined_at ...": numbers and names of one line.
      for (int line = tokens[at - 1].line; peek().line == line && peek().kind != Token::Kind::End;)
        next();
    } else if (peek().text[0] == '.' && peek().kind == Token::Kind::Word) {
      skipDirective();
    } else if (!take(";")) {
      function.body.push_back(statement(function));
    }
  }
}

Statement Parser::statement(const Function &function) {
  Statement made;
  const Token &first = peek();
  made.line = first.line;
  if (take("@")) {
    made.negated = take("!");
    std::string name = word("a predicate");
    std::optional<int> guard = registerNamed(name);
    if (!guard || function.registers[*guard] != Type::Pred)
      throw SyntaxError(made.line, "'" + name + "' is no predicate");
    made.guard = *guard;
  }
  std::string opcode = word("an instruction");
  for (size_t begin = 0; begin <= opcode.size();) {
    size_t end = std::min(opcode.find('.', begin), opcode.size());
    made.opcode.push_back(opcode.substr(begin, end - begin));
    begin = end + 1;
  }
  while (!is(";")) {
    made.operands.push_back(operand(function));
    if (!take(",") && !is(";"))
      fail("',' or ';'");
  }
  const Token &last = next();
  size_t begin = first.text.data() - source.data(), end = last.text.data() - source.data() + 1;
  for (char c : source.substr(begin, end - begin))
    if (bool isSpace = std::strchr(" \t\n\r", c); !isSpace || (!made.text.empty() && made.text.back() != ' '))
      made.text += isSpace ? ' ' : c;
  return made;
}

Operand Parser::operand(const Function &function) {
  Operand made;
  auto list = [&](Operand::Kind kind, std::string_view close) {
    made.kind = kind;
    while (!take(close)) {
      made.parts.push_back(operand(function));
      if (!take(",") && !is(close))
        fail("'" + std::string(close) + "'");
    }
  };
  if (take("{")) {
    list(Operand::Kind::Vector, "}");
  } else if (take("(")) {
    list(Operand::Kind::Group, ")");
  } else if (take("[")) {
    made.kind = Operand::Kind::Address;
    if (peek().kind == Token::Kind::Number)
      made.offset = integer();
    else
      made.parts.push_back(simpleOperand(function));
    while (is("+") || is("-")) {
      bool isNegative = next().text == "-";
      int64_t offset = integer();
      made.offset += isNegative ? -offset : offset;
    }
    // "[%rd1, {%r1, %r2}]": a tensor's coordinates.
    while (take(","))
      made.parts.push_back(operand(function));
    expect("]");
  } else {
    made = simpleOperand(function);
  }
  if (take("|"))
    made.second.push_back(simpleOperand(function));
  return made;
}

Operand Parser::simpleOperand(const Function &function) {
  Operand made;
  made.negated = take("!");
  bool isNegative = take("-");
  if (peek().kind == Token::Kind::Number) {
    made.kind = Operand::Kind::Literal;
    std::tie(made.bits, made.type) = readNumber(next());
    if (isNegative)
      made.bits = made.type == Type::F64   ? made.bits ^ (1ull << 63)
                  : made.type == Type::F32 ? made.bits ^ (1u << 31)
                                           : -made.bits;
    return made;
  }
  std::string name = word("an operand");
  if (name == "_")
    return made;
  if (std::optional<int> found = registerNamed(name)) {
    made.kind = Operand::Kind::Register;
    made.index = *found;
    return made;
  }
  made.kind = name[0] == '%' ? Operand::Kind::Special : Operand::Kind::Symbol;
  made.symbol = std::move(name);
  // "sym+8" outside of brackets: an address as a value.
  if (made.kind == Operand::Kind::Symbol && take("+"))
    made.offset = integer();
  return made;
}

Module Parser::parse() {
  while (peek().kind != Token::Kind::End) {
    std::string directive = word("a directive");
    if (directive == ".version") {
      module.version = std::string(next().text);
    } else if (directive == ".target") {
      module.target = word("a target");
      while (take(","))
        next();
    } else if (directive == ".address_size") {
      if (integer() != 64)
        throw SyntaxError(peek().line, "addresses are not of 64 bits");
    } else if (directive == ".visible" || directive == ".weak" || directive == ".extern" ||
               directive == ".common") {
      bool isExternal = directive == ".extern";
      if (isExternal && !is(".func") && !is(".entry")) {
        std::string space = word("a space").substr(1);
        module.variables.push_back(variable(space, true));
        expect(";");
      }
    } else if (directive == ".entry" || directive == ".func") {
      module.functions.push_back(function(directive == ".entry"));
    } else if (directive == ".global" || directive == ".const" || directive == ".shared") {
      module.variables.push_back(variable(directive.substr(1), false));
      expect(";");
    } else if (directive == ".file") {
      for (int line = tokens[at - 1].line; peek().line == line && peek().kind != Token::Kind::End;)
        next();
    } else if (directive == ".section") {
      while (!take("}"))
        next();
    } else if (directive[0] == '.') {
      skipDirective();
    } else {
      throw SyntaxError(tokens[at - 1].line, "got '" + directive + "', expected a directive");
    }
  }
  if (module.version.empty() || module.target.empty())
    throw SyntaxError(1, "there is no .version or no .target");
  return std::move(module);
}

Module parseModule(std::string_view text) { return Parser(text, 1, /*hasBodies=*/true).parse(); }

void parseBody(Function &function) {
  Parser(function.text, function.firstLine, /*hasBodies=*/false).body(function);
}

} // namespace softdevice
