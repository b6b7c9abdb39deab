//===- TemplateParse.cpp - statements of templates ------------------------===//

#include "TemplateParser.h"

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

using Node = TemplateNode;
using Token = TemplateToken;

TemplateTree TemplateParser::block(const std::set<std::string> &ends) {
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
      if (token().kind == Token::Name &&
          (ends.count(token().text) || (ends.empty() && token().text.rfind("end", 0) == 0)))
        return result;
      result->parts.push_back(statement());
    }
  }
}

TemplateTree TemplateParser::statement() {
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

std::vector<std::string> TemplateParser::targets() {
  bool isTuple = takeSign("(");
  std::vector<std::string> names = {name()};
  while (takeSign(","))
    names.push_back(name());
  if (isTuple)
    expectSign(")");
  return names;
}

/// names; what is gone through, condition or none, body, else or none
TemplateTree TemplateParser::forLoop() {
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
TemplateTree TemplateParser::condition() {
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
TemplateTree TemplateParser::assignment() {
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
TemplateTree TemplateParser::macro() {
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

TemplateTree text::parseTemplate(const std::string &source) { return TemplateParser(source).run(); }
