//===- TemplateExpressions.cpp - expressions of templates -----------------===//

#include "TemplateParser.h"

#include <cstdlib>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

using Node = TemplateNode;
using Token = TemplateToken;

/// Expressions with commas between them are a list.
TemplateTree TemplateParser::tuple() {
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

TemplateTree TemplateParser::expression() {
  Depth deeper(*this);
  TemplateTree value = disjunction();
  while (takeWord("if")) {
    TemplateTree test = disjunction();
    TemplateTree otherwise = takeWord("else") ? expression() : nullptr;
    value = make(Node::Condition, "", test, value, otherwise);
  }
  return value;
}

TemplateTree TemplateParser::disjunction() {
  TemplateTree left = conjunction();
  while (takeWord("or"))
    left = make(Node::Or, "", left, conjunction());
  return left;
}

TemplateTree TemplateParser::conjunction() {
  TemplateTree left = negation();
  while (takeWord("and"))
    left = make(Node::And, "", left, negation());
  return left;
}

TemplateTree TemplateParser::negation() {
  Depth deeper(*this);
  if (isWord("not")) {
    ++place;
    return make(Node::Not, "", negation());
  }
  return comparison();
}

/// The first operand, then operators (`names`) with theirs.
TemplateTree TemplateParser::comparison() {
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

TemplateTree TemplateParser::sum() {
  TemplateTree left = concatenation();
  while (isSign("+") || isSign("-")) {
    std::string sign = tokens[place++].text;
    left = make(Node::Binary, sign, left, concatenation());
  }
  return left;
}

TemplateTree TemplateParser::concatenation() {
  TemplateTree left = product();
  while (takeSign("~"))
    left = make(Node::Binary, "~", left, product());
  return left;
}

TemplateTree TemplateParser::product() {
  TemplateTree left = power();
  while (isSign("*") || isSign("/") || isSign("//") || isSign("%")) {
    std::string sign = tokens[place++].text;
    left = make(Node::Binary, sign, left, power());
  }
  return left;
}

TemplateTree TemplateParser::power() {
  TemplateTree left = unary(true);
  while (takeSign("**"))
    left = make(Node::Binary, "**", left, unary(true));
  return left;
}

TemplateTree TemplateParser::unary(bool withFilters) {
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

TemplateTree TemplateParser::primary() {
  const Token here = token();
  TemplateTree node;
  switch (here.kind) {
  case Token::Name: {
    static const std::pair<const char *, Value> constants[] = {
        {"true", Value(true)},   {"True", Value(true)},   {"false", Value(false)},
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
    node->value = here.kind == Token::Integer ? Value(int64_t(std::atoll(here.text.c_str())))
                                              : Value(std::atof(here.text.c_str()));
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

void TemplateParser::arguments(Node &call) {
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
TemplateTree TemplateParser::subscript(TemplateTree node) {
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

TemplateTree TemplateParser::postfix(TemplateTree node) {
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
TemplateTree TemplateParser::filter(TemplateTree node) {
  std::string filter = name();
  if (!isTemplateFilter(filter))
    fail("the filter " + filter + " is not supported");
  TemplateTree call = make(Node::Filter, filter, node);
  if (takeSign("("))
    arguments(*call);
  return call;
}

TemplateTree TemplateParser::filters(TemplateTree node) {
  for (;;) {
    if (takeSign("|")) {
      node = filter(std::move(node));
    } else if (takeWord("is")) {
      bool negated = takeWord("not");
      std::string test = name();
      if (!isTemplateTest(test))
        fail("the test " + test + " is not supported");
      TemplateTree call = make(Node::Test, test, node);
      bool hasOperand = token().kind == Token::String || token().kind == Token::Integer ||
                        token().kind == Token::Real || isSign("[") || isSign("{") ||
                        (token().kind == Token::Name && !isWord("else") && !isWord("or") && !isWord("and") &&
                         !isWord("is") && !isWord("if") && !isWord("in") && !isWord("not"));
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
