//===- CompressionKernels.cpp - kernels of compressed exchanges -----------===//

#include "CompressionKernels.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace dsopt;

/// Adds the kernel's result to what another argument holds, or takes it away.
static void combine(func::FuncOp function, Into into) {
  Operation *end = function.front().getTerminator();
  Value result = end->getOperand(0);
  unsigned last = function.getNumArguments();
  (void)function.insertArgument(last, result.getType(), {}, function.getLoc());
  OpBuilder builder(end);
  Value held = function.getArgument(last);
  end->setOperand(
      0, into == Into::Add
             ? Value(graph::AddOp::create(builder, function.getLoc(), result.getType(), held, result))
             : Value(graph::SubOp::create(builder, function.getLoc(), result.getType(), held, result)));
  function->setAttr(graph::kInPlaceAttr, builder.getDenseI64ArrayAttr({last}));
}

SymbolRefAttr CompressionKernels::get(const std::string &plain, const std::string &text, Into into) {
  std::string name = plain + (into == Into::Add ? ".add" : into == Into::Subtract ? ".subtract" : "");
  if (auto function = home.lookup(name))
    return home.symbolOf(function);
  OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(text, home.getContext());
  if (!parsed || parsed->getOps<func::FuncOp>().empty())
    return {};
  func::FuncOp function = *parsed->getOps<func::FuncOp>().begin();
  function->remove();
  function.setName(name);
  if (into != Into::Replace)
    combine(function, into);
  return home.add(function, graph::Iteration::Rows);
}

std::string dsopt::withRowTypes(StringRef row, StringRef gradient, const std::string &text) {
  // Of 32 values one word.
  StringRef words = row.drop_back(StringRef("32").size());
  return ("!r = tensor<64x" + row + "xf32>\n!b = tensor<64x" + row + "xi1>\n!g = tensor<64x" + row + "x" +
          gradient + ">\n!s = tensor<1xf32>\n!p = tensor<64xf32>\n!q = tensor<64xf64>\n!h = tensor<64x" +
          row + "xf64>\n!w = tensor<64x" + words + "i32>\n" + text)
      .str();
}

std::string dsopt::keepAndSum() {
  return R"mlir(
    %zero = graph.constant dense<0.0> : !s
    %one = graph.constant dense<1.0> : !s
    %bits = graph.unpack_bits %t : (!w) -> !r
    %part = graph.greater %bits, %zero : (!r, !s) -> !b
    %masked = graph.where %part, %all, %zero : (!b, !r, !s) -> !r
    %applies = graph.expand %apply : (!s) -> !r
    %go = graph.greater %applies, %zero : (!r, !s) -> !b
    %kept = graph.where %go, %masked, %e : (!b, !r, !r) -> !r
    %exact = graph.cast %kept : (!r) -> !h
    %square = graph.mul %exact, %exact : (!h, !h) -> !h
    %squares = graph.reduce_sum %square {axes = array<i64: 1, 2>} : (!h) -> !q
    %ones = graph.where %part, %one, %zero : (!b, !s, !s) -> !r
    %counts = graph.reduce_sum %ones {axes = array<i64: 1, 2>} : (!r) -> !p
    return %kept, %squares, %counts : !r, !q, !p
  })mlir";
}

SymbolRefAttr CompressionKernels::compensate(Type gradient, bool scaled) {
  std::string type;
  llvm::raw_string_ostream(type) << gradient;
  std::string name = (scaled ? "onebit.compensate.scaled." : "onebit.compensate.") + type;
  return get(
      name,
      withRowTypes(
          "2x32", type,
          "func.func @" + name +
              R"mlir((%m: !r, %g: !g, %e: !r, %t: !w, %factor: !s, %apply: !s, %keep: !s, %take: !s)mlir" +
              (scaled ? ", %coefficient: !s" : "") +
              ") -> (!r, !q, !p) attributes {graph.in_place = array<i64: 2, " + (scaled ? "9, 10" : "8, 9") +
              R"mlir(>} {
    %wide = graph.cast %g : (!g) -> !r
    %scaled = graph.mul %wide, %factor : (!r, !s) -> !r
    %new = graph.mul %scaled, %take : (!r, !s) -> !r
    %old = graph.mul %m, %keep : (!r, !s) -> !r
    %momentum = graph.add %old, %new : (!r, !r) -> !r
)mlir" + (scaled ? "%sent = graph.mul %momentum, %coefficient : (!r, !s) -> !r\n" : "") +
              "%all = graph.add " + (scaled ? "%sent" : "%momentum") + ", %e : (!r, !r) -> !r" +
              keepAndSum()));
}

