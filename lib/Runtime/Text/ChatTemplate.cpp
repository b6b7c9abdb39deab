//===- ChatTemplate.cpp - conversations as text ---------------------------===//

#include "dsopt/Runtime/ChatTemplate.h"
#include "TemplateSyntax.h"
#include "TemplateText.h"
#include "Utf8.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

struct ChatTemplate::Impl {
  std::string name;
  TemplateTree tree;
};

namespace {
using Node = TemplateNode;

struct Scope {
  std::map<std::string, Value> names;
  std::shared_ptr<Scope> outer;
};
using ScopePtr = std::shared_ptr<Scope>;

enum class Flow { On, Break, Continue };

/// One rendering.
class Renderer {
public:
  Renderer(std::time_t now) : now(now) {}
  std::string run(const Node &tree, ValueDict names);
  int line = 0;

private:
  /// A template may call itself and loop: both end.
  static constexpr int kMostDepth = 200, kMostCalls = 40;
  static constexpr int64_t kMostSteps = 5'000'000;
  static constexpr size_t kMostBytes = size_t(1) << 26;
  static constexpr int64_t kMostRange = 100'000;

  void step() {
    if (++steps > kMostSteps)
      failTemplate("it does not end within " + std::to_string(kMostSteps) + " steps");
  }
  void write(const std::string &text) {
    *out += text;
    if (out->size() > kMostBytes)
      failTemplate("its text is larger than " + std::to_string(kMostBytes) + " bytes");
  }
  /// What a block writes.
  std::string capture(const Node &block, const ScopePtr &scope);
  Flow execute(const Node &node, const ScopePtr &scope);
  Flow loop(const Node &node, const ScopePtr &scope);
  void bind(const Node &node, const Value &value, Scope &scope);
  Value macro(const Node &node, const ScopePtr &scope);

  Value evaluate(const Node &node, const ScopePtr &scope);
  Value call(const Node &node, const ScopePtr &scope);
  Arguments arguments(const Node &node, const ScopePtr &scope);
  Value lookUp(const std::string &name, const ScopePtr &scope) const;
  Value optional(const TemplateTree &node, const ScopePtr &scope) {
    return node ? evaluate(*node, scope) : Value::none();
  }
  void addGlobals(Scope &scope);

  std::string *out = nullptr;
  std::time_t now;
  int64_t steps = 0;
  int depth = 0, calls = 0;
};
} // namespace

Value Renderer::lookUp(const std::string &name, const ScopePtr &scope) const {
  for (const Scope *one = scope.get(); one; one = one->outer.get())
    if (auto found = one->names.find(name); found != one->names.end())
      return found->second;
  return Value::undefined("'" + name + "'");
}

void Renderer::addGlobals(Scope &scope) {
  auto add = [&](const char *name, std::function<Value(const Given &, const Arguments &)> function) {
    scope.names[name] = Value(Callable([=, of = std::string(name)](const Arguments &arguments) {
      return function(Given(arguments, of), arguments);
    }));
  };
  add("raise_exception",
      [](const Given &given, const Arguments &) -> Value { failTemplate(given.get(0, "message").str()); });
  add("strftime_now", [this](const Given &given, const Arguments &) {
    char text[256];
    std::tm parts{};
    localtime_r(&now, &parts);
    std::string format = given.text(0, "format");
    size_t size = format.empty() ? 0 : std::strftime(text, sizeof text, format.c_str(), &parts);
    return Value(std::string(text, size));
  });
  add("range", [](const Given &given, const Arguments &arguments) {
    bool isOne = arguments.positional.size() < 2;
    int64_t first = isOne ? 0 : given.integer(0, "start", 0), last = given.integer(isOne ? 0 : 1, "stop", 0),
            by = given.integer(2, "step", 1);
    if (by == 0)
      failTemplate("range got a step of 0");
    ValueList items;
    for (int64_t i = first; by > 0 ? i < last : i > last; i += by) {
      if (static_cast<int64_t>(items.size()) == kMostRange)
        failTemplate("range is larger than " + std::to_string(kMostRange));
      items.emplace_back(i);
    }
    return Value(items);
  });
  add("dict", [](const Given &, const Arguments &arguments) {
    if (!arguments.positional.empty())
      failTemplate("dict with arguments without names is not supported");
    return Value::dict(arguments.named);
  });
  add("namespace", [](const Given &, const Arguments &arguments) {
    ValueDict members = arguments.named;
    for (const Value &one : arguments.positional) {
      if (!one.is(Value::Dict))
        failTemplate(std::string("namespace got ") + one.typeName());
      members.insert(members.end(), one.members().begin(), one.members().end());
    }
    return Value::dict(members, Value::Namespace);
  });
}

