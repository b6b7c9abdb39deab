//===- TemplateValues.cpp - operators, members and methods ----------------===//

#include "TemplateSyntax.h"
#include "TemplateText.h"
#include "Utf8.h"

#include <algorithm>
#include <cmath>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

/// Bytes that one text may have: templates may multiply texts.
static constexpr size_t kMostBytes = size_t(1) << 26;

static void refuseUndefined(const Value &value) {
  if (value.is(Value::Undefined))
    failTemplate(value.missing() + " is undefined");
}

static Value integerOf(int64_t left, int64_t right, const std::string &sign) {
  int64_t result = 0;
  bool overflows = sign == "+"   ? __builtin_add_overflow(left, right, &result)
                   : sign == "-" ? __builtin_sub_overflow(left, right, &result)
                                 : __builtin_mul_overflow(left, right, &result);
  if (overflows)
    failTemplate("an integer is too large");
  return Value(result);
}

static Value numbers(const std::string &sign, const Value &left, const Value &right) {
  bool areIntegers = left.isInteger() && right.isInteger();
  if ((sign == "+" || sign == "-" || sign == "*") && areIntegers)
    return integerOf(left.integer(), right.integer(), sign);
  double a = left.asReal(), b = right.asReal();
  if (sign == "+")
    return Value(a + b);
  if (sign == "-")
    return Value(a - b);
  if (sign == "*")
    return Value(a * b);
  if (sign == "**") {
    double power = std::pow(a, b);
    if (areIntegers && right.integer() >= 0) {
      if (std::fabs(power) > 9e15)
        failTemplate("an integer is too large");
      return Value(int64_t(power));
    }
    return Value(power);
  }
  if (b == 0)
    failTemplate("division by zero");
  if (sign == "/")
    return Value(a / b);
  if (areIntegers) {
    int64_t x = left.integer(), y = right.integer();
    if (y == -1) // the smallest has no opposite
      return sign == "//" ? integerOf(0, x, "-") : Value(0);
    int64_t rest = x % y;
    bool isOff = rest && (rest < 0) != (y < 0);
    return sign == "//" ? Value(x / y - isOff) : Value(rest + (isOff ? y : 0));
  }
  double quotient = std::floor(a / b);
  return Value(sign == "//" ? quotient : a - b * quotient);
}

static Value repeat(const Value &value, int64_t count) {
  count = std::max<int64_t>(count, 0);
  size_t size = value.is(Value::String) ? value.text().size() : value.list().size();
  if (size && static_cast<size_t>(count) > kMostBytes / size)
    failTemplate("a text or list is too large");
  if (value.is(Value::String)) {
    std::string text;
    for (int64_t i = 0; i < count; ++i)
      text += value.text();
    return Value(text);
  }
  ValueList list;
  for (int64_t i = 0; i < count; ++i)
    list.insert(list.end(), value.list().begin(), value.list().end());
  return Value(list);
}

