//===- GemmTable.cpp - tables of products as JSON -------------------------===//

#include "GemmTable.h"
#include "JsonPlaces.h"
#include "Messages.h"
#include "Output.h"

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Pipeline/Pipelines.h"
#include "dsopt/Target/Target.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace dsopt;
using runtime::Error;

/// What the file says first.
static constexpr llvm::StringLiteral kFormat = "dsopt-gemm-table-1";

namespace {
/// The entries of an object, each asked for once; what nobody asked for is an error.
class Entry {
public:
  Entry(const JsonFile &file, const llvm::json::Object &object, std::string path)
      : file(file), object(object), path(std::move(path)) {}

  [[noreturn]] void fail(StringRef key, const Twine &problem) const {
    std::string name = path.empty() || key.empty() ? path + key.str() : path + "." + key.str();
    auto place = file.places.find(name);
    throw Error(1, file.path + ":" + (place == file.places.end() ? "" : place->second + ": ") +
                       (place == file.places.end() ? " " : "") + name + " " + problem.str());
  }
  bool has(StringRef key) { return object.get(key) != nullptr; }
  int64_t integer(StringRef key, int64_t least, std::optional<int64_t> byDefault = std::nullopt) {
    asked.insert(key);
    if (!has(key) && byDefault)
      return *byDefault;
    std::optional<int64_t> value = has(key) ? object.getInteger(key) : std::nullopt;
    if (!value || *value < least)
      fail(key, (has(key) ? "is no" : "is missing, expected an") + Twine(" integer of ") + Twine(least) +
                    " or more");
    return *value;
  }
  bool flag(StringRef key) {
    asked.insert(key);
    if (!has(key))
      return false;
    std::optional<bool> value = object.getBoolean(key);
    if (!value)
      fail(key, "is neither true nor false");
    return *value;
  }
  StringRef text(StringRef key, StringRef expected) {
    asked.insert(key);
    std::optional<StringRef> value = has(key) ? object.getString(key) : std::nullopt;
    if (!value)
      fail(key, (has(key) ? "is no text" : "is missing") + Twine(", expected ") + expected);
    return *value;
  }
  /// What is there for people to read.
  void ignore(StringRef key) { asked.insert(key); }
  void finish() const {
    for (const auto &[key, value] : object)
      if (!asked.contains(StringRef(key)))
        fail(StringRef(key), "is no key of a table");
  }

private:
  const JsonFile &file;
  const llvm::json::Object &object;
  std::string path;
  llvm::StringSet<> asked;
};
} // namespace

static exec::BlockingAttr readBlocking(MLIRContext &context, Entry &entry) {
  int64_t rows = entry.integer("rows", 1), vectors = entry.integer("vectors", 1),
          band = entry.integer("band", 1);
  constexpr llvm::StringLiteral kExpected = "none, fused, transpose, registers or lines";
  StringRef packing = entry.text("packing", kExpected);
  std::optional<exec::ProductPacking> known = exec::symbolizeProductPacking(packing);
  if (!known)
    entry.fail("packing", "is '" + packing + "', expected " + kExpected);
  bool copiesA = entry.flag("copies_a");
  return exec::BlockingAttr::get(&context, rows, vectors, band, *known, copiesA,
                                 entry.integer("result_ahead", 0, -1), entry.flag("swaps"));
}

static exec::GemmChoiceAttr readChoice(MLIRContext &context, Entry &entry) {
  constexpr llvm::StringLiteral kExpected = "f32, bf16 or f16";
  StringRef operands = entry.text("operands", kExpected);
  Builder builder(&context);
  Type type = operands == "f32"    ? Type(builder.getF32Type())
              : operands == "bf16" ? Type(builder.getBF16Type())
              : operands == "f16"  ? Type(builder.getF16Type())
                                   : Type();
  if (!type)
    entry.fail("operands", "is '" + operands + "', expected " + kExpected);
  int64_t m = entry.integer("m", 1), n = entry.integer("n", 1), k = entry.integer("k", 1);
  bool turnsA = entry.flag("transpose_a"), turnsB = entry.flag("transpose_b");
  int64_t batch = entry.integer("batch", 1, 1);
  exec::BlockingAttr blocking = entry.flag("library") ? nullptr : readBlocking(context, entry);
  for (StringRef figure : {"gflops", "model_gflops", "library_gflops"})
    entry.ignore(figure);
  entry.finish();
  return exec::GemmChoiceAttr::get(&context, type, m, n, k, turnsA, turnsB, batch, blocking);
}

