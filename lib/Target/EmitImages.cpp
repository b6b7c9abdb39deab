//===- EmitImages.cpp - kernels of a device to PTX and cubins -------------===//
//
// PTX of an architecture is one text: that of the groups, which no names join, behind one head.
//
//===----------------------------------------------------------------------===//

#include "Assemble.h"
#include "CompileGroups.h"
#include "dsopt/Runtime/ABI.h"

#include "llvm/Support/MathExtras.h"
#include <thread>

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
  for (TargetAttr one : splitArchitectures(*target)) {
    for (ModuleOp kernels : deviceModules(module))
      if (failed(collectGroups(kernels, one, options.optLevel, nullptr, groups)))
        return failure();
    ends.push_back(groups.size());
  }
  ObjectBuffers compiled;
  if (failed(compileGroups(module, groups, options, compiled)))
    return failure();
  std::vector<std::string> texts;
  for (size_t from = 0; size_t end : ends) {
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

FailureOr<DeviceImages> dsopt::emitImages(ModuleOp module, const ObjectOptions &options,
                                          StringRef assembler) {
  DeviceImages images;
  FailureOr<TargetAttr> target = getTarget(module);
  if (failed(target))
    return failure();
  if (target->getKind() != TargetKind::CUDA)
    return images;
  FailureOr<std::vector<std::string>> texts = emitPTX(module, options);
  if (failed(texts))
    return failure();
  std::vector<TargetAttr> targets = splitArchitectures(*target);
  std::vector<Assembled> assembled(targets.size());
  if (!assembler.empty()) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < targets.size(); ++i)
      threads.emplace_back([&, i] { assembled[i] = assemble(assembler, (*texts)[i], targets[i], options); });
    for (std::thread &thread : threads)
      thread.join();
  }
  auto add = [&](DeviceImage image, StringRef bytes) {
    images.bytes.resize(llvm::alignTo(images.bytes.size(), DSOPT_IMAGE_ALIGNMENT));
    image.offset = images.bytes.size();
    image.bytes = bytes.size();
    images.bytes += bytes;
    images.list.push_back(image);
  };
  for (auto [one, text, made] : llvm::zip_equal(targets, *texts, assembled)) {
    if (!made.error.empty())
      return module.emitError("cannot be assembled for ") << one.getArch() << ": " << made.error;
    add({one.getArch().str(), "ptx"}, StringRef(text.c_str(), text.size() + 1));
    if (!assembler.empty())
      add({one.getArch().str(), "cubin", 0, 0, made.registers, made.shared, made.spills}, made.cubin);
  }
  return images;
}
