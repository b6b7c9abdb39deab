//===- TemplateParse.cpp - templates as trees -----------------------------===//

#include "TemplateSyntax.h"
#include "dsopt/Runtime/Error.h"

#include <cstdlib>
#include <set>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

namespace {
using Node = TemplateNode;
using Token = TemplateToken;

class Parser {
public:
  explicit Parser(const std::string &source) : tokens(scanTemplate(source)) {}
  TemplateTree run() {
    TemplateTree tree = block({});
    if (token().kind != Token::End)
      fail("{% " + token().text + " %} ends nothing");
    return tree;
  }

private:
  /// Expressions and blocks in each other: a template may not use up the stack.
  static constexpr int kMostDepth = 150;
  struct Depth {
    explicit Depth(Parser &parser) : parser(parser) {
      if (++parser.depth > kMostDepth)
        parser.fail("more than " + std::to_string(kMostDepth) + " expressions in each other");
    }
    ~Depth() { --parser.depth; }
    Parser &parser;
  };

  const Token &token() const { return tokens[place]; }
  const Token &ahead() const { return tokens[std::min(place + 1, tokens.size() - 1)]; }
  bool is(Token::Kind kind, const char *text) const { return token().kind == kind && token().text == text; }
  bool isSign(const char *text) const { return is(Token::Sign, text); }
  bool isWord(const char *text) const { return is(Token::Name, text); }
  bool take(Token::Kind kind, const char *text) {
    bool taken = is(kind, text);
    place += taken;
    return taken;
  }
  bool takeSign(const char *text) { return take(Token::Sign, text); }
  bool takeWord(const char *text) { return take(Token::Name, text); }
  [[noreturn]] void fail(const std::string &what) const { failTemplate("line " + std::to_string(token().line) + ": " + what); }
  std::string here() const {
    static const char *const kinds[] = {"text", "{{", "}}", "{%", "%}"};
    return token().kind == Token::End ? "the end" : token().kind <= Token::EndBlock ? kinds[token().kind] : "'" + token().text + "'";
  }
  void expectSign(const char *text) {
    if (!takeSign(text))
      fail(std::string("expected '") + text + "', got " + here());
  }
  void expectEnd() {
    if (token().kind != Token::EndBlock)
      fail("expected %}, got " + here());
    ++place;
  }
  std::string name() {
    if (token().kind != Token::Name)
      fail("expected a name, got " + here());
    return tokens[place++].text;
  }
  TemplateTree make(Node::Kind kind, std::string name = "") const {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->line = token().line;
    node->name = std::move(name);
    return node;
  }
  template <typename... Parts> TemplateTree make(Node::Kind kind, std::string name, Parts &&...parts) const {
    TemplateTree node = make(kind, std::move(name));
    (node->parts.push_back(std::move(parts)), ...);
    return node;
  }

  /// Statements up to a block of one of these words, which is where the parser stands then (at its word).
  TemplateTree block(const std::set<std::string> &ends);
  TemplateTree statement();
  TemplateTree forLoop();
  TemplateTree condition();
  TemplateTree assignment();
  TemplateTree macro();
  std::vector<std::string> targets();
  void endWord(const char *word) {
    if (!takeWord(word))
      fail(std::string("expected {% ") + word + " %}, got " + here());
    expectEnd();
  }

  TemplateTree expression();
  TemplateTree disjunction();
  TemplateTree conjunction();
  TemplateTree negation();
  TemplateTree comparison();
  TemplateTree sum();
  TemplateTree concatenation();
  TemplateTree product();
  TemplateTree power();
  TemplateTree unary(bool filters);
  TemplateTree primary();
  TemplateTree postfix(TemplateTree node);
  TemplateTree filters(TemplateTree node);
  TemplateTree filter(TemplateTree node);
  TemplateTree tuple();
  void arguments(Node &call);
  TemplateTree subscript(TemplateTree node);

  std::vector<Token> tokens;
  size_t place = 0;
  int depth = 0, loops = 0;
};
} // namespace

TemplateTree Parser::block(const std::set<std::string> &ends) {
  Depth deeper(*this);
  TemplateTree result = make(Node::Block);
  for (;;) {
    switch (token().kind) {
    case Token::End:
      if (!ends.empty()) {
        std::string all;
        for (const std::string &end : ends)
          all += (all.empty() ? "{% " : ", {% ") + end + " %}";
        fail("expected " + all + ", got the end");
      }
      return result;
    case Token::Text: {
      TemplateTree text = make(Node::Text);
      text->value = Value(token().text);
      result->parts.push_back(std::move(text));
      ++place;
      break;
    }
    case Token::BeginOutput: {
      ++place;
      TemplateTree output = make(Node::Output, "", tuple());
      if (token().kind != Token::EndOutput)
        fail("expected }}, got " + here());
      ++place;
      result->parts.push_back(std::move(output));
      break;
    }
    default:
      ++place;
      if (token().kind == Token::Name && (ends.count(token().text) || (ends.empty() && token().text.rfind("end", 0) == 0)))
        return result;
      result->parts.push_back(statement());
    }
  }
}

