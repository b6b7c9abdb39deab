//===- TemplateFilters.cpp - filters and tests of templates ---------------===//

#include "TemplateSyntax.h"
#include "TemplateText.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

using FilterOf = std::function<Value(const Value &, const Given &, const Arguments &)>;
using TestOf = std::function<bool(const Value &, const Given &)>;

/// A member by a path with dots; numbers are indices.
static Value byPath(Value value, const std::string &path) {
  for (size_t begin = 0, end; begin <= path.size(); begin = end + 1) {
    end = std::min(path.find('.', begin), path.size());
    std::string name = path.substr(begin, end - begin);
    bool isIndex = !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == name.npos;
    value = templateItem(value, isIndex ? Value(int64_t(std::atoll(name.c_str()))) : Value(name));
  }
  return value;
}

static Value byAttribute(const Value &value, const Value &attribute) {
  return attribute.is(Value::String) ? byPath(value, attribute.text()) : templateItem(value, attribute);
}

/// What is left of arguments from `first` on.
static Arguments rest(const Arguments &arguments, size_t first) {
  Arguments result;
  result.named = arguments.named;
  for (size_t i = first; i < arguments.positional.size(); ++i)
    result.positional.push_back(arguments.positional[i]);
  return result;
}

static Value mapOf(const Value &value, const Given &given, const Arguments &arguments) {
  ValueList result;
  Arguments named;
  named.named = arguments.named;
  Given names(named, "map");
  if (names.has(0, "attribute")) {
    const Value &attribute = names.get(0, "attribute");
    for (const Value &one : value.iterate()) {
      Value found = byAttribute(one, attribute);
      result.push_back(found.is(Value::Undefined) ? names.get(1, "default", found) : found);
    }
    return Value(result);
  }
  std::string name = given.text(0, "filter");
  if (!isTemplateFilter(name))
    failTemplate("the filter " + name + " is not supported");
  for (const Value &one : value.iterate())
    result.push_back(templateFilter(name, one, rest(arguments, 1)));
  return Value(result);
}

/// select, reject and those that look at an attribute.
static FilterOf chooser(bool hasAttribute, bool keeps) {
  return [=](const Value &value, const Given &given, const Arguments &arguments) {
    size_t first = hasAttribute;
    bool hasTest = arguments.positional.size() > first;
    std::string test = hasTest ? given.text(first, "test") : "";
    if (hasTest && !isTemplateTest(test))
      failTemplate("the test " + test + " is not supported");
    ValueList result;
    for (const Value &one : value.iterate()) {
      Value what = hasAttribute ? byAttribute(one, given.get(0, "attribute")) : one;
      bool is = hasTest ? templateTest(test, what, rest(arguments, first + 1)) : what.truth();
      if (is == keeps)
        result.push_back(one);
    }
    return Value(result);
  };
}

/// What values are ordered by.
static Value keyOf(const Value &value, const Given &given, size_t attributePlace, bool caseSensitive) {
  Value attribute = given.get(attributePlace, "attribute", Value::none());
  Value key = attribute.is(Value::None) ? value : byAttribute(value, attribute);
  return key.is(Value::String) && !caseSensitive ? Value(toLower(key.text())) : key;
}

/// Sorts, and leaves what is equal in its order.
template <typename Less> static void sortStably(ValueList &items, Less &&less) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return less(items[a], items[b]) || (a < b && !less(items[b], items[a]));
  });
  ValueList result;
  for (size_t i : order)
    result.push_back(items[i]);
  items = std::move(result);
}

static Value sorted(const Value &value, const Given &given, const Arguments &) {
  ValueList items = value.iterate();
  bool reverse = given.flag(0, "reverse", false), exact = given.flag(1, "case_sensitive", false);
  sortStably(items, [&](const Value &a, const Value &b) {
    Value left = keyOf(a, given, 2, exact), right = keyOf(b, given, 2, exact);
    return reverse ? right < left : left < right;
  });
  return Value(items);
}

static Value sortedMembers(const Value &value, const Given &given, const Arguments &) {
  if (!value.is(Value::Dict))
    failTemplate(std::string("dictsort got ") + value.typeName());
  bool exact = given.flag(0, "case_sensitive", false), reverse = given.flag(2, "reverse", false);
  size_t place = given.get(1, "by", Value("key")) == Value("value");
  ValueList pairs;
  for (auto &[name, member] : value.members())
    pairs.push_back(Value::tuple({Value(name), member}));
  sortStably(pairs, [&](const Value &a, const Value &b) {
    Value left = a.list()[place], right = b.list()[place];
    for (Value *one : {&left, &right})
      if (one->is(Value::String) && !exact)
        *one = Value(toLower(one->text()));
    return reverse ? right < left : left < right;
  });
  return Value(pairs);
}

