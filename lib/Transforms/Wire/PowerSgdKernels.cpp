//===- PowerSgdKernels.cpp - kernels of gradients as two factors ----------===//

#include "PowerSgdKernels.h"

#include "llvm/ADT/STLFunctionalExtras.h"

using namespace dsopt;

const char *const dsopt::kFactorSum = R"mlir(
  !r = tensor<64x16xf32>
  func.func @powersgd.sum(%x: !r, %y: !r) -> !r {
    %sum = graph.add %x, %y : (!r, !r) -> !r
    return %sum : !r
  })mlir";
const char *const dsopt::kFactorPart = R"mlir(
  func.func @powersgd.part(%x: tensor<64x16xf32>) -> tensor<64x16xf32> {
    return %x : tensor<64x16xf32>
  })mlir";

static std::string number(int64_t value) { return std::to_string(value); }

/// What `write` says of each number below `count`, separated by commas.
static std::string listed(int64_t count, llvm::function_ref<std::string(const std::string &)> write) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + write(number(i));
  return text;
}

/// Products of %a<i> and %b<i>, of types that make !m.
static std::string products(int64_t rank, const std::string &left, const std::string &right) {
  std::string text;
  for (int64_t i = 0; i < rank; ++i) {
    std::string n = number(i), a = left[1] == 'm' ? left : left + n;
    text += "%x" + n + " = graph.mul " + a + ", " + right + n + " : (!" + left[1] + ", !" + right[1] +
            ") -> !m\n";
  }
  return text;
}

FactorKernel dsopt::factorCopy(int64_t values) {
  std::string name = "powersgd.copy." + number(values);
  return {name, "!r = tensor<64x" + number(values) + "xf32>\nfunc.func @" + name + R"mlir((%x: !r) -> !r {
    %zero = graph.constant dense<0.0> : tensor<1xf32>
    %copy = graph.add %x, %zero : (!r, tensor<1xf32>) -> !r
    return %copy : !r
  })mlir"};
}

FactorKernel dsopt::factorBegin(int64_t columns) {
  std::string name = "powersgd.begin." + number(columns), row = "tensor<64x" + number(columns);
  return {name, "!r = " + row + "xf32>\n!i = " + row +
                    "xi32>\n!s = tensor<1xi32>\n!f = tensor<1xf32>\nfunc.func @" + name +
                    R"mlir((%q: !r) -> !r attributes {graph.in_place = array<i64: 0>} {
    %columns = graph.constant dense<)mlir" +
                    number(columns) + R"mlir(> : !s
    %factor = graph.constant dense<1664525> : !s
    %more = graph.constant dense<1013904223> : !s
    %mask = graph.constant dense<2147483647> : !s
    %high = graph.constant dense<32768> : !s
    %unit = graph.constant dense<4.6566128730773926e-10> : !f
    %half = graph.constant dense<0.5> : !f
    %zero = graph.constant dense<0.0> : !f
    %row = graph.iota {axis = 0} : () -> !i
    %column = graph.iota {axis = 1} : () -> !i
    %first = graph.mul %row, %columns : (!i, !s) -> !i
    %place = graph.add %first, %column : (!i, !i) -> !i
    %1 = graph.mul %place, %factor : (!i, !s) -> !i
    %2 = graph.add %1, %more : (!i, !s) -> !i
    %3 = graph.and %2, %mask : (!i, !s) -> !i
    %4 = graph.div %3, %high : (!i, !s) -> !i
    %5 = graph.mul %4, %3 : (!i, !i) -> !i
    %6 = graph.and %5, %mask : (!i, !s) -> !i
    %7 = graph.cast %6 : (!i) -> !r
    %8 = graph.mul %7, %unit : (!r, !f) -> !r
    %random = graph.sub %8, %half : (!r, !f) -> !r
    %size = graph.abs %q : (!r) -> !r
    %most = graph.reduce_max %size {axes = array<i64: 1>, keepdims} : (!r) -> tensor<64x1xf32>
    %none = graph.equal %most, %zero : (tensor<64x1xf32>, !f) -> tensor<64x1xi1>
    %begun = graph.where %none, %random, %q : (tensor<64x1xi1>, !r, !r) -> !r
    return %begun : !r
  })mlir"};
}

FactorKernel dsopt::factorLeft(int64_t rank, int64_t columns) {
  std::string name = "powersgd.left." + number(rank) + "." + number(columns), size = number(columns), text;
  for (int64_t i = 0; i < rank; ++i) {
    std::string n = number(i);
    text += "%w" + n + " = graph.cast %q" + n + " : (!q) -> !v\n%x" + n + " = graph.mul %exact, %w" + n +
            " : (!h, !v) -> !h\n%s" + n + " = graph.reduce_sum %x" + n +
            " {axes = array<i64: 1>, keepdims} : (!h) -> !s\n%p" + n + " = graph.cast %s" + n +
            " : (!s) -> !p\n";
  }
  std::string types = listed(rank, [](const std::string &) { return std::string("!p"); });
  return {name, "!m = tensor<64x" + size + "xf32>\n!h = tensor<64x" + size + "xf64>\n!q = tensor<1x" + size +
                    "xf32>\n!v = tensor<1x" + size +
                    "xf64>\n!p = tensor<64x1xf32>\n!s = tensor<64x1xf64>\nfunc.func @" + name + "(%m: !m, " +
                    listed(rank, [](const std::string &n) { return "%q" + n + ": !q"; }) + ") -> (" + types +
                    ") {\n%exact = graph.cast %m : (!m) -> !h\n" + text + "return " +
                    listed(rank, [](const std::string &n) { return "%p" + n; }) + " : " + types + "\n}"};
}

