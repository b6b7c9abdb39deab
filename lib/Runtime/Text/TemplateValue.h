//===- TemplateValue.h - what templates compute with ------------*- C++ -*-===//
//
// Values as Python has them: their truth, equality, order and text.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_TEMPLATEVALUE_H
#define DSOPT_LIB_RUNTIME_TEXT_TEMPLATEVALUE_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace dsopt::runtime::text {

class Value;
using ValueList = std::vector<Value>;
using ValueDict = std::vector<std::pair<std::string, Value>>; ///< in the order of insertion

/// What a call is given.
struct Arguments {
  ValueList positional;
  ValueDict named;
};
using Callable = std::function<Value(const Arguments &)>;

class Value {
public:
  enum Kind { Undefined, None, Bool, Int, Float, String, List, Dict, Namespace, Function };

  Value() = default; ///< undefined
  Value(bool value) : type(Bool), number(value) {}
  Value(int64_t value) : type(Int), number(value) {}
  Value(int value) : type(Int), number(value) {}
  Value(double value) : type(Float), real(value) {}
  Value(std::string value) : type(String), string(std::make_shared<std::string>(std::move(value))) {}
  Value(std::string_view value) : Value(std::string(value)) {}
  Value(const char *value) : Value(std::string(value)) {}
  Value(ValueList value);
  Value(Callable value) : type(Function), function(std::make_shared<Callable>(std::move(value))) {}
  static Value none();
  /// A list that is printed as Python's tuples are, and equals no list.
  static Value tuple(ValueList items);
  /// A text that needs no escapes: what is added to it is escaped, as for HTML.
  static Value safe(std::string text);
  /// One that is missing: `what` says where it was looked for.
  static Value undefined(const std::string &what);
  static Value dict(ValueDict members, Kind kind = Dict);
  static Value from(const nlohmann::ordered_json &json, int depth = 0);
  /// A function that holds a value.
  static Value method(const Value &self, Callable function);

  Kind kind() const { return type; }
  bool is(Kind kind) const { return type == kind; }
  bool isNumber() const { return type == Bool || type == Int || type == Float; }
  bool isInteger() const { return type == Bool || type == Int; }
  int64_t integer() const { return number; }
  double asReal() const { return type == Float ? real : static_cast<double>(number); }
  const std::string &text() const { return *string; }
  const ValueList &list() const { return *items; }
  ValueDict &members() const { return *dictionary; }
  const Callable &callable() const { return *function; }
  const std::string &missing() const { return *string; }
  bool isSafe() const { return isSafeText; }
  bool hasNamespace() const { return type == Namespace || holdsNamespace; }

  bool truth() const;
  bool operator==(const Value &other) const;
  /// Python's <; an Error where there is none.
  bool operator<(const Value &other) const;
  /// As it is printed, and as it is within a list.
  std::string str() const;
  std::string repr() const;
  /// Python's name of the type.
  const char *typeName() const;
  /// A member of a dictionary or namespace, null where there is none.
  const Value *member(const std::string &name) const;
  /// What a loop goes through: items, keys or characters; an Error of anything else.
  ValueList iterate() const;
  /// json.dumps; `indent` below 0: on one line.
  std::string json(int indent, const std::string &comma, const std::string &colon, bool sorts,
                   int depth = 0) const;

private:
  /// Takes what a value inside is.
  void hold(const Value &inside);

  Kind type = Undefined;
  bool isTuple = false, isSafeText = false;
  bool holdsNamespace = false; ///< and could be in itself, if that held it
  int nesting = 0;             ///< values in each other
  int64_t number = 0;
  double real = 0;
  std::shared_ptr<std::string> string;
  std::shared_ptr<ValueList> items;
  std::shared_ptr<ValueDict> dictionary;
  std::shared_ptr<Callable> function;
};

/// Fails the rendering; the line is added where it is known.
[[noreturn]] void failTemplate(const std::string &what);

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_TEMPLATEVALUE_H