TemplateTree Parser::statement() {
  std::string word = token().kind == Token::Name ? token().text : "";
  if (takeWord("for"))
    return forLoop();
  if (takeWord("if"))
    return condition();
  if (takeWord("set"))
    return assignment();
  if (takeWord("macro"))
    return macro();
  if (takeWord("break") || takeWord("continue")) {
    if (!loops)
      fail(word + " outside of a loop");
    TemplateTree node = make(word == "break" ? Node::Break : Node::Continue);
    expectEnd();
    return node;
  }
  // Marks what an assistant says, for training: it is text all the same.
  if (takeWord("generation")) {
    expectEnd();
    TemplateTree body = block({"endgeneration"});
    endWord("endgeneration");
    return body;
  }
  if (takeWord("filter")) {
    TemplateTree node = make(Node::FilterBlock);
    TemplateTree call = filter(make(Node::Literal));
    while (isSign("|")) {
      ++place;
      call = filter(std::move(call));
    }
    expectEnd();
    node->parts.push_back(block({"endfilter"}));
    node->parts.push_back(std::move(call));
    endWord("endfilter");
    return node;
  }
  if (takeWord("with")) {
    TemplateTree node = make(Node::With);
    while (token().kind == Token::Name) {
      node->names.push_back(name());
      expectSign("=");
      node->parts.push_back(expression());
      if (!takeSign(","))
        break;
    }
    expectEnd();
    node->parts.push_back(block({"endwith"}));
    endWord("endwith");
    return node;
  }
  fail(word.empty() ? "expected a statement, got " + here() : "the statement " + word + " is not supported");
}

std::vector<std::string> Parser::targets() {
  bool isTuple = takeSign("(");
  std::vector<std::string> names = {name()};
  while (takeSign(","))
    names.push_back(name());
  if (isTuple)
    expectSign(")");
  return names;
}

/// names; what is gone through, condition or none, body, else or none
TemplateTree Parser::forLoop() {
  TemplateTree node = make(Node::For);
  node->names = targets();
  if (!takeWord("in"))
    fail("expected 'in', got " + here());
  // An if behind is the loop's.
  TemplateTree list = disjunction();
  if (isSign(",")) {
    TemplateTree all = make(Node::ListOf, "tuple", list);
    while (takeSign(","))
      all->parts.push_back(disjunction());
    list = std::move(all);
  }
  TemplateTree only = takeWord("if") ? expression() : nullptr;
  if (isWord("recursive"))
    fail("recursive loops are not supported");
  expectEnd();
  ++loops;
  TemplateTree body = block({"endfor", "else"});
  --loops;
  TemplateTree otherwise;
  if (takeWord("else")) {
    expectEnd();
    otherwise = block({"endfor"});
  }
  endWord("endfor");
  node->parts.push_back(std::move(list));
  node->parts.push_back(std::move(only));
  node->parts.push_back(std::move(body));
  node->parts.push_back(std::move(otherwise));
  return node;
}

/// Conditions with their blocks, last a block alone.
TemplateTree Parser::condition() {
  TemplateTree node = make(Node::If);
  node->parts.push_back(tuple());
  expectEnd();
  for (;;) {
    node->parts.push_back(block({"endif", "elif", "else"}));
    if (takeWord("elif")) {
      node->parts.push_back(tuple());
      expectEnd();
      continue;
    }
    if (takeWord("else")) {
      expectEnd();
      node->parts.push_back(block({"endif"}));
    }
    endWord("endif");
    return node;
  }
}

/// names (a name and a member of a namespace have it in `name`); the value, or the block and its filters
TemplateTree Parser::assignment() {
  TemplateTree node = make(Node::Set);
  if (ahead().kind == Token::Sign && ahead().text == ".") {
    node->names.push_back(name());
    ++place;
    node->name = name();
  } else {
    node->names = targets();
  }
  if (takeSign("=")) {
    node->parts.push_back(tuple());
    expectEnd();
    return node;
  }
  node->kind = Node::SetBlock;
  TemplateTree call = make(Node::Literal);
  while (takeSign("|"))
    call = filter(std::move(call));
  expectEnd();
  node->parts.push_back(block({"endset"}));
  node->parts.push_back(std::move(call));
  endWord("endset");
  return node;
}