/// A safe text as it is, others with HTML's escapes.
static std::string escaped(const Value &value) {
  if (value.isSafe())
    return value.text();
  std::string result;
  for (char c : value.text()) {
    static const std::pair<char, const char *> escapes[] = {
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
    auto *known =
        std::find_if(std::begin(escapes), std::end(escapes), [&](auto &one) { return one.first == c; });
    if (known != std::end(escapes))
      result += known->second;
    else
      result += c;
  }
  return result;
}

Value text::templateBinary(const std::string &sign, const Value &left, const Value &right) {
  if (sign == "~") {
    std::string both = left.str() + right.str();
    if (both.size() > kMostBytes)
      failTemplate("a text is too large");
    return Value(both);
  }
  refuseUndefined(left);
  refuseUndefined(right);
  if (left.isNumber() && right.isNumber())
    return numbers(sign, left, right);
  if (sign == "+" && left.is(Value::String) && right.is(Value::String)) {
    if (left.text().size() + right.text().size() > kMostBytes)
      failTemplate("a text is too large");
    if (left.isSafe() || right.isSafe())
      return Value::safe(escaped(left) + escaped(right));
    return Value(left.text() + right.text());
  }
  if (sign == "+" && left.is(Value::List) && right.is(Value::List)) {
    ValueList both = left.list();
    if (both.size() + right.list().size() > kMostBytes)
      failTemplate("a list is too large");
    both.insert(both.end(), right.list().begin(), right.list().end());
    return Value(both);
  }
  if (left.isSafe() || right.isSafe())
    failTemplate("'" + sign + "' of a text that is safe is not supported");
  auto isSequence = [](const Value &value) { return value.is(Value::String) || value.is(Value::List); };
  if (sign == "*" && isSequence(left) && right.isInteger())
    return repeat(left, right.integer());
  if (sign == "*" && isSequence(right) && left.isInteger())
    return repeat(right, left.integer());
  failTemplate("'" + sign + "' is not supported between " + left.typeName() + " and " + right.typeName());
}

static bool contains(const Value &whole, const Value &part) {
  if (whole.is(Value::String)) {
    if (!part.is(Value::String))
      failTemplate(std::string("'in' of a text needs a text, got ") + part.typeName());
    return whole.text().find(part.text()) != std::string::npos;
  }
  ValueList all = whole.iterate();
  return std::find(all.begin(), all.end(), part) != all.end();
}

bool text::templateCompare(const std::string &sign, const Value &left, const Value &right) {
  if (sign == "==")
    return left == right;
  if (sign == "!=")
    return !(left == right);
  if (sign == "in")
    return contains(right, left);
  if (sign == "not in")
    return !contains(right, left);
  refuseUndefined(left);
  refuseUndefined(right);
  return sign == "<"    ? left < right
         : sign == ">"  ? right < left
         : sign == "<=" ? !(right < left)
                        : !(left < right);
}

static std::string lookedFor(const Value &value, const std::string &name) {
  return std::string("'") + value.typeName() + "' has no member '" + name + "', which";
}

Value text::templateAttribute(const Value &value, const std::string &name) {
  refuseUndefined(value);
  if (Value method = templateMethod(value, name); !method.is(Value::Undefined))
    return method;
  const Value *member = value.member(name);
  return member ? *member : Value::undefined(lookedFor(value, name));
}

Value text::templateItem(const Value &value, const Value &key) {
  refuseUndefined(value);
  if (key.is(Value::String)) {
    if (const Value *member = value.member(key.text()))
      return *member;
    Value method = templateMethod(value, key.text());
    return method.is(Value::Undefined) ? Value::undefined(lookedFor(value, key.text())) : method;
  }
  if (value.isSafe())
    failTemplate("a character of a text that is safe is not supported");
  if (!key.isInteger() || (!value.is(Value::List) && !value.is(Value::String)))
    return Value::undefined(lookedFor(value, key.str()));
  ValueList items = value.iterate();
  int64_t index = key.integer() < 0 ? key.integer() + static_cast<int64_t>(items.size()) : key.integer();
  return index >= 0 && index < static_cast<int64_t>(items.size())
             ? items[index]
             : Value::undefined(lookedFor(value, key.str()));
}

Value text::templateSlice(const Value &value, const Value &first, const Value &last, const Value &step) {
  refuseUndefined(value);
  if ((!value.is(Value::List) && !value.is(Value::String)) || value.isSafe())
    failTemplate(value.isSafe() ? "a slice of a text that is safe is not supported"
                                : std::string(value.typeName()) + " cannot be sliced");
  for (const Value *bound : {&first, &last, &step})
    if (!bound->is(Value::None) && !bound->isInteger())
      failTemplate(std::string("a slice needs integers, got ") + bound->typeName());
  ValueList items = value.iterate();
  auto size = static_cast<int64_t>(items.size());
  int64_t by = step.is(Value::None) ? 1 : step.integer();
  if (by == 0)
    failTemplate("a slice's step is 0");
  int64_t low = by < 0 ? -1 : 0, high = by < 0 ? size - 1 : size;
  auto bound = [&](const Value &given, int64_t otherwise) {
    if (given.is(Value::None))
      return otherwise;
    int64_t index = given.integer() < 0 ? given.integer() + size : given.integer();
    return std::clamp(index, low, high);
  };
  int64_t from = bound(first, by < 0 ? high : low), to = bound(last, by < 0 ? low : high);
  ValueList result;
  for (int64_t i = from; by < 0 ? i > to : i < to;) {
    result.push_back(items[i]);
    if (by > size || by < -size)
      break;
    i += by;
  }
  if (value.is(Value::List))
    return Value(result);
  std::string text;
  for (const Value &one : result)
    text += one.text();
  return Value(text);
}

using Method = std::function<Value(const Value &, const Given &)>;

static int64_t countOf(std::string_view text, std::string_view part) {
  int64_t count = 0;
  for (size_t at = 0; !part.empty() && (at = text.find(part, at)) != text.npos; at += part.size())
    ++count;
  return count;
}

static const std::map<std::string, Method> &stringMethods() {
  static const std::map<std::string, Method> methods = {
      {"strip",
       [](const Value &self, const Given &given) {
         return Value(strip(self.text(), given.textOrNone(0, "chars"), true, true));
       }},
      {"lstrip",
       [](const Value &self, const Given &given) {
         return Value(strip(self.text(), given.textOrNone(0, "chars"), true, false));
       }},
      {"rstrip",
       [](const Value &self, const Given &given) {
         return Value(strip(self.text(), given.textOrNone(0, "chars"), false, true));
       }},
      {"upper", [](const Value &self, const Given &) { return Value(toUpper(self.text())); }},
      {"lower", [](const Value &self, const Given &) { return Value(toLower(self.text())); }},
      {"capitalize", [](const Value &self, const Given &) { return Value(capitalize(self.text())); }},
      {"title", [](const Value &self, const Given &) { return Value(titleOf(self.text())); }},
      {"split",
       [](const Value &self, const Given &given) {
         return Value(split(self.text(), given.textOrNone(0, "sep"), given.integer(1, "maxsplit", -1)));
       }},
      {"splitlines", [](const Value &self, const Given &) { return Value(splitLines(self.text())); }},
      {"replace",
       [](const Value &self, const Given &given) {
         return Value(replaced(self.text(), given.text(0, "old"), given.text(1, "new"),
                               given.integer(2, "count", -1)));
       }},
      {"join",
       [](const Value &self, const Given &given) {
         std::string out;
         bool isFirst = true;
         for (const Value &one : given.get(0, "iterable").iterate()) {
           if (!one.is(Value::String))
             failTemplate(std::string("join needs texts, got ") + one.typeName());
           out += (isFirst ? "" : self.text()) + one.text();
           isFirst = false;
         }
         return Value(out);
       }},
      {"startswith",
       [](const Value &self, const Given &given) {
         return Value(hasEnd(self.text(), given.get(0, "prefix"), false));
       }},
      {"endswith",
       [](const Value &self, const Given &given) {
         return Value(hasEnd(self.text(), given.get(0, "suffix"), true));
       }},
      {"removeprefix",
       [](const Value &self, const Given &given) {
         std::string prefix = given.text(0, "prefix");
         return Value(self.text().rfind(prefix, 0) == 0 ? self.text().substr(prefix.size()) : self.text());
       }},
      {"removesuffix",
       [](const Value &self, const Given &given) {
         std::string suffix = given.text(0, "suffix");
         bool has = !suffix.empty() && hasEnd(self.text(), Value(suffix), true);
         return Value(has ? self.text().substr(0, self.text().size() - suffix.size()) : self.text());
       }},
      {"count", [](const Value &self,
                   const Given &given) { return Value(countOf(self.text(), given.text(0, "sub"))); }},
      {"find",
       [](const Value &self, const Given &given) {
         size_t at = self.text().find(given.text(0, "sub"));
         if (at == std::string::npos)
           return Value(-1);
         return Value(int64_t(Value(self.text().substr(0, at)).iterate().size()));
       }},
      {"isdigit",
       [](const Value &self, const Given &) {
         const std::string &text = self.text();
         return Value(!text.empty() && text.find_first_not_of("0123456789") == text.npos);
       }},
  };
  return methods;
}

static Value pairsOf(const Value &value, bool names, bool values) {
  ValueList result;
  for (auto &[name, member] : value.members())
    if (names && values)
      result.push_back(Value::tuple({Value(name), member}));
    else
      result.push_back(names ? Value(name) : member);
  return Value(result);
}

static const std::map<std::string, Method> &dictMethods() {
  static const std::map<std::string, Method> methods = {
      {"items", [](const Value &self, const Given &) { return pairsOf(self, true, true); }},
      {"keys", [](const Value &self, const Given &) { return pairsOf(self, true, false); }},
      {"values", [](const Value &self, const Given &) { return pairsOf(self, false, true); }},
      {"copy", [](const Value &self, const Given &) { return Value::dict(self.members()); }},
      {"get",
       [](const Value &self, const Given &given) {
         const Value &key = given.get(0, "key");
         const Value *member = key.is(Value::String) ? self.member(key.text()) : nullptr;
         return member ? *member : given.has(1, "default") ? given.get(1, "default") : Value::none();
       }},
  };
  return methods;
}

static const std::map<std::string, Method> &listMethods() {
  static const std::map<std::string, Method> methods = {
      {"count",
       [](const Value &self, const Given &given) {
         return Value(int64_t(std::count(self.list().begin(), self.list().end(), given.get(0, "value"))));
       }},
      {"index",
       [](const Value &self, const Given &given) {
         auto found = std::find(self.list().begin(), self.list().end(), given.get(0, "value"));
         if (found == self.list().end())
           failTemplate(given.get(0, "value").repr() + " is not in the list");
         return Value(int64_t(found - self.list().begin()));
       }},
  };
  return methods;
}

/// What Python's types have, and templates here have not.
static bool isUnsupportedMethod(const Value &value, const std::string &name) {
  static const std::string strings =
      " casefold center encode expandtabs format format_map index isalnum isalpha isascii isdecimal "
      "isidentifier islower isnumeric isprintable isspace istitle isupper ljust maketrans partition "
      "rfind rindex rjust rpartition rsplit swapcase translate zfill ";
  static const std::string dicts = " clear fromkeys pop popitem setdefault update ";
  static const std::string lists = " append clear copy extend insert pop remove reverse sort ";
  const std::string *names = value.is(Value::String) ? &strings
                             : value.is(Value::Dict) ? &dicts
                             : value.is(Value::List) ? &lists
                                                     : nullptr;
  return names && names->find(" " + name + " ") != names->npos;
}

Value text::templateMethod(const Value &value, const std::string &name) {
  const std::map<std::string, Method> *methods = value.is(Value::String) ? &stringMethods()
                                                 : value.is(Value::Dict) ? &dictMethods()
                                                 : value.is(Value::List) ? &listMethods()
                                                                         : nullptr;
  if (!methods)
    return Value();
  if (value.isSafe())
    failTemplate("the method " + name + " of a text that is safe is not supported");
  if (isUnsupportedMethod(value, name) && !value.member(name))
    failTemplate(std::string("the method ") + value.typeName() + "." + name + " is not supported");
  auto found = methods->find(name);
  if (found == methods->end())
    return Value();
  return Value::method(value, [method = &found->second, value, name](const Arguments &arguments) {
    return (*method)(value, Given(arguments, name));
  });
}