std::string Renderer::run(const Node &tree, ValueDict names) {
  auto globals = std::make_shared<Scope>(), scope = std::make_shared<Scope>();
  addGlobals(*globals);
  for (auto &[name, value] : names)
    globals->names[name] = value;
  scope->outer = globals;
  std::string text;
  out = &text;
  execute(tree, scope);
  // Macros hold the scope that holds them.
  scope->names.clear();
  return text;
}

std::string Renderer::capture(const Node &block, const ScopePtr &scope) {
  std::string text, *outer = out;
  out = &text;
  execute(block, scope);
  out = outer;
  return text;
}

void Renderer::bind(const Node &node, const Value &value, Scope &scope) {
  if (node.names.size() == 1) {
    scope.names[node.names[0]] = value;
    return;
  }
  ValueList items = value.iterate();
  if (items.size() != node.names.size())
    failTemplate(std::to_string(items.size()) + " values for " + std::to_string(node.names.size()) +
                 " names");
  for (size_t i = 0; i < items.size(); ++i)
    scope.names[node.names[i]] = items[i];
}

Flow Renderer::loop(const Node &node, const ScopePtr &scope) {
  ValueList items;
  Value list = evaluate(*node.parts[0], scope);
  for (const Value &one : list.iterate()) {
    if (node.parts[1]) {
      auto inside = std::make_shared<Scope>();
      inside->outer = scope;
      bind(node, one, *inside);
      if (!evaluate(*node.parts[1], inside).truth())
        continue;
    }
    items.push_back(one);
  }
  if (items.empty())
    return node.parts[3] ? execute(*node.parts[3], scope) : Flow::On;
  auto count = static_cast<int64_t>(items.size());
  auto changed = std::make_shared<std::optional<Value>>();
  Value outerLoop = lookUp("loop", scope);
  for (int64_t i = 0; i < count; ++i) {
    step();
    auto inside = std::make_shared<Scope>();
    inside->outer = scope;
    inside->names["loop"] =
        Value::dict({{"index", Value(i + 1)},
                     {"index0", Value(i)},
                     {"revindex", Value(count - i)},
                     {"revindex0", Value(count - i - 1)},
                     {"first", Value(i == 0)},
                     {"last", Value(i + 1 == count)},
                     {"length", Value(count)},
                     {"depth", Value(1)},
                     {"depth0", Value(0)},
                     {"previtem", i ? items[i - 1] : Value::undefined("loop.previtem")},
                     {"nextitem", i + 1 < count ? items[i + 1] : Value::undefined("loop.nextitem")},
                     {"cycle", Value(Callable([i](const Arguments &arguments) {
                        if (arguments.positional.empty())
                          failTemplate("cycle lacks its arguments");
                        return arguments.positional[i % arguments.positional.size()];
                      }))},
                     {"changed", Value(Callable([changed](const Arguments &arguments) {
                        Value now{ValueList(arguments.positional)};
                        bool is = !*changed || !(**changed == now);
                        *changed = now;
                        return Value(is);
                      }))}},
                    Value::Namespace);
    bind(node, items[i], *inside);
    Flow flow = execute(*node.parts[2], inside);
    // Macros of the loop's hold it.
    inside->names.clear();
    if (flow == Flow::Break)
      break;
  }
  return Flow::On;
}

Value Renderer::macro(const Node &node, const ScopePtr &scope) {
  const Node *code = &node;
  std::weak_ptr<Scope> weak = scope;
  return Value(Callable([this, code, weak](const Arguments &given) {
    ScopePtr outer = weak.lock();
    if (!outer)
      failTemplate("the macro " + code->name + " is called outside of where it is");
    auto inside = std::make_shared<Scope>();
    inside->outer = outer;
    size_t count = code->names.size(), defaults = code->parts.size() - 1;
    if (given.positional.size() > count)
      failTemplate("the macro " + code->name + " takes " + std::to_string(count) + " arguments, got " +
                   std::to_string(given.positional.size()));
    for (size_t i = 0; i < count; ++i) {
      if (i < given.positional.size())
        inside->names[code->names[i]] = given.positional[i];
      else
        inside->names[code->names[i]] = i + defaults < count
                                            ? Value::undefined("'" + code->names[i] + "'")
                                            : evaluate(*code->parts[1 + i + defaults - count], inside);
    }
    for (auto &[name, value] : given.named) {
      auto place = std::find(code->names.begin(), code->names.end(), name);
      if (place == code->names.end())
        failTemplate("the macro " + code->name + " has no parameter " + name);
      inside->names[name] = value;
    }
    if (++calls > kMostCalls)
      failTemplate("more than " + std::to_string(kMostCalls) + " macros in each other");
    Value text(capture(*code->parts[0], inside));
    --calls;
    return text;
  }));
}