/// names; body, then the last names' defaults
TemplateTree Parser::macro() {
  TemplateTree node = make(Node::Macro, name());
  std::vector<TemplateTree> defaults;
  expectSign("(");
  while (!takeSign(")")) {
    if (!node->names.empty())
      expectSign(",");
    node->names.push_back(name());
    if (takeSign("="))
      defaults.push_back(expression());
    else if (!defaults.empty())
      fail("a parameter without a default behind one that has it");
  }
  expectEnd();
  int outer = loops;
  loops = 0;
  node->parts.push_back(block({"endmacro"}));
  loops = outer;
  endWord("endmacro");
  for (TemplateTree &value : defaults)
    node->parts.push_back(std::move(value));
  return node;
}

/// Expressions with commas between them are a list.
TemplateTree Parser::tuple() {
  TemplateTree first = expression();
  if (!isSign(","))
    return first;
  TemplateTree all = make(Node::ListOf, "tuple", first);
  while (takeSign(",")) {
    if (token().kind == Token::EndBlock || token().kind == Token::EndOutput || isSign(")"))
      break;
    all->parts.push_back(expression());
  }
  return all;
}

TemplateTree Parser::expression() {
  Depth deeper(*this);
  TemplateTree value = disjunction();
  while (takeWord("if")) {
    TemplateTree test = disjunction();
    TemplateTree otherwise = takeWord("else") ? expression() : nullptr;
    value = make(Node::Condition, "", test, value, otherwise);
  }
  return value;
}

TemplateTree Parser::disjunction() {
  TemplateTree left = conjunction();
  while (takeWord("or"))
    left = make(Node::Or, "", left, conjunction());
  return left;
}

TemplateTree Parser::conjunction() {
  TemplateTree left = negation();
  while (takeWord("and"))
    left = make(Node::And, "", left, negation());
  return left;
}

TemplateTree Parser::negation() {
  Depth deeper(*this);
  if (isWord("not")) {
    ++place;
    return make(Node::Not, "", negation());
  }
  return comparison();
}

/// The first operand, then operators (`names`) with theirs.
TemplateTree Parser::comparison() {
  TemplateTree left = sum();
  TemplateTree node;
  for (;;) {
    std::string sign;
    for (const char *one : {"==", "!=", "<=", ">=", "<", ">"})
      if (sign.empty() && takeSign(one))
        sign = one;
    if (sign.empty() && takeWord("in"))
      sign = "in";
    if (sign.empty() && isWord("not") && ahead().kind == Token::Name && ahead().text == "in") {
      place += 2;
      sign = "not in";
    }
    if (sign.empty())
      return node ? std::move(node) : std::move(left);
    if (!node)
      node = make(Node::Compare, "", left);
    node->names.push_back(sign);
    node->parts.push_back(sum());
  }
}

TemplateTree Parser::sum() {
  TemplateTree left = concatenation();
  while (isSign("+") || isSign("-")) {
    std::string sign = tokens[place++].text;
    left = make(Node::Binary, sign, left, concatenation());
  }
  return left;
}

TemplateTree Parser::concatenation() {
  TemplateTree left = product();
  while (takeSign("~"))
    left = make(Node::Binary, "~", left, product());
  return left;
}

TemplateTree Parser::product() {
  TemplateTree left = power();
  while (isSign("*") || isSign("/") || isSign("//") || isSign("%")) {
    std::string sign = tokens[place++].text;
    left = make(Node::Binary, sign, left, power());
  }
  return left;
}

TemplateTree Parser::power() {
  TemplateTree left = unary(true);
  while (takeSign("**"))
    left = make(Node::Binary, "**", left, unary(true));
  return left;
}

