//===- TopK.cpp - the largest elements of each block ----------------------===//
//
// Elements are taken one after the other in the order of (magnitude, place): each is the
// largest of those behind the one before. Magnitudes compare as the integers of their bits,
// which have the same order, with NaN above infinity.
//
// A record is the blocks' first values, their second ones and so on, then the places of
// the first, of the second and so on.
//
//===----------------------------------------------------------------------===//

#include "TopK.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
using Options = CompressionMethod::Options;

/// Where things are in the record of so many elements.
struct Layout {
  Layout(int64_t elements, Options options)
      : elements(elements), k(options[0]), block(options[1]), blocks(llvm::divideCeil(elements, block)) {}
  /// Of a place: signed in kernels.
  int64_t placeBits() const { return block <= 128 ? 8 : 16; }
  int64_t value(int64_t i, int64_t row) const { return (i * blocks + row) * (int64_t)sizeof(float); }
  int64_t place(int64_t i, int64_t row) const { return value(k, 0) + (i * blocks + row) * placeBits() / 8; }
  int64_t end() const { return place(k, 0); }
  int64_t bytes() const { return llvm::alignTo(end(), sizeof(int32_t)); }
  /// Calls with the whole blocks, and with a shorter one at the end: the first, how many, and their size.
  void forEach(llvm::function_ref<void(int64_t first, int64_t count, int64_t size)> call) const {
    if (int64_t whole = elements / block)
      call(0, whole, block);
    if (int64_t rest = elements % block)
      call(blocks - 1, 1, rest);
  }

  int64_t elements, k, block, blocks;
};
} // namespace

/// Names for types of rows of a block, and of what a row has one of.
static std::string withTypes(const Layout &layout, int64_t size, const std::string &text) {
  std::string row = "tensor<64x" + std::to_string(size);
  return "!r = " + row + "xf32>\n!i = " + row + "xi32>\n!b = " + row +
         "xi1>\n!v = tensor<64x1xf32>\n!p = tensor<64x1xi32>\n!n = tensor<64x1xi" +
         std::to_string(layout.placeBits()) + ">\n!s = tensor<1xi32>\n" + text;
}

/// `prefix` with each number below k, separated by commas.
static std::string listed(int64_t k, const std::string &prefix, const std::string &suffix = "") {
  std::string text;
  for (int64_t i = 0; i < k; ++i)
    text += (i ? ", " : "") + prefix + (prefix[0] == '%' ? std::to_string(i) : "") + suffix;
  return text;
}

static std::string taken(const Layout &layout, int64_t size, const std::string &name) {
  std::string types = listed(layout.k, "!v") + ", " + listed(layout.k, "!n"), text = "func.func @" + name +
                                                                                     "(%x: !r) -> (" + types +
                                                                                     R"mlir() {
    %mask = graph.constant dense<2147483647> : !s
    %gone = graph.constant dense<-1> : !s
    %end = graph.constant dense<)mlir" + std::to_string(size) + R"mlir(> : !s
    %bits = graph.bitcast %x : (!r) -> !i
    %size = graph.and %bits, %mask : (!i, !s) -> !i
    %place = graph.iota {axis = 1} : () -> !i
)mlir";
  std::string open = "%size";
  for (int64_t i = 0; i < layout.k; ++i) {
    std::string n = std::to_string(i), before = std::to_string(i - 1);
    if (i) {
      text += "%less" + n + " = graph.less %size, %most" + before + " : (!i, !p) -> !b\n%same" + n +
              " = graph.equal %size, %most" + before + " : (!i, !p) -> !b\n%behind" + n +
              " = graph.greater %place, %at" + before + " : (!i, !p) -> !b\n%tie" + n + " = graph.and %same" +
              n + ", %behind" + n + " : (!b, !b) -> !b\n%is" + n + " = graph.or %less" + n + ", %tie" + n +
              " : (!b, !b) -> !b\n%open" + n + " = graph.where %is" + n +
              ", %size, %gone : (!b, !i, !s) -> !i\n";
      open = "%open" + n;
    }
    text += "%most" + n + " = graph.reduce_max " + open + " {axes = array<i64: 1>, keepdims} : (!i) -> !p\n" +
            "%hit" + n + " = graph.equal " + open + ", %most" + n + " : (!i, !p) -> !b\n%where" + n +
            " = graph.where %hit" + n + ", %place, %end : (!b, !i, !s) -> !i\n%at" + n +
            " = graph.reduce_min %where" + n + " {axes = array<i64: 1>, keepdims} : (!i) -> !p\n%v" + n +
            " = graph.gather_elements %x, %at" + n + " {axis = 1} : (!r, !p) -> !v\n%n" + n +
            " = graph.cast %at" + n + " : (!p) -> !n\n";
  }
  return withTypes(layout, size,
                   text + "return " + listed(layout.k, "%v") + ", " + listed(layout.k, "%n") + " : " + types +
                       "\n}");
}