static FilterOf extreme(bool isLargest) {
  return [=](const Value &value, const Given &given, const Arguments &) {
    Value best, bestKey;
    bool isFirst = true, exact = given.flag(0, "case_sensitive", false);
    for (const Value &one : value.iterate()) {
      Value key = keyOf(one, given, 1, exact);
      if (isFirst || (isLargest ? bestKey < key : key < bestKey)) {
        best = one;
        bestKey = key;
      }
      isFirst = false;
    }
    return isFirst ? Value::undefined("the largest or smallest of nothing") : best;
  };
}

static Value unique(const Value &value, const Given &given, const Arguments &) {
  ValueList result, seen;
  bool exact = given.flag(0, "case_sensitive", false);
  for (const Value &one : value.iterate()) {
    Value key = keyOf(one, given, 1, exact);
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      continue;
    seen.push_back(key);
    result.push_back(one);
  }
  return Value(result);
}

static Value indented(const Value &value, const Given &given, const Arguments &) {
  Value width = given.get(0, "width", Value(4));
  std::string indent = width.is(Value::String)
                           ? width.text()
                           : std::string(std::clamp<int64_t>(width.integer(), 0, 1000), ' ');
  bool first = given.flag(1, "first", false), blank = given.flag(2, "blank", false);
  std::string text = value.str(), out;
  size_t number = 0;
  for (size_t begin = 0, end; begin <= text.size(); begin = end + 1, ++number) {
    end = std::min(text.find('\n', begin), text.size());
    bool isBlank = begin == end;
    if (number)
      out += '\n';
    if (number ? !isBlank || blank : first)
      out += indent;
    out.append(text, begin, end - begin);
  }
  return Value(out);
}

static Value joined(const Value &value, const Given &given, const Arguments &) {
  std::string delimiter = given.has(0, "d") ? given.get(0, "d").str() : "", out;
  Value attribute = given.get(1, "attribute", Value::none());
  bool isFirst = true;
  for (const Value &one : value.iterate()) {
    out += (isFirst ? "" : delimiter) + (attribute.is(Value::None) ? one : byAttribute(one, attribute)).str();
    isFirst = false;
  }
  return Value(out);
}

static Value jsonOf(const Value &value, const Given &given, const Arguments &) {
  int64_t indent = given.integer(0, "indent", -1);
  if (indent > 100)
    failTemplate("tojson got an indent of " + std::to_string(indent));
  std::string comma = indent < 0 ? ", " : ",", colon = ": ";
  if (Value separators = given.get(1, "separators", Value::none());
      separators.is(Value::List) && separators.list().size() == 2) {
    comma = separators.list()[0].str();
    colon = separators.list()[1].str();
  }
  if (given.flag(3, "ensure_ascii", false))
    failTemplate("tojson with ensure_ascii is not supported");
  return Value(value.json(static_cast<int>(indent), comma, colon, given.flag(2, "sort_keys", false)));
}

static Value integerOf(const Value &value, const Given &given, const Arguments &) {
  Value otherwise = given.get(0, "default", Value(0));
  if (given.integer(1, "base", 10) != 10)
    failTemplate("int in another base than 10 is not supported");
  if (value.is(Value::Float))
    return std::fabs(value.asReal()) < 9e18 ? Value(int64_t(value.asReal())) : otherwise;
  if (value.isInteger())
    return Value(value.integer());
  if (!value.is(Value::String))
    return otherwise;
  std::string text = strip(value.text(), std::nullopt, true, true);
  char *end;
  long long number = std::strtoll(text.c_str(), &end, 10);
  if (!text.empty() && !*end && text.size() < 19)
    return Value(int64_t(number));
  double real = std::strtod(text.c_str(), &end);
  return !text.empty() && !*end && std::fabs(real) < 9e18 ? Value(int64_t(real)) : otherwise;
}

