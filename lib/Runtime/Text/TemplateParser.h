//===- TemplateParser.h - words and signs become a tree ---------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_TEMPLATEPARSER_H
#define DSOPT_LIB_RUNTIME_TEXT_TEMPLATEPARSER_H

#include "TemplateSyntax.h"

#include <set>

namespace dsopt::runtime::text {

class TemplateParser {
  using Node = TemplateNode;
  using Token = TemplateToken;

public:
  explicit TemplateParser(const std::string &source) : tokens(scanTemplate(source)) {}
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
    explicit Depth(TemplateParser &parser) : parser(parser) {
      if (++parser.depth > kMostDepth)
        parser.fail("more than " + std::to_string(kMostDepth) + " expressions in each other");
    }
    ~Depth() { --parser.depth; }
    TemplateParser &parser;
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
  [[noreturn]] void fail(const std::string &what) const {
    failTemplate("line " + std::to_string(token().line) + ": " + what);
  }
  std::string here() const {
    static const char *const kinds[] = {"text", "{{", "}}", "{%", "%}"};
    return token().kind == Token::End        ? "the end"
           : token().kind <= Token::EndBlock ? kinds[token().kind]
                                             : "'" + token().text + "'";
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

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_TEMPLATEPARSER_H