exec::GemmTableAttr dsopt::readGemmTable(MLIRContext &context, const std::string &path) {
  JsonFile file = readJson(path);
  Entry table(file, *file.value.getAsObject(), "");
  if (StringRef format = table.text("format", kFormat); format != kFormat)
    table.fail("format", "is '" + format + "', expected " + kFormat + ", as -tune writes it");
  StringRef arch = table.text("arch", "a processor's name");
  int64_t vectorBits = table.integer("vector_bits", 128);
  const llvm::json::Array *products = file.value.getAsObject()->getArray("products");
  table.ignore("products");
  if (!products)
    table.fail("products", "is no array, expected choices");
  table.finish();
  SmallVector<Attribute> choices;
  llvm::MapVector<exec::GemmChoiceAttr, std::string> seen;
  for (auto [index, value] : llvm::enumerate(*products)) {
    std::string name = "products[" + std::to_string(index) + "]";
    const llvm::json::Object *object = value.getAsObject();
    if (!object)
      table.fail("", name + " is no object");
    Entry entry(file, *object, name);
    auto choice = readChoice(context, entry);
    auto [it, isNew] = seen.insert({choice.withoutBlocking(), name});
    if (!isNew)
      entry.fail("m", "begins a second choice for a product, which " + it->second + " has already");
    choices.push_back(choice);
  }
  return exec::GemmTableAttr::get(&context, arch, vectorBits, ArrayAttr::get(&context, choices));
}

void dsopt::writeGemmTable(const std::string &path, TargetAttr target, ArrayRef<MeasuredChoice> choices) {
  writeText(path, [&](raw_ostream &out) {
    out << llvm::formatv("{{\"format\": \"{0}\", \"arch\": \"{1}\", \"vector_bits\": {2}, \"products\": [",
                         kFormat, target.getArch(), target.getVectorBits());
    StringRef separator = "\n";
    for (const MeasuredChoice &one : choices) {
      exec::GemmChoiceAttr choice = one.choice;
      out << separator
          << llvm::formatv("  {{\"operands\": \"{0}\", \"m\": {1}, \"n\": {2}, \"k\": {3}",
                           choice.getOperands(), choice.getM(), choice.getN(), choice.getK());
      separator = ",\n";
      for (auto [key, value] :
           {std::pair("transpose_a", choice.getTransposeA()), {"transpose_b", choice.getTransposeB()}})
        if (value)
          out << ", \"" << key << "\": true";
      if (choice.getBatch() > 1)
        out << ", \"batch\": " << choice.getBatch();
      if (exec::BlockingAttr blocking = choice.getBlocking()) {
        out << llvm::formatv(", \"rows\": {0}, \"vectors\": {1}, \"band\": {2}, \"packing\": \"{3}\"",
                             blocking.getRows(), blocking.getVectors(), blocking.getBand(),
                             stringifyProductPacking(blocking.getPacking()));
        if (blocking.getCopiesA())
          out << ", \"copies_a\": true";
        if (blocking.getResultAhead() >= 0)
          out << ", \"result_ahead\": " << blocking.getResultAhead();
        if (blocking.getSwaps())
          out << ", \"swaps\": true";
      } else {
        out << ", \"library\": true";
      }
      for (auto [key, value] :
           {std::pair("gflops", one.chosen), {"model_gflops", one.model}, {"library_gflops", one.library}})
        if (value > 0)
          out << llvm::formatv(", \"{0}\": {1:f1}", key, value);
      out << "}";
    }
    out << "\n]}\n";
    return true;
  });
}

void dsopt::setGemmTable(ModuleOp module, const runtime::ParsedOptions &options) {
  if (!options.has("gemm-table"))
    return;
  std::string path = options.text("gemm-table");
  if (isForDevice(module))
    throw Error(1, "-gemm-table=" + path +
                       " is of products on a processor, and this program is for a GPU, "
                       "whose library computes them: leave it out");
  if (findStage(module) == Stage::LLVM)
    throw Error(1, "-gemm-table=" + path + " comes too late: this module has its kernels already");
  exec::GemmTableAttr table = readGemmTable(*module.getContext(), path);
  Messages messages(*module.getContext());
  auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
  if (!target) {
    FailureOr<TargetAttr> found = resolveTarget(module.getLoc(), options::arch(module), /*threads=*/1);
    if (failed(found))
      messages.fail("-arch is unknown");
    target = *found;
  }
  if (table.getArch() != target.getArch() || table.getVectorBits() != target.getVectorBits())
    throw Error(1,
                llvm::formatv("-gemm-table={0} is for {1} with vectors of {2} bits, and this program for {3} "
                              "with {4}: -tune=FILE writes one for it there",
                              path, table.getArch(), table.getVectorBits(), target.getArch(),
                              target.getVectorBits()));
  module->setAttr(exec::kGemmTableAttr, table);
}
