//===- TemplateValue.cpp - what templates compute with --------------------===//

#include "TemplateValue.h"
#include "Utf8.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

void text::failTemplate(const std::string &what) { throw Error(StatusInput, what); }

/// What has no bound would use up the stack where it is printed or goes away.
static constexpr int kMostNesting = 100;

void Value::hold(const Value &inside) {
  nesting = std::max(nesting, inside.nesting + 1);
  holdsNamespace |= inside.hasNamespace();
  if (nesting > kMostNesting)
    failTemplate("more than " + std::to_string(kMostNesting) + " values in each other");
}

Value::Value(ValueList value) : type(List), items(std::make_shared<ValueList>(std::move(value))) {
  for (const Value &one : *items)
    hold(one);
}

Value Value::method(const Value &self, Callable function) {
  Value value(std::move(function));
  value.hold(self);
  return value;
}

Value Value::none() {
  Value value;
  value.type = None;
  return value;
}

Value Value::tuple(ValueList items) {
  Value value(std::move(items));
  value.isTuple = true;
  return value;
}

Value Value::safe(std::string text) {
  Value value(std::move(text));
  value.isSafeText = true;
  return value;
}

Value Value::undefined(const std::string &what) {
  Value value;
  value.string = std::make_shared<std::string>(what);
  return value;
}

Value Value::dict(ValueDict members, Kind kind) {
  Value value;
  value.type = kind;
  value.dictionary = std::make_shared<ValueDict>(std::move(members));
  for (auto &[name, member] : *value.dictionary)
    value.hold(member);
  return value;
}

Value Value::from(const nlohmann::ordered_json &json, int depth) {
  if (depth > kMostNesting)
    failTemplate("more than " + std::to_string(kMostNesting) + " values in each other");
  if (json.is_null())
    return none();
  if (json.is_boolean())
    return Value(json.get<bool>());
  if (json.is_number_integer())
    return Value(json.get<int64_t>());
  if (json.is_number())
    return Value(json.get<double>());
  if (json.is_string())
    return Value(json.get<std::string>());
  if (json.is_array()) {
    ValueList items;
    for (const auto &one : json)
      items.push_back(from(one, depth + 1));
    return Value(std::move(items));
  }
  ValueDict members;
  for (const auto &[name, value] : json.items())
    members.emplace_back(name, from(value, depth + 1));
  return dict(std::move(members));
}

const char *Value::typeName() const {
  static const char *const names[] = {"undefined", "None", "bool", "int",       "float",
                                      "str",       "list", "dict", "namespace", "function"};
  return names[type];
}

bool Value::truth() const {
  switch (type) {
  case Undefined:
  case None:
    return false;
  case Bool:
  case Int:
    return number != 0;
  case Float:
    return real != 0;
  case String:
    return !string->empty();
  case List:
    return !items->empty();
  case Dict:
    return !dictionary->empty();
  default:
    return true;
  }
}

bool Value::operator==(const Value &other) const {
  if (isNumber() && other.isNumber())
    return type == Float || other.type == Float ? asReal() == other.asReal() : number == other.number;
  if (type != other.type)
    return false;
  switch (type) {
  case String:
    return *string == *other.string;
  case List:
    return isTuple == other.isTuple && *items == *other.items;
  case Dict: {
    if (dictionary->size() != other.dictionary->size())
      return false;
    for (auto &[name, value] : *dictionary)
      if (const Value *same = other.member(name); !same || !(*same == value))
        return false;
    return true;
  }
  case Namespace:
    return dictionary == other.dictionary;
  case Function:
    return function == other.function;
  default:
    return true;
  }
}

bool Value::operator<(const Value &other) const {
  if (isNumber() && other.isNumber())
    return type == Float || other.type == Float ? asReal() < other.asReal() : number < other.number;
  if (type == String && other.type == String)
    return *string < *other.string;
  if (type == List && other.type == List)
    return std::lexicographical_compare(items->begin(), items->end(), other.items->begin(),
                                        other.items->end());
  failTemplate(std::string("'<' is not supported between ") + typeName() + " and " + other.typeName());
}

/// The shortest digits that read back, as Python has them.
static std::string realText(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*e", digits - 1, value);
    if (std::strtod(text, nullptr) == value)
      break;
  }
  std::string digits = text;
  size_t e = digits.find('e');
  int exponent = std::atoi(digits.c_str() + e + 1);
  std::string mantissa = digits.substr(0, e);
  if (exponent < -4 || exponent >= 16) {
    char tail[8];
    std::snprintf(tail, sizeof tail, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    return mantissa + tail;
  }
  int digitsBehind = static_cast<int>(std::count_if(mantissa.begin(), mantissa.end(),
                                                    [](char c) { return c >= '0' && c <= '9'; })) -
                     1;
  std::snprintf(text, sizeof text, "%.*f", std::max(1, digitsBehind - exponent), value);
  std::string result = text;
  // One digit behind the point at least, and none that says nothing.
  while (result.size() > 2 && result.back() == '0' && result[result.size() - 2] != '.')
    result.pop_back();
  return result;
}