static Value realOf(const Value &value, const Given &given, const Arguments &) {
  if (value.isNumber())
    return Value(value.asReal());
  if (value.is(Value::String)) {
    std::string text = strip(value.text(), std::nullopt, true, true);
    char *end;
    double real = std::strtod(text.c_str(), &end);
    if (!text.empty() && !*end)
      return Value(real);
  }
  return given.get(0, "default", Value(0.0));
}

static Value rounded(const Value &value, const Given &given, const Arguments &) {
  if (!value.isNumber())
    failTemplate(std::string("round got ") + value.typeName());
  double scale = std::pow(10.0, static_cast<double>(given.integer(0, "precision", 0)));
  std::string method = given.has(1, "method") ? given.text(1, "method") : "common";
  double scaled = value.asReal() * scale;
  double result = method == "ceil"    ? std::ceil(scaled)
                  : method == "floor" ? std::floor(scaled)
                                      : std::nearbyint(scaled);
  return Value(result / scale);
}

static Value lengthOfValue(const Value &value) {
  if (value.is(Value::None) || value.isNumber() || value.is(Value::Function))
    failTemplate(std::string(value.typeName()) + " has no length");
  return Value(int64_t(value.iterate().size()));
}

static Value reversed(const Value &value, const Given &, const Arguments &) {
  ValueList items = value.iterate();
  std::reverse(items.begin(), items.end());
  if (!value.is(Value::String))
    return Value(items);
  std::string text;
  for (const Value &one : items)
    text += one.text();
  return Value(text);
}

static Value sumOf(const Value &value, const Given &given, const Arguments &) {
  Value attribute = given.get(0, "attribute", Value::none()), total = given.get(1, "start", Value(0));
  for (const Value &one : value.iterate())
    total = templateBinary("+", total, attribute.is(Value::None) ? one : byAttribute(one, attribute));
  return total;
}

static Value itemsOf(const Value &value, const Given &, const Arguments &) {
  if (value.is(Value::Undefined))
    return Value(ValueList());
  if (!value.is(Value::Dict))
    failTemplate(std::string("items got ") + value.typeName() + ", expected a mapping");
  ValueList pairs;
  for (auto &[name, member] : value.members())
    pairs.push_back(Value::tuple({Value(name), member}));
  return Value(pairs);
}

static const std::map<std::string, FilterOf> &filters() {
  auto of = [](std::function<Value(const Value &, const Given &)> function) -> FilterOf {
    return [=](const Value &value, const Given &given, const Arguments &) { return function(value, given); };
  };
  auto end = [](bool isLast) -> FilterOf {
    return [=](const Value &value, const Given &, const Arguments &) {
      ValueList items = value.iterate();
      return items.empty() ? Value::undefined("an end of nothing") : isLast ? items.back() : items.front();
    };
  };
  auto length = of([](const Value &value, const Given &) { return lengthOfValue(value); });
  auto otherwise = of([](const Value &value, const Given &given) {
    bool isOut = value.is(Value::Undefined) || (given.flag(1, "boolean", false) && !value.truth());
    return isOut ? given.get(0, "default_value", Value("")) : value;
  });
  static const std::map<std::string, FilterOf> all = {
      {"abs", of([](const Value &value, const Given &) {
         if (!value.isNumber())
           failTemplate(std::string("abs got ") + value.typeName());
         return value.is(Value::Float) ? Value(std::fabs(value.asReal()))
                : value.integer() < 0  ? templateBinary("-", Value(0), value)
                                       : Value(value.integer());
       })},
      {"attr", of([](const Value &value, const Given &given) {
         return templateAttribute(value, given.text(0, "name"));
       })},
      {"capitalize", of([](const Value &value, const Given &) { return Value(capitalize(value.str())); })},
      {"count", length},
      {"d", otherwise},
      {"default", otherwise},
      {"dictsort", sortedMembers},
      {"first", end(false)},
      {"float", realOf},
      {"indent", indented},
      {"int", integerOf},
      {"items", itemsOf},
      {"join", joined},
      {"last", end(true)},
      {"length", length},
      {"list", of([](const Value &value, const Given &) { return Value(value.iterate()); })},
      {"lower", of([](const Value &value, const Given &) { return Value(toLower(value.str())); })},
      {"map", mapOf},
      {"max", extreme(true)},
      {"min", extreme(false)},
      {"reject", chooser(false, false)},
      {"rejectattr", chooser(true, false)},
      {"replace", of([](const Value &value, const Given &given) {
         return Value(replaced(value.str(), given.get(0, "old").str(), given.get(1, "new").str(),
                               given.integer(2, "count", -1)));
       })},
      {"reverse", reversed},
      {"round", rounded},
      {"safe", of([](const Value &value, const Given &) { return Value::safe(value.str()); })},
      {"select", chooser(false, true)},
      {"selectattr", chooser(true, true)},
      {"sort", sorted},
      {"string", of([](const Value &value, const Given &) { return Value(value.str()); })},
      {"sum", sumOf},
      {"title", of([](const Value &value, const Given &) { return Value(titleOf(value.str())); })},
      {"tojson", jsonOf},
      {"trim", of([](const Value &value, const Given &given) {
         return Value(strip(value.str(), given.textOrNone(0, "chars"), true, true));
       })},
      {"unique", unique},
      {"upper", of([](const Value &value, const Given &) { return Value(toUpper(value.str())); })},
  };
  return all;
}