SymbolRefAttr CompressionKernels::takes() {
  return get("onebit.takes", withRowTypes("32", "f32", R"mlir(
  func.func @onebit.takes(%v: !r) -> !w {
    %zero = graph.constant dense<0.0> : !s
    %one = graph.constant dense<1.0> : !s
    %minus = graph.constant dense<-1.0> : !s
    %part = graph.greater %v, %zero : (!r, !s) -> !b
    %sign = graph.where %part, %one, %minus : (!b, !s, !s) -> !r
    %words = graph.sign_bits %sign : (!r) -> !w
    return %words : !w
  })mlir"));
}

SymbolRefAttr CompressionKernels::scale(int64_t sums) {
  std::string count = std::to_string(sums), name = "onebit.scale." + count;
  return get(name, "!n = tensor<64x" + count + "xf32>\n!d = tensor<64x" + count +
                       "xf64>\n!t = tensor<64xf64>\n!u = tensor<1xf64>\nfunc.func @" + name +
                       R"mlir((%squares: !d, %counts: !n) -> tensor<64xf32> {
    %one = graph.constant dense<1.0> : !u
    %1 = graph.reduce_sum %squares {axes = array<i64: 1>} : (!d) -> !t
    %2 = graph.cast %counts : (!n) -> !d
    %3 = graph.reduce_sum %2 {axes = array<i64: 1>} : (!d) -> !t
    %4 = graph.max %3, %one : (!t, !u) -> !t
    %5 = graph.div %1, %4 : (!t, !t) -> !t
    %6 = graph.sqrt %5 : (!t) -> !t
    %7 = graph.cast %6 : (!t) -> tensor<64xf32>
    return %7 : tensor<64xf32>
  })mlir");
}