TemplateTree Parser::unary(bool withFilters) {
  Depth deeper(*this);
  TemplateTree node;
  if (isSign("-") || isSign("+")) {
    std::string sign = tokens[place++].text;
    node = make(Node::Unary, sign, unary(false));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return withFilters ? filters(std::move(node)) : std::move(node);
}

TemplateTree Parser::primary() {
  const Token here = token();
  TemplateTree node;
  switch (here.kind) {
  case Token::Name: {
    static const std::pair<const char *, Value> constants[] = {
        {"true", Value(true)}, {"True", Value(true)},   {"false", Value(false)},
        {"False", Value(false)}, {"none", Value::none()}, {"None", Value::none()}};
    for (auto &[word, value] : constants)
      if (here.text == word) {
        node = make(Node::Literal);
        node->value = value;
      }
    for (const char *word : {"and", "or", "not", "in", "is", "if", "else"})
      if (here.text == word)
        fail("expected an expression, got '" + here.text + "'");
    if (!node)
      node = make(Node::Variable, here.text);
    ++place;
    return node;
  }
  case Token::String:
    node = make(Node::Literal);
    for (std::string all;; ++place) {
      if (token().kind != Token::String) {
        node->value = Value(all);
        return node;
      }
      all += token().text;
    }
  case Token::Integer:
  case Token::Real:
    if (here.text.size() > 18 && here.kind == Token::Integer)
      fail("the number " + here.text + " is too large");
    node = make(Node::Literal);
    node->value = here.kind == Token::Integer ? Value(int64_t(std::atoll(here.text.c_str()))) : Value(std::atof(here.text.c_str()));
    ++place;
    return node;
  default:
    break;
  }
  if (takeSign("(")) {
    if (takeSign(")"))
      return make(Node::ListOf, "tuple");
    node = tuple();
    expectSign(")");
    return node;
  }
  if (takeSign("[")) {
    node = make(Node::ListOf);
    while (!takeSign("]")) {
      if (!node->parts.empty()) {
        expectSign(",");
        if (takeSign("]"))
          break;
      }
      node->parts.push_back(expression());
    }
    return node;
  }
  if (takeSign("{")) {
    node = make(Node::DictOf);
    while (!takeSign("}")) {
      if (!node->parts.empty()) {
        expectSign(",");
        if (takeSign("}"))
          break;
      }
      node->parts.push_back(expression());
      expectSign(":");
      node->parts.push_back(expression());
    }
    return node;
  }
  fail("expected an expression, got " + this->here());
}

void Parser::arguments(Node &call) {
  bool isFirst = true;
  while (!takeSign(")")) {
    if (!isFirst) {
      expectSign(",");
      if (takeSign(")"))
        break;
    }
    isFirst = false;
    if (isSign("*") || isSign("**"))
      fail("the argument " + token().text + " is not supported");
    if (token().kind == Token::Name && ahead().kind == Token::Sign && ahead().text == "=") {
      std::string name = tokens[place].text;
      place += 2;
      call.parts.push_back(make(Node::Keyword, name, expression()));
    } else {
      call.parts.push_back(expression());
    }
  }
}

/// Behind an opening bracket.
TemplateTree Parser::subscript(TemplateTree node) {
  TemplateTree parts[3];
  int count = 0;
  bool isSlice = false;
  for (;;) {
    if (!isSign(":") && !isSign("]"))
      parts[count] = expression();
    if (takeSign("]"))
      break;
    if (!isSign(":") || count == 2)
      fail("expected ']', got " + here());
    ++place;
    isSlice = true;
    ++count;
  }
  if (!isSlice && !parts[0])
    fail("expected an expression, got ']'");
  if (!isSlice)
    return make(Node::Item, "", node, parts[0]);
  return make(Node::Slice, "", node, parts[0], parts[1], parts[2]);
}

TemplateTree Parser::postfix(TemplateTree node) {
  for (;;) {
    if (takeSign(".")) {
      if (token().kind == Token::Integer) {
        TemplateTree key = make(Node::Literal);
        key->value = Value(int64_t(std::atoll(token().text.c_str())));
        ++place;
        node = make(Node::Item, "", node, key);
      } else {
        std::string member = name();
        node = make(Node::Attribute, member, node);
      }
    } else if (takeSign("[")) {
      node = subscript(std::move(node));
    } else if (takeSign("(")) {
      TemplateTree call = make(Node::Call, "", node);
      arguments(*call);
      node = std::move(call);
    } else {
      return node;
    }
  }
}

/// Behind |.
TemplateTree Parser::filter(TemplateTree node) {
  std::string filter = name();
  if (!isTemplateFilter(filter))
    fail("the filter " + filter + " is not supported");
  TemplateTree call = make(Node::Filter, filter, node);
  if (takeSign("("))
    arguments(*call);
  return call;
}

TemplateTree Parser::filters(TemplateTree node) {
  for (;;) {
    if (takeSign("|")) {
      node = filter(std::move(node));
    } else if (takeWord("is")) {
      bool negated = takeWord("not");
      std::string test = name();
      if (!isTemplateTest(test))
        fail("the test " + test + " is not supported");
      TemplateTree call = make(Node::Test, test, node);
      bool hasOperand = token().kind == Token::String || token().kind == Token::Integer || token().kind == Token::Real ||
                        isSign("[") || isSign("{") ||
                        (token().kind == Token::Name && !isWord("else") && !isWord("or") && !isWord("and") && !isWord("is") &&
                         !isWord("if") && !isWord("in") && !isWord("not"));
      if (takeSign("("))
        arguments(*call);
      else if (hasOperand)
        call->parts.push_back(postfix(primary()));
      node = negated ? make(Node::Not, "", call) : std::move(call);
    } else if (isSign("(")) {
      ++place;
      TemplateTree call = make(Node::Call, "", node);
      arguments(*call);
      node = std::move(call);
    } else {
      return node;
    }
  }
}

TemplateTree text::parseTemplate(const std::string &source) { return Parser(source).run(); }