FactorKernel dsopt::factorRight(int64_t rank, int64_t rows, int64_t columns) {
  std::string name = "powersgd.right." + number(rank) + "." + number(rows) + "." + number(columns), sums;
  for (int64_t i = 0; i < rank; ++i)
    sums +=
        "%q" + number(i) + " = graph.reduce_sum %x" + number(i) + " {axes = array<i64: 0>} : (!m) -> !q\n";
  std::string types = listed(rank, [](const std::string &) { return std::string("!q"); });
  return {name, "!m = tensor<" + number(rows) + "x" + number(columns) + "xf32>\n!p = tensor<" + number(rows) +
                    "x1xf32>\n!q = tensor<" + number(columns) + "xf32>\nfunc.func @" + name + "(%m: !m, " +
                    listed(rank, [](const std::string &n) { return "%p" + n + ": !p"; }) + ") -> (" + types +
                    ") attributes {graph.iterate = #graph.iteration<columns>, graph.range = array<i64: " +
                    number(columns) + ">} {\n" + products(rank, "%m", "%p") + sums + "return " +
                    listed(rank, [](const std::string &n) { return "%q" + n; }) + " : " + types + "\n}"};
}

/// Names for types of a column of so many rows.
static std::string columnTypes(int64_t rows) {
  std::string size = number(rows);
  return "!r = tensor<64x" + size + "xf32>\n!h = tensor<64x" + size + "xf64>\n!o = tensor<1x" + size +
         "xf32>\n!w = tensor<1x" + size + "xf64>\n!s = tensor<64x1xf64>\nfunc.func @";
}

FactorKernel dsopt::factorSize(int64_t rows) {
  std::string name = "powersgd.size." + number(rows);
  return {name, columnTypes(rows) + name + R"mlir((%p: !r) -> !s {
    %exact = graph.cast %p : (!r) -> !h
    %square = graph.mul %exact, %exact : (!h, !h) -> !h
    %sum = graph.reduce_sum %square {axes = array<i64: 1>, keepdims} : (!h) -> !s
    %size = graph.sqrt %sum : (!s) -> !s
    return %size : !s
  })mlir"};
}

FactorKernel dsopt::factorUnit(int64_t rows) {
  std::string name = "powersgd.unit." + number(rows);
  return {name, columnTypes(rows) + name +
                    R"mlir((%p: !r, %first: !s) -> !r attributes {graph.in_place = array<i64: 0>} {
    %zero = graph.constant dense<0.0> : tensor<1xf64>
    %least = graph.constant dense<1.0e-30> : tensor<1xf64>
    %little = graph.constant dense<1.0e-5> : tensor<1xf64>
    %exact = graph.cast %p : (!r) -> !h
    %square = graph.mul %exact, %exact : (!h, !h) -> !h
    %sum = graph.reduce_sum %square {axes = array<i64: 1>, keepdims} : (!h) -> !s
    %root = graph.sqrt %sum : (!s) -> !s
    %size = graph.max %root, %least : (!s, tensor<1xf64>) -> !s
    %bound = graph.mul %first, %little : (!s, tensor<1xf64>) -> !s
    %none = graph.less %root, %bound : (!s, !s) -> tensor<64x1xi1>
    %unit = graph.div %exact, %size : (!h, !s) -> !h
    %kept = graph.where %none, %zero, %unit : (tensor<64x1xi1>, tensor<1xf64>, !h) -> !h
    %made = graph.cast %kept : (!h) -> !r
    return %made : !r
  })mlir"};
}

FactorKernel dsopt::factorApart(int64_t rows) {
  std::string name = "powersgd.apart." + number(rows);
  return {name, columnTypes(rows) + name +
                    R"mlir((%p: !o, %other: !r) -> !r attributes {graph.in_place = array<i64: 1>} {
    %unit = graph.cast %p : (!o) -> !w
    %exact = graph.cast %other : (!r) -> !h
    %products = graph.mul %exact, %unit : (!h, !w) -> !h
    %along = graph.reduce_sum %products {axes = array<i64: 1>, keepdims} : (!h) -> !s
    %part = graph.mul %unit, %along : (!w, !s) -> !h
    %rest = graph.sub %exact, %part : (!h, !h) -> !h
    %made = graph.cast %rest : (!h) -> !r
    return %made : !r
  })mlir"};
}

FactorKernel dsopt::factorProduct(int64_t rank, int64_t columns, int64_t ranks) {
  std::string name = "powersgd.product." + number(rank) + "." + number(columns) + "." + number(ranks),
              text = products(rank, "%p", "%q"), made = "%x0";
  for (int64_t i = 1; i < rank; ++i) {
    std::string sum = "%s" + number(i);
    text += sum + " = graph.add " + made + ", %x" + number(i) + " : (!m, !m) -> !m\n";
    made = sum;
  }
  if (ranks > 1) {
    text += "%ranks = graph.constant dense<" + number(ranks) + ".0> : tensor<1xf32>\n%share = graph.div " +
            made + ", %ranks : (!m, tensor<1xf32>) -> !m\n";
    made = "%share";
  }
  return {name, "!m = tensor<64x" + number(columns) + "xf32>\n!q = tensor<1x" + number(columns) +
                    "xf32>\n!p = tensor<64x1xf32>\nfunc.func @" + name + "(" +
                    listed(rank, [](const std::string &n) { return "%p" + n + ": !p"; }) + ", " +
                    listed(rank, [](const std::string &n) { return "%q" + n + ": !q"; }) + ") -> !m {\n" +
                    text + "return " + made + " : !m\n}"};
}