std::string Value::str() const {
  switch (type) {
  case Undefined:
    return "";
  case String:
    return *string;
  default:
    return repr();
  }
}

/// A string as Python shows it in a list.
static std::string pythonQuoted(const std::string &text) {
  char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (char c : text) {
    char code[8];
    if (c == quote || c == '\\')
      out += std::string("\\") + c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(c));
      out += code;
    } else
      out += c;
  }
  return out + quote;
}

std::string Value::repr() const {
  switch (type) {
  case Undefined:
    return "Undefined";
  case None:
    return "None";
  case Bool:
    return number ? "True" : "False";
  case Int:
    return std::to_string(number);
  case Float:
    return realText(real);
  case String:
    return isSafeText ? "Markup(" + pythonQuoted(*string) + ")" : pythonQuoted(*string);
  case List: {
    std::string out = isTuple ? "(" : "[";
    for (const Value &item : *items)
      out += (&item == items->data() ? "" : ", ") + item.repr();
    return out + (!isTuple ? "]" : items->size() == 1 ? ",)" : ")");
  }
  case Dict:
  case Namespace: {
    std::string out = type == Dict ? "{" : "<Namespace {";
    for (auto &[name, value] : *dictionary)
      out += (out.back() == '{' ? "" : ", ") + pythonQuoted(name) + ": " + value.repr();
    return out + (type == Dict ? "}" : "}>");
  }
  case Function:
    failTemplate("a function has no text");
  }
  return "";
}

const Value *Value::member(const std::string &name) const {
  if (type == Dict || type == Namespace)
    for (auto &[known, value] : *dictionary)
      if (known == name)
        return &value;
  return nullptr;
}

ValueList Value::iterate() const {
  ValueList result;
  switch (type) {
  case Undefined:
    return result;
  case List:
    return *items;
  case Dict:
    for (auto &[name, value] : *dictionary)
      result.emplace_back(name);
    return result;
  case String:
    for (size_t at = 0; at < string->size();) {
      size_t begin = at;
      nextCharacter(*string, at);
      result.emplace_back(string->substr(begin, at - begin));
    }
    return result;
  default:
    failTemplate(std::string(typeName()) + " is not iterable");
  }
}

std::string Value::json(int indent, const std::string &comma, const std::string &colon, bool sorts,
                        int depth) const {
  auto line = [&](int depth) {
    return indent < 0 ? "" : "\n" + std::string(static_cast<size_t>(indent) * depth, ' ');
  };
  switch (type) {
  case None:
    return "null";
  case Bool:
    return number ? "true" : "false";
  case Float:
    return std::isnan(real) ? "NaN" : std::isinf(real) ? real < 0 ? "-Infinity" : "Infinity" : realText(real);
  case String: {
    std::string out = "\"";
    for (char c : *string) {
      static const std::pair<char, const char *> shorts[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"},
                                                             {'\r', "\\r"}, {'\t', "\\t"},  {'\b', "\\b"},
                                                             {'\f', "\\f"}};
      auto *known =
          std::find_if(std::begin(shorts), std::end(shorts), [&](auto &one) { return one.first == c; });
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned char>(c));
      if (known != std::end(shorts))
        out += known->second;
      else if (static_cast<unsigned char>(c) < 0x20)
        out += code;
      else
        out += c;
    }
    return out + '"';
  }
  case List: {
    if (items->empty())
      return "[]";
    std::string out = "[";
    for (const Value &item : *items)
      out += (&item == items->data() ? "" : comma) + line(depth + 1) +
             item.json(indent, comma, colon, sorts, depth + 1);
    return out + line(depth) + "]";
  }
  case Dict: {
    if (dictionary->empty())
      return "{}";
    ValueDict members = *dictionary;
    if (sorts)
      std::sort(members.begin(), members.end(), [](auto &a, auto &b) { return a.first < b.first; });
    std::string out = "{";
    for (auto &[name, value] : members)
      out += (out.size() == 1 ? "" : comma) + line(depth + 1) + Value(name).json(-1, comma, colon, false) +
             colon + value.json(indent, comma, colon, sorts, depth + 1);
    return out + line(depth) + "}";
  }
  case Int:
    return std::to_string(number);
  default:
    failTemplate(std::string("tojson got ") + typeName() + ", which JSON has not");
  }
}