Flow Renderer::execute(const Node &node, const ScopePtr &scope) {
  step();
  line = node.line;
  switch (node.kind) {
  case Node::Block:
    for (const TemplateTree &part : node.parts)
      if (Flow flow = execute(*part, scope); flow != Flow::On)
        return flow;
    return Flow::On;
  case Node::Text:
    write(node.value.text());
    return Flow::On;
  case Node::Output:
    write(evaluate(*node.parts[0], scope).str());
    return Flow::On;
  case Node::For:
    return loop(node, scope);
  case Node::If:
    for (size_t i = 0; i + 1 < node.parts.size(); i += 2)
      if (evaluate(*node.parts[i], scope).truth())
        return execute(*node.parts[i + 1], scope);
    return node.parts.size() % 2 ? execute(*node.parts.back(), scope) : Flow::On;
  case Node::Set:
  case Node::SetBlock: {
    Value value;
    if (node.kind == Node::Set) {
      value = evaluate(*node.parts[0], scope);
    } else {
      auto inside = std::make_shared<Scope>();
      inside->outer = scope;
      inside->names[" block"] = Value(capture(*node.parts[0], inside));
      value = evaluate(*node.parts[1], inside);
    }
    if (node.name.empty()) {
      bind(node, value, *scope);
      return Flow::On;
    }
    Value space = lookUp(node.names[0], scope);
    if (!space.is(Value::Namespace))
      failTemplate("cannot set " + node.names[0] + "." + node.name + ": it is no namespace");
    if (value.hasNamespace())
      failTemplate("a namespace in a namespace is not supported");
    ValueDict &members = space.members();
    auto found =
        std::find_if(members.begin(), members.end(), [&](auto &one) { return one.first == node.name; });
    if (found == members.end())
      members.emplace_back(node.name, value);
    else
      found->second = value;
    return Flow::On;
  }
  case Node::FilterBlock: {
    auto inside = std::make_shared<Scope>();
    inside->outer = scope;
    inside->names[" block"] = Value(capture(*node.parts[0], inside));
    write(evaluate(*node.parts[1], inside).str());
    return Flow::On;
  }
  case Node::Macro:
    scope->names[node.name] = macro(node, scope);
    return Flow::On;
  case Node::With: {
    auto inside = std::make_shared<Scope>();
    inside->outer = scope;
    for (size_t i = 0; i < node.names.size(); ++i)
      inside->names[node.names[i]] = evaluate(*node.parts[i], scope);
    return execute(*node.parts.back(), inside);
  }
  case Node::Break:
    return Flow::Break;
  case Node::Continue:
    return Flow::Continue;
  default:
    return Flow::On;
  }
}

Arguments Renderer::arguments(const Node &node, const ScopePtr &scope) {
  Arguments result;
  for (size_t i = 1; i < node.parts.size(); ++i)
    if (node.parts[i]->kind == Node::Keyword)
      result.named.emplace_back(node.parts[i]->name, evaluate(*node.parts[i]->parts[0], scope));
    else
      result.positional.push_back(evaluate(*node.parts[i], scope));
  return result;
}

Value Renderer::call(const Node &node, const ScopePtr &scope) {
  Value function = evaluate(*node.parts[0], scope);
  Arguments given = arguments(node, scope);
  line = node.line;
  if (function.is(Value::Undefined))
    failTemplate(function.missing() + " is undefined");
  if (!function.is(Value::Function))
    failTemplate(std::string(function.typeName()) + " cannot be called");
  return function.callable()(given);
}