SymbolRefAttr CompressionKernels::pack() {
  return get("onebit.pack", withRowTypes("32", "f32",
                                         R"mlir(
  func.func @onebit.pack(%c: !r, %t: !w, %scale: !s, %apply: !s) -> (!r, !w) attributes {graph.in_place = array<i64: 0, 4>} {
    %zero = graph.constant dense<0.0> : !s
    %one = graph.constant dense<1.0> : !s
    %minus = graph.constant dense<-1.0> : !s
    %below = graph.less %c, %zero : (!r, !s) -> !b
    %sign = graph.where %below, %minus, %one : (!b, !s, !s) -> !r
    %packed = graph.mul %sign, %scale : (!r, !s) -> !r
    %left = graph.sub %c, %packed : (!r, !r) -> !r
    %bits = graph.unpack_bits %t : (!w) -> !r
    %part = graph.greater %bits, %zero : (!r, !s) -> !b
    %masked = graph.where %part, %left, %zero : (!b, !r, !s) -> !r
    %applies = graph.expand %apply : (!s) -> !r
    %go = graph.greater %applies, %zero : (!r, !s) -> !b
    %kept = graph.where %go, %masked, %c : (!b, !r, !r) -> !r
    %words = graph.sign_bits %c : (!r) -> !w
    return %kept, %words : !r, !w
  })mlir"));
}

SymbolRefAttr CompressionKernels::average(int64_t workers) {
  std::string name = "onebit.average." + std::to_string(workers), arguments, sums, total;
  for (int64_t i = 0; i < workers; ++i) {
    std::string n = std::to_string(i);
    arguments += "%w" + n + ": !w, %s" + n + ": !s, ";
    sums += "%u" + n + " = graph.unpack_bits %w" + n + " : (!w) -> !r\n%x" + n + " = graph.mul %u" + n +
            ", %s" + n + " : (!r, !s) -> !r\n";
    if (i)
      sums += "%t" + n + " = graph.add " + total + ", %x" + n + " : (!r, !r) -> !r\n";
    total = (i ? "%t" : "%x") + n;
  }
  std::string error = std::to_string(2 * workers), own = std::to_string(2 * workers + 3),
              second = std::to_string(2 * workers + 4);
  return get(
      name,
      withRowTypes(
          "2x32", "f32",
          "func.func @" + name + "(" + arguments +
              "%e: !r, %t: !w, %apply: !s) -> (!r, !q, !p) attributes {graph.in_place = array<i64: " + error +
              ", " + own + ", " + second + ">} {\n" + sums + "%workers = graph.constant dense<" +
              std::to_string(workers) + ".0> : !s\n%mean = graph.div " + total +
              ", %workers : (!r, !s) -> !r\n%all = graph.add %mean, %e : (!r, !r) -> !r" + keepAndSum()));
}

SymbolRefAttr CompressionKernels::unpack() {
  return get("onebit.unpack", withRowTypes("32", "f32",
                                           R"mlir(
  func.func @onebit.unpack(%w: !w, %scale: !s, %t: !w, %m: !r, %apply: !s) -> !r attributes {graph.in_place = array<i64: 3>} {
    %zero = graph.constant dense<0.0> : !s
    %sign = graph.unpack_bits %w : (!w) -> !r
    %new = graph.mul %sign, %scale : (!r, !s) -> !r
    %bits = graph.unpack_bits %t : (!w) -> !r
    %part = graph.greater %bits, %zero : (!r, !s) -> !b
    %masked = graph.where %part, %new, %zero : (!b, !r, !s) -> !r
    %applies = graph.expand %apply : (!s) -> !r
    %go = graph.greater %applies, %zero : (!r, !s) -> !b
    %kept = graph.where %go, %masked, %m : (!b, !r, !r) -> !r
    return %kept : !r
  })mlir"));
}

SymbolRefAttr CompressionKernels::unpackScaled() {
  return get("onebit.unpack.scaled", withRowTypes("32", "f32",
                                                  R"mlir(
  func.func @onebit.unpack.scaled(%w: !w, %scale: !s, %t: !w, %m: !r, %fresh: !r, %coefficient: !s, %apply: !s,
      %keep1: !s, %take1: !s, %keep2: !s, %take2: !s) -> (!r, !r) attributes {graph.in_place = array<i64: 3, 4>} {
    %zero = graph.constant dense<0.0> : !s
    %sign = graph.unpack_bits %w : (!w) -> !r
    %sent = graph.mul %sign, %scale : (!r, !s) -> !r
    %new = graph.div %sent, %coefficient : (!r, !s) -> !r
    %old = graph.mul %m, %keep1 : (!r, !s) -> !r
    %added = graph.sub %new, %old : (!r, !r) -> !r
    %g = graph.div %added, %take1 : (!r, !s) -> !r
    %square = graph.mul %g, %g : (!r, !r) -> !r
    %more = graph.mul %square, %take2 : (!r, !s) -> !r
    %less = graph.mul %fresh, %keep2 : (!r, !s) -> !r
    %moved = graph.add %less, %more : (!r, !r) -> !r
    %bits = graph.unpack_bits %t : (!w) -> !r
    %part = graph.greater %bits, %zero : (!r, !s) -> !b
    %maskedMomentum = graph.where %part, %new, %zero : (!b, !r, !s) -> !r
    %maskedFresh = graph.where %part, %moved, %fresh : (!b, !r, !r) -> !r
    %applies = graph.expand %apply : (!s) -> !r
    %go = graph.greater %applies, %zero : (!r, !s) -> !b
    %kept = graph.where %go, %maskedMomentum, %m : (!b, !r, !r) -> !r
    %keptFresh = graph.where %go, %maskedFresh, %fresh : (!b, !r, !r) -> !r
    return %kept, %keptFresh : !r, !r
  })mlir"));
}
