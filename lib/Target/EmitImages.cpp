//===- EmitImages.cpp - kernels of a device to PTX and cubins -------------===//
//
// PTX of an architecture is one text: that of the groups, which no names join, behind one head. The runtime's
// routines have one for all architectures.
//
//===----------------------------------------------------------------------===//

#include "Assemble.h"
#include "CompileGroups.h"
#include "Helpers.h"
#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/RoutineImages.h"

#include "llvm/Support/MathExtras.h"
#include <atomic>

using namespace mlir;
using namespace dsopt;

/// The modules of a device's kernels.
static SmallVector<ModuleOp> deviceModules(ModuleOp module) {
  SmallVector<ModuleOp> modules;
  for (auto nested : module.getOps<ModuleOp>())
    if (auto target = nested->getAttrOfType<TargetAttr>(kTargetAttr);
        target && target.getKind() == TargetKind::CUDA)
      modules.push_back(nested);
  return modules;
}

/// What a group says of itself ends with this line's end.
static size_t endOfHead(StringRef text) {
  size_t at = text.find(".address_size");
  return at == StringRef::npos ? StringRef::npos : text.find('\n', at) + 1;
}

FailureOr<std::vector<std::string>> dsopt::emitPTX(ModuleOp module, const ObjectOptions &options) {
  FailureOr<TargetAttr> target = getTarget(module);
  if (failed(target))
    return failure();
  if (target->getKind() != TargetKind::CUDA)
    return module.emitError("has no kernels in PTX: it is for ")
           << stringifyTargetKind(target->getKind()) << ", expected -target=cuda";
  std::vector<Group> groups;
  std::vector<size_t> ends; ///< of each architecture's groups
  KnownKernels none;
  for (TargetAttr one : splitArchitectures(*target)) {
    for (ModuleOp kernels : deviceModules(module))
      if (failed(collectGroups(kernels, one, options.optLevel, nullptr, groups, none)))
        return failure();
    ends.push_back(groups.size());
  }
  ObjectBuffers compiled;
  if (failed(compileGroups(module, groups, options, compiled)))
    return failure();
  std::vector<std::string> texts;
  size_t from = 0;
  for (size_t end : ends) {
    std::string &text = texts.emplace_back();
    for (; from < end; ++from) {
      StringRef part = compiled[from]->getBuffer();
      size_t head = endOfHead(part);
      if (head == StringRef::npos)
        return module.emitError("has kernels whose PTX has no head");
      text += text.empty() ? part : part.drop_front(head);
    }
  }
  return texts;
}

namespace {
/// PTX with the architectures that machine code is made for.
struct Text {
  std::string routine, arch;
  StringRef ptx; ///< behind it there is a zero
  SmallVector<TargetAttr> targets;
  std::vector<Assembled> assembled; ///< by target
};
} // namespace

/// Machine code of all texts, `options.threads` at a time.
static void assembleAll(std::vector<Text> &texts, StringRef assembler, const ObjectOptions &options) {
  std::vector<std::pair<Text *, size_t>> todo;
  for (Text &text : texts) {
    text.assembled.resize(text.targets.size());
    for (size_t i = 0; i < text.targets.size(); ++i)
      todo.emplace_back(&text, i);
  }
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t at; (at = next++) < todo.size();) {
      auto [text, i] = todo[at];
      text->assembled[i] = assemble(assembler, text->ptx, text->targets[i], options);
    }
  };
  workTogether(std::min<size_t>(options.threads, todo.size()), work);
}

FailureOr<DeviceImages> dsopt::emitImages(ModuleOp module, const ObjectOptions &options,
                                          StringRef assembler) {
  DeviceImages images;
  FailureOr<TargetAttr> target = getTarget(module);
  if (failed(target))
    return failure();
  if (target->getKind() != TargetKind::CUDA)
    return images;
  FailureOr<std::vector<std::string>> own = emitPTX(module, options);
  if (failed(own))
    return failure();
  std::vector<Text> texts;
  std::vector<TargetAttr> targets = splitArchitectures(*target);
  for (auto [one, ptx] : llvm::zip_equal(targets, *own))
    texts.push_back({"", one.getArch().str(), ptx, {one}, {}});
  for (const Routine &routine : collectRoutines(module))
    texts.push_back({routine.name.str(), runtime::kRoutineArch, routine.ptx, llvm::to_vector(targets), {}});
  if (!assembler.empty())
    assembleAll(texts, assembler, options);
  auto add = [&](DeviceImage image, StringRef bytes) {
    images.bytes.resize(llvm::alignTo(images.bytes.size(), DSOPT_IMAGE_ALIGNMENT));
    image.offset = images.bytes.size();
    image.bytes = bytes.size();
    images.bytes += bytes;
    images.list.push_back(image);
  };
  for (const Text &text : texts) {
    add({text.routine, text.arch, "ptx"}, StringRef(text.ptx.data(), text.ptx.size() + 1));
    for (auto [one, made] : llvm::zip(text.targets, text.assembled)) {
      if (!made.error.empty())
        return module.emitError("cannot be assembled for ") << one.getArch() << ": " << made.error;
      add({text.routine, one.getArch().str(), "cubin", 0, 0, made.registers, made.shared, made.spills},
          made.cubin);
    }
  }
  return images;
}
