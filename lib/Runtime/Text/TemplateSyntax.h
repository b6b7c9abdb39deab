//===- TemplateSyntax.h - templates as trees --------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_TEMPLATESYNTAX_H
#define DSOPT_LIB_RUNTIME_TEXT_TEMPLATESYNTAX_H

#include "TemplateValue.h"

namespace dsopt::runtime::text {

struct TemplateToken {
  enum Kind { Text, BeginOutput, EndOutput, BeginBlock, EndBlock, Name, Integer, Real, String, Sign, End };
  Kind kind;
  std::string text;
  int line;
};

/// White space goes as trim_blocks, lstrip_blocks and the signs - and + have it.
std::vector<TemplateToken> scanTemplate(const std::string &source);

struct TemplateNode {
  enum Kind {
    // Expressions.
    Literal,
    Variable,
    Attribute,
    Item,
    Slice,
    Call,
    Filter,
    Test,
    Unary,
    Binary,
    Compare,
    And,
    Or,
    Not,
    Condition,
    ListOf,
    DictOf,
    Keyword,
    // Statements.
    Output,
    Text,
    Block,
    For,
    If,
    Set,
    SetBlock,
    Macro,
    FilterBlock,
    With,
    Break,
    Continue
  };
  Kind kind;
  int line;
  std::string name; ///< of variables, members, operators, filters
  Value value;      ///< of a literal
  std::vector<std::unique_ptr<TemplateNode>> parts;
  std::vector<std::string> names; ///< that a loop or macro binds
};
using TemplateTree = std::unique_ptr<TemplateNode>;

/// An Error of status 1 with the line says what is wrong or no part of what is supported.
TemplateTree parseTemplate(const std::string &source);

/// Whether there are a filter and a test of a name.
bool isTemplateFilter(const std::string &name);
bool isTemplateTest(const std::string &name);

/// Calls a filter or a test. `map`, `select` and their like call others by name.
Value templateFilter(const std::string &name, const Value &value, const Arguments &arguments);
bool templateTest(const std::string &name, const Value &value, const Arguments &arguments);

/// A method of a string or dictionary, undefined where it has none of the name.
Value templateMethod(const Value &value, const std::string &name);

/// value.name and value[key].
Value templateAttribute(const Value &value, const std::string &name);
Value templateItem(const Value &value, const Value &key);
/// value[first:last:step], none where they are left out.
Value templateSlice(const Value &value, const Value &first, const Value &last, const Value &step);
/// + - * / // % ** ~ and comparisons.
Value templateBinary(const std::string &sign, const Value &left, const Value &right);
bool templateCompare(const std::string &sign, const Value &left, const Value &right);

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_TEMPLATESYNTAX_H