static bool isEven(const Value &value) {
  if (!value.isInteger())
    failTemplate(std::string("odd and even need an integer, got ") + value.typeName());
  return value.integer() % 2 == 0;
}

static const std::map<std::string, TestOf> &tests() {
  auto kind = [](std::vector<Value::Kind> kinds) -> TestOf {
    return [=](const Value &value, const Given &) {
      return std::find(kinds.begin(), kinds.end(), value.kind()) != kinds.end();
    };
  };
  auto compare = [](const char *sign) -> TestOf {
    return [=](const Value &value, const Given &given) {
      return templateCompare(sign, value, given.get(0, "other"));
    };
  };
  static const std::map<std::string, TestOf> all = {
      {"boolean", kind({Value::Bool})},
      {"callable", kind({Value::Function})},
      {"defined", [](const Value &value, const Given &) { return !value.is(Value::Undefined); }},
      {"divisibleby",
       [](const Value &value, const Given &given) {
         return templateBinary("%", value, given.get(0, "num")) == Value(0);
       }},
      {"eq", compare("==")},
      {"equalto", compare("==")},
      {"even", [](const Value &value, const Given &) { return isEven(value); }},
      {"false", [](const Value &value, const Given &) { return value.is(Value::Bool) && !value.truth(); }},
      {"float", kind({Value::Float})},
      {"ge", compare(">=")},
      {"greaterthan", compare(">")},
      {"gt", compare(">")},
      {"in", compare("in")},
      {"integer", kind({Value::Int})},
      {"iterable", kind({Value::Undefined, Value::String, Value::List, Value::Dict})},
      {"le", compare("<=")},
      {"lessthan", compare("<")},
      {"lower",
       [](const Value &value, const Given &) {
         return value.str() == toLower(value.str()) && value.str() != toUpper(value.str());
       }},
      {"lt", compare("<")},
      {"mapping", kind({Value::Dict})},
      {"ne", compare("!=")},
      {"none", kind({Value::None})},
      {"number", kind({Value::Bool, Value::Int, Value::Float})},
      {"odd", [](const Value &value, const Given &) { return !isEven(value); }},
      {"sameas",
       [](const Value &value, const Given &given) {
         return value.kind() == given.get(0, "other").kind() && value == given.get(0, "other");
       }},
      {"sequence", kind({Value::Undefined, Value::String, Value::List, Value::Dict})},
      {"string", kind({Value::String})},
      {"true", [](const Value &value, const Given &) { return value.is(Value::Bool) && value.truth(); }},
      {"undefined", kind({Value::Undefined})},
      {"upper",
       [](const Value &value, const Given &) {
         return value.str() == toUpper(value.str()) && value.str() != toLower(value.str());
       }},
  };
  return all;
}

bool text::isTemplateFilter(const std::string &name) { return filters().count(name); }
bool text::isTemplateTest(const std::string &name) { return tests().count(name); }

Value text::templateFilter(const std::string &name, const Value &value, const Arguments &arguments) {
  // Those that keep what is safe, or make it no text.
  static const std::set<std::string> safely = {"count", "d",      "default", "float",
                                               "int",   "length", "safe",    "tojson"};
  if (value.isSafe() && !safely.count(name))
    failTemplate("the filter " + name + " of a text that is safe is not supported");
  return filters().at(name)(value, Given(arguments, name), arguments);
}

bool text::templateTest(const std::string &name, const Value &value, const Arguments &arguments) {
  return tests().at(name)(value, Given(arguments, name));
}
