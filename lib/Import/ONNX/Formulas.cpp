//===- Formulas.cpp - functions that exporters write out -------------------===//

#include "Formulas.h"

#include "Scopes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;

namespace dsopt::onnx_import {

/// Operators between a value and what it is computed from.
static constexpr int kMaxDepth = 14;

static double clamp(double x, double low, double high) { return std::min(std::max(x, low), high); }
static double logistic(double x) { return 1 / (1 + std::exp(-x)); }

using Function = double (*)(double);
static const Function functions[] = {
    [](double x) { return x / 2 * (1 + std::erf(x / M_SQRT2)); },
    [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); },
    [](double x) { return x * logistic(1.702 * x); },
    [](double x) { return (1 + std::erf(x / M_SQRT2)) / 2; },
    logistic,
    [](double x) { return x * logistic(x); },
    [](double x) { return 2 * logistic(x) - 1; },
    [](double x) { return std::tanh(x); },
    [](double x) { return std::log1p(std::exp(x)); },
    [](double x) { return x * std::tanh(std::log1p(std::exp(x))); },
    [](double x) { return clamp(x + 3, 0, 6) / 6; },
    [](double x) { return x * clamp(x + 3, 0, 6) / 6; },
    [](double x) { return clamp(0.2 * x + 0.5, 0, 1); },
    [](double x) { return x * clamp(0.2 * x + 0.5, 0, 1); },
    [](double x) { return x > 0 ? x : std::expm1(x); },
    [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); },
    [](double x) { return x / (1 + std::fabs(x)); },
    [](double x) { return std::expm1(x); },
    [](double x) { return std::log1p(x); },
    [](double x) { return std::log(x) / M_LN2; },
    [](double x) { return std::log(x) / M_LN10; },
    [](double x) { return 10 * std::log(x) / M_LN10; },
    [](double x) { return 20 * std::log(x) / M_LN10; },
    [](double x) { return std::exp(x * M_LN2); },
    [](double x) { return std::exp(x * M_LN10); },
    [](double x) { return x * x; },
    [](double x) { return std::sqrt(x); },
    [](double x) { return 1 / std::sqrt(x); },
    [](double x) { return 1 / x; },
    [](double x) { return 1 - x; },
    [](double x) { return 1 - x * x; },
};
static constexpr double points[] = {-3.7, -2.1, -0.9, -0.3, 0.2, 0.45, 0.8, 1.7, 3.3, 5.2, 7.1};

/// What lies between a value and the one that it may be a function of.
struct Formulas::Region {
  StringRef root;
  double point = 0, precision = 1e-6;
  std::set<std::pair<const onnx::NodeProto *, int>> numbers;
  std::set<std::string> inner;
  int steps = 0;
};

static bool isElementwise(StringRef op) {
  return llvm::StringSwitch<bool>(op)
      .Cases({"Add", "Sub", "Mul", "Div", "Pow", "Neg", "Reciprocal", "Sqrt", "Abs"}, true)
      .Cases({"Exp", "Log", "Erf", "Tanh", "Sigmoid", "Softplus", "Relu", "Min", "Max", "Clip"}, true)
      .Cases({"Identity", "Cast"}, true)
      .Default(false);
}

/// Whether an operator gives back what it reads beside this number.
static bool isNeutral(StringRef op, int input, double number) {
  if (op == "Add" || op == "Sub")
    return number == 0 && (op == "Add" || input == 1);
  return number == 1 && (op == "Mul" || ((op == "Div" || op == "Pow") && input == 1));
}