Value Renderer::evaluate(const Node &node, const ScopePtr &scope) {
  step();
  if (depth > kMostDepth)
    failTemplate("more than " + std::to_string(kMostDepth) + " expressions in each other");
  struct Depth {
    explicit Depth(int &depth) : depth(depth) { ++depth; }
    ~Depth() { --depth; }
    int &depth;
  } deeper(depth);
  auto part = [&](size_t i) { return evaluate(*node.parts[i], scope); };
  switch (node.kind) {
  case Node::Literal:
    // What a block's filters begin with is the block's text.
    return node.value.is(Value::Undefined) ? lookUp(" block", scope) : node.value;
  case Node::Variable:
    return lookUp(node.name, scope);
  case Node::Attribute: {
    Value value = part(0);
    line = node.line;
    return templateAttribute(value, node.name);
  }
  case Node::Item: {
    Value value = part(0);
    return templateItem(value, part(1));
  }
  case Node::Slice:
    return templateSlice(part(0), optional(node.parts[1], scope), optional(node.parts[2], scope),
                         optional(node.parts[3], scope));
  case Node::Call:
    return call(node, scope);
  case Node::Filter: {
    Value value = part(0);
    return templateFilter(node.name, value, arguments(node, scope));
  }
  case Node::Test: {
    Value value = part(0);
    return Value(templateTest(node.name, value, arguments(node, scope)));
  }
  case Node::Unary: {
    Value value = part(0);
    if (!value.isNumber())
      failTemplate("'" + node.name + "' is not supported for " + value.typeName());
    return templateBinary(node.name, Value(0), value);
  }
  case Node::Binary: {
    Value left = part(0);
    return templateBinary(node.name, left, part(1));
  }
  case Node::Compare: {
    Value left = part(0);
    for (size_t i = 0; i < node.names.size(); ++i) {
      Value right = part(i + 1);
      if (!templateCompare(node.names[i], left, right))
        return Value(false);
      left = right;
    }
    return Value(true);
  }
  case Node::And: {
    Value left = part(0);
    return left.truth() ? part(1) : left;
  }
  case Node::Or: {
    Value left = part(0);
    return left.truth() ? left : part(1);
  }
  case Node::Not:
    return Value(!part(0).truth());
  case Node::Condition:
    return part(0).truth() ? part(1) : node.parts[2] ? part(2) : Value::undefined("a condition without else");
  case Node::ListOf: {
    ValueList items;
    for (size_t i = 0; i < node.parts.size(); ++i)
      items.push_back(part(i));
    return node.name == "tuple" ? Value::tuple(std::move(items)) : Value(std::move(items));
  }
  case Node::DictOf: {
    ValueDict members;
    for (size_t i = 0; i < node.parts.size(); i += 2) {
      Value key = part(i);
      if (!key.is(Value::String))
        failTemplate(std::string("a key that is ") + key.typeName() + " is not supported, texts are");
      members.emplace_back(key.text(), part(i + 1));
    }
    return Value::dict(members);
  }
  default:
    failTemplate("not an expression");
  }
}

ChatTemplate::ChatTemplate(const std::string &source, std::string name) : impl(std::make_unique<Impl>()) {
  impl->name = std::move(name);
  checkUtf8(source, impl->name);
  try {
    impl->tree = parseTemplate(source);
  } catch (const Error &error) {
    throw Error(error.status, impl->name + ": " + error.what());
  }
}

ChatTemplate::~ChatTemplate() = default;

static Value parseArgument(const std::string &json, const char *what) {
  try {
    return Value::from(nlohmann::ordered_json::parse(json));
  } catch (const nlohmann::json::exception &) {
    throw Error(StatusInput, std::string(what) + " got " + json.substr(0, 60) + ", expected JSON");
  }
}

std::string ChatTemplate::render(const std::string &messages, const Settings &settings) const {
  ValueDict names;
  // As transformers has them: these are none unless they are given.
  names.emplace_back("documents", Value::none());
  names.emplace_back("tools",
                     settings.tools.empty() ? Value::none() : parseArgument(settings.tools, "tools"));
  names.emplace_back("add_generation_prompt", Value(settings.addGenerationPrompt));
  for (auto &[role, token] : settings.tokens)
    names.emplace_back(role, Value(token));
  names.emplace_back("messages", parseArgument(messages, "messages"));
  if (!settings.variables.empty()) {
    Value given = parseArgument(settings.variables, "variables");
    if (!given.is(Value::Dict))
      throw Error(StatusInput, "variables got " + settings.variables.substr(0, 60) + ", expected an object");
    names.insert(names.end(), given.members().begin(), given.members().end());
  }
  Renderer renderer(settings.now ? settings.now : std::time(nullptr));
  try {
    return renderer.run(*impl->tree, std::move(names));
  } catch (const Error &error) {
    throw Error(error.status, impl->name + ": line " + std::to_string(renderer.line) + ": " + error.what());
  }
}