static std::string placed(const Layout &layout, int64_t size, const std::string &name) {
  std::string text = "func.func @" + name + "(" + listed(layout.k, "%v", ": !v") + ", " +
                     listed(layout.k, "%n", ": !n") + R"mlir() -> !r {
    %none = graph.constant dense<0.0> : tensor<1xf32>
    %place = graph.iota {axis = 1} : () -> !i
)mlir",
              made = "%none";
  for (int64_t i = 0; i < layout.k; ++i) {
    std::string n = std::to_string(i);
    text += "%at" + n + " = graph.cast %n" + n + " : (!n) -> !p\n%hit" + n + " = graph.equal %place, %at" +
            n + " : (!i, !p) -> !b\n%x" + n + " = graph.where %hit" + n + ", %v" + n + ", " + made +
            " : (!b, !v, " + (i ? "!r" : "tensor<1xf32>") + ") -> !r\n";
    made = "%x" + n;
  }
  return withTypes(layout, size, text + "return " + made + " : !r\n}");
}

/// What fills a record up to words: zeros.
static constexpr const char *kFill = R"mlir(
  !w = tensor<64xi32>
  func.func @topk.fill(%x: tensor<64xf32>) -> tensor<64xi8> {
    %bits = graph.bitcast %x : (tensor<64xf32>) -> !w
    %none = graph.sub %bits, %bits : (!w, !w) -> !w
    %bytes = graph.cast %none : (!w) -> tensor<64xi8>
    return %bytes : tensor<64xi8>
  })mlir";

/// Places of the record's parts that some of its blocks have, as kernels take them.
static SmallVector<Attribute> parts(CompressionWriter &out, const Layout &layout, RefAttr record,
                                    int64_t first) {
  SmallVector<Attribute> places;
  for (int64_t i = 0; i < layout.k; ++i)
    places.push_back(out.at(record, layout.value(i, first)));
  for (int64_t i = 0; i < layout.k; ++i)
    places.push_back(out.at(record, layout.place(i, first)));
  return places;
}

static std::string named(StringRef what, const Layout &layout, int64_t size) {
  return ("topk." + what + "." + std::to_string(layout.k) + "." + std::to_string(size)).str();
}

static void pack(CompressionWriter &out, const CompressionUnit &unit, Options options) {
  Layout layout(unit.elements, options);
  layout.forEach([&](int64_t first, int64_t count, int64_t size) {
    std::string name = named("taken", layout, size);
    SmallVector<Attribute> places = {out.at(unit.values, first * layout.block * (int64_t)sizeof(float))};
    llvm::append_range(places, parts(out, layout, unit.record, first));
    out.map(name, taken(layout, size, name), places, count);
  });
  if (int64_t rest = layout.bytes() - layout.end())
    out.map("topk.fill", kFill, {unit.values, out.at(unit.record, layout.end())}, rest);
}

static void unpack(CompressionWriter &out, RefAttr record, RefAttr values, int64_t elements, Into into,
                   Options options) {
  Layout layout(elements, options);
  layout.forEach([&](int64_t first, int64_t count, int64_t size) {
    std::string name = named("placed", layout, size);
    SmallVector<Attribute> places = parts(out, layout, record, first);
    places.push_back(out.at(values, first * layout.block * (int64_t)sizeof(float)));
    out.map(name, placed(layout, size, name), places, count, into);
  });
}

CompressionMethod dsopt::topK() {
  return {[](int64_t elements, Options options) { return Layout(elements, options).bytes(); },
          pack,
          unpack,
          {{"k", 1, 1, 32, /*multipleOf=*/1}, {"block", 64, 64, 4096, /*multipleOf=*/64}}};
}