static double compute(StringRef op, ArrayRef<double> x) {
  auto both = [&](double (*f)(double, double)) { return x.size() == 2 ? f(x[0], x[1]) : NAN; };
  auto one = [&](double (*f)(double)) { return x.size() == 1 ? f(x[0]) : NAN; };
  if (op == "Clip")
    return x.size() == 3 ? clamp(x[0], x[1], x[2]) : NAN;
  return llvm::StringSwitch<llvm::function_ref<double()>>(op)
      .Case("Add", [&] { return both([](double a, double b) { return a + b; }); })
      .Case("Sub", [&] { return both([](double a, double b) { return a - b; }); })
      .Case("Mul", [&] { return both([](double a, double b) { return a * b; }); })
      .Case("Div", [&] { return both([](double a, double b) { return a / b; }); })
      .Case("Pow", [&] { return both([](double a, double b) { return std::pow(a, b); }); })
      .Case("Min", [&] { return both([](double a, double b) { return std::min(a, b); }); })
      .Case("Max", [&] { return both([](double a, double b) { return std::max(a, b); }); })
      .Case("Neg", [&] { return one([](double a) { return -a; }); })
      .Case("Reciprocal", [&] { return one([](double a) { return 1 / a; }); })
      .Case("Sqrt", [&] { return one([](double a) { return std::sqrt(a); }); })
      .Case("Abs", [&] { return one([](double a) { return std::fabs(a); }); })
      .Case("Exp", [&] { return one([](double a) { return std::exp(a); }); })
      .Case("Log", [&] { return one([](double a) { return std::log(a); }); })
      .Case("Erf", [&] { return one([](double a) { return std::erf(a); }); })
      .Case("Tanh", [&] { return one([](double a) { return std::tanh(a); }); })
      .Case("Sigmoid", [&] { return one(logistic); })
      .Case("Softplus", [&] { return one([](double a) { return std::log1p(std::exp(a)); }); })
      .Case("Relu", [&] { return one([](double a) { return std::max(a, 0.0); }); })
      .Cases({"Identity", "Cast"}, [&] { return one([](double a) { return a; }); })
      .Default([] { return NAN; })();
}

double Formulas::number(StringRef value, double &precision) const {
  auto [known, isNew] = numbers.try_emplace(value, NAN, 0);
  if (isNew)
    known->second.first = values.number(value, &known->second.second);
  precision = std::max(precision, known->second.second);
  return known->second.first;
}

bool Formulas::evaluate(StringRef value, Region &region, int depth, double &result) const {
  if (value == region.root) {
    result = region.point;
    return true;
  }
  const onnx::NodeProto *node = values.producer(value);
  if (!node || depth == 0 || ++region.steps > 64 || !isElementwise(node->op_type()))
    return false;
  SmallVector<double> inputs;
  for (int i = 0; i < node->input_size(); ++i) {
    double known = node->input(i) == region.root ? NAN : number(node->input(i), region.precision);
    if (!std::isnan(known)) {
      // A learned factor may well start at one.
      if (!isNeutral(node->op_type(), i, known))
        region.numbers.insert({node, i});
      inputs.push_back(known);
    } else if (double input; evaluate(node->input(i), region, depth - 1, input)) {
      inputs.push_back(input);
    } else {
      return false;
    }
  }
  region.inner.insert(value.str());
  result = compute(node->op_type(), inputs);
  return true;
}

void Formulas::match(const onnx::NodeProto &node) {
  // What it may be a function of, the nearest first.
  SmallVector<StringRef> roots;
  double precision = 0;
  SmallVector<std::pair<StringRef, int>> open{{node.output(0), 0}};
  for (size_t at = 0; at < open.size(); ++at) {
    auto [value, depth] = open[at];
    const onnx::NodeProto *made = values.producer(value);
    if (!made || !isElementwise(made->op_type()) || depth == kMaxDepth)
      continue;
    for (StringRef input : made->input())
      if (std::isnan(number(input, precision)) && !llvm::is_contained(roots, input) && roots.size() < 24) {
        roots.push_back(input);
        open.push_back({input, depth + 1});
      }
  }
  for (StringRef root : roots) {
    std::array<double, std::size(points)> results;
    Region region;
    region.root = root;
    bool isFunction = true;
    for (size_t i = 0; isFunction && i < std::size(points); ++i) {
      region.point = points[i];
      region.steps = 0;
      isFunction = evaluate(node.output(0), region, kMaxDepth, results[i]);
    }
    if (!isFunction)
      continue;
    for (auto [number, function] : llvm::enumerate(functions)) {
      bool isEqual = true;
      for (size_t i = 0; isEqual && i < std::size(points); ++i) {
        double expected = function(points[i]);
        isEqual = std::isfinite(expected) ? std::fabs(results[i] - expected) <=
                                                region.precision * std::max(1.0, std::fabs(expected))
                                          : !std::isfinite(results[i]);
      }
      // What is this function already needs no number behind it.
      if (!isEqual || llvm::any_of(region.inner, [&, number = (int)number](const std::string &inner) {
            return known.count({inner, number}) > 0;
          }))
        continue;
      known.insert({node.output(0), (int)number});
      members.insert(region.numbers.begin(), region.numbers.end());
      return;
    }
  }
}

Formulas::Formulas(const ModelFile &file, const ValueGraph &values) : values(values) {
  forEachNode(file.graph(), [&](const onnx::NodeProto &node) {
    if (node.output_size() == 1 && isElementwise(node.op_type()))
      match(node);
  });
}

} // namespace dsopt::onnx_import
