//===- Produce.cpp - from a lowered module to a file or a run -------------===//

#include "Produce.h"
#include "Output.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Runtime/AtomicFile.h"
#include "dsopt/Runtime/Executable.h"
#include "dsopt/Runtime/Prompts.h"
#include "dsopt/Target/Target.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

using namespace mlir;
using dsopt::runtime::Error;
using dsopt::runtime::ParsedOptions;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace dsopt {

/// Where ./dev setup -cuda puts CUDA's libraries, which programs open: behind what the user names.
static void offerLibraries(llvm::StringRef folder) {
  const char *given = std::getenv("LD_LIBRARY_PATH");
  std::string paths = given ? given : "";
  std::error_code error;
  auto add = [&](const std::string &library) {
    if (fs::is_directory(library))
      paths += (paths.empty() ? "" : ":") + library;
  };
  for (fs::directory_iterator python(folder + "/../venv/lib", error), end; !error && python != end;
       python.increment(error)) {
    std::error_code none;
    for (fs::directory_iterator package(python->path() + "/site-packages/nvidia", none);
         !none && package != end; package.increment(none))
      add(package->path() + "/lib");
  }
  if (!paths.empty())
    setenv("LD_LIBRARY_PATH", paths.c_str(), /*replace=*/1);
}

/// dsopt-run lies beside dsopt.
static std::string runtimePath() {
  static int anchor;
  llvm::SmallString<256> self(fs::getMainExecutable("dsopt", &anchor));
  path::remove_filename(self);
  path::append(self, "dsopt-run");
  if (!fs::exists(self))
    throw Error(1, "cannot find dsopt-run beside dsopt (looked for " + self.str().str() + ")");
  return self.str().str();
}

int inMemory(llvm::StringRef bytes) {
  int file = memfd_create("dsopt-program", 0);
  for (size_t done = 0; file >= 0 && done < bytes.size();) {
    ssize_t wrote = write(file, bytes.data() + done, bytes.size() - done);
    if (wrote <= 0) {
      close(file);
      file = -1;
    } else
      done += wrote;
  }
  if (file < 0)
    throw Error(2, std::string("cannot keep the program in memory: ") + std::strerror(errno));
  return file;
}

void becomeRuntime(int file, const ParsedOptions &options) {
  std::vector<std::string> words = {runtimePath(), "/proc/self/fd/" + std::to_string(file)};
  for (const auto &[name, values] : options.values)
    if (const runtime::OptionRow *row = runtime::findOption(name);
        row && row->use == runtime::OptionUse::Run && !(name == "report" && options.text(name) == "import"))
      for (const std::string &value : values)
        words.push_back("-" + name + (row->kind == runtime::OptionKind::Flag ? "" : "=" + value));
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  offerLibraries(path::parent_path(arguments[0]));
  execv(arguments[0], arguments.data());
  throw Error(2, "cannot start " + words[0] + ": " + std::strerror(errno));
}

/// Where compiled kernels are kept: DSOPT_CACHE if set ("off": nowhere), else the user's folder for caches.
static std::string cacheFolder() {
  if (const char *given = std::getenv("DSOPT_CACHE"))
    return llvm::StringRef(given) == "off" ? "" : given;
  llvm::SmallString<128> folder;
  if (!path::cache_directory(folder))
    return "";
  path::append(folder, "dsopt");
  return folder.str().str();
}

bool makesObjects(const ParsedOptions &options) {
  bool isText = options.has("plan") || options.has("inspect") || options.has("list-parameters") ||
                options.has("print-pipeline") || options.has("tune") ||
                (options.has("emit") && options.text("emit") != "obj");
  return !isText;
}

std::string outputFile(const std::string &path, const ParsedOptions &options) {
  if (options.has("o") || options.has("run") || !makesObjects(options))
    return options.text("o");
  return path::stem(path).str() + (options.text("emit") == "obj" ? ".o" : "");
}

/// What was written, how it is started, and what it was told to do by default.
static void sayWritten(ModuleOp module, const ParsedOptions &options, const std::string &path,
                       const std::string &output, bool isForBoth, bool carriesTexts) {
  int64_t dp = options::dp(module).value_or(1), pp = options::pp(module), sp = options::sp(module),
          tp = options::tp(module);
  std::string ranks = " rank";
  if (dp * pp * sp * tp > 1)
    ranks = " ranks (" + std::to_string(dp) + " dp x " + std::to_string(pp) + " pp" +
            (sp > 1 ? " x " + std::to_string(sp) + " sp" : "") +
            (tp > 1 ? " x " + std::to_string(tp) + " tp" : "") + ")";
  std::string command = runtime::shellWord(llvm::StringRef(output).contains('/') ? output : "./" + output);
  std::string compiledIn;
  for (const auto &[name, values] : options.values)
    if (const runtime::OptionRow *row = runtime::findOption(name); row && row->isCompiledIn())
      for (const std::string &value : values)
        if (value != row->defaultValue)
          compiledIn += " -" + name + (value.empty() ? "" : "=" + value);
  uint64_t size = 0;
  fs::file_size(output, size);
  llvm::outs() << "wrote " << output << " (" << llvm::format("%.1f", size / 1e6) << " MB): " << path
               << " for " << dp * pp * sp * tp << ranks
               << (compiledIn.empty() ? "" : ", compiled with" + compiledIn)
               << (isForBoth ? ", on a GPU or the CPU; " : "; ") << command
               << (getOption(module, "generate", 0) ? carriesTexts ? " -prompt=TEXT" : " -prompt-ids=FILE"
                                                    : " -data=FILE")
               << " runs it, " << command << " -help shows its options\n";
  std::string defaults;
  auto given = dyn_cast_or_null<DictionaryAttr>(getOption(module, "run_defaults"));
  for (NamedAttribute one : given ? given.getValue() : ArrayRef<NamedAttribute>()) {
    llvm::StringRef value = cast<StringAttr>(one.getValue()).getValue();
    defaults += " -" + one.getName().str() + (value.empty() ? "" : "=" + value.str());
  }
  if (!defaults.empty())
    llvm::outs() << "without other options it runs with" << defaults << "\n";
}

ObjectOptions objectOptions() {
  ObjectOptions how;
  how.threads = std::max(1u, std::thread::hardware_concurrency());
  how.cache = cacheFolder();
  return how;
}

std::string assemblerBesideTools() { return findAssembler(path::parent_path(runtimePath())); }

/// A device's code; says so where nobody is there to make machine code of it.
static FailureOr<DeviceImages> makeImages(ModuleOp module, const ObjectOptions &how, bool quiet) {
  if (!isForDevice(module))
    return DeviceImages();
  std::string assembler = assemblerBesideTools();
  if (assembler.empty() && !quiet)
    llvm::errs()
        << "dsopt: no ptxas is there: the program holds PTX alone, which the driver compiles when it "
           "starts (./dev setup -cuda installs one)\n";
  return emitImages(module, how, assembler);
}

/// What a program that generates carries to understand texts: the tokenizer that is asked for, else what lies
/// beside the model.
static std::string carriedTexts(ModuleOp module, const ParsedOptions &options) {
  auto folder = module->getAttrOfType<StringAttr>(graph::kModelFolderAttr);
  llvm::StringRef beside = folder && !folder.getValue().empty() ? folder.getValue() : llvm::StringRef(".");
  runtime::TokenizerFiles own;
  if (fs::is_directory(beside))
    own = runtime::TokenizerFiles::read(beside.str());
  runtime::TokenizerFiles files = runtime::answerFiles(options, std::move(own));
  if (options.has("tokenizer"))
    runtime::Tokenizer check(files);
  return files.bytes.empty() ? "" : files.pack();
}

LogicalResult Product::produce(const ParsedOptions &options) {
  ObjectOptions how = objectOptions();
  std::string emit = options.text("emit"), output = outputFile(path, options);
  if (emit == "llvm") {
    LogicalResult printed = success();
    writeText(output, [&](llvm::raw_ostream &out) { return succeeded(printed = emitLLVM(module, out)); });
    return printed;
  }

  if (emit == "ptx") {
    FailureOr<std::vector<std::string>> texts = emitPTX(module, how);
    if (failed(texts))
      return failure();
    writeText(output, [&](llvm::raw_ostream &out) {
      for (const std::string &text : *texts)
        out << text;
      return true;
    });
    return success();
  }

  FailureOr<DeviceImages> images = makeImages(module, how, options.has("quiet"));
  if (failed(images))
    return failure();
  FailureOr<ProgramTable> program = emitProgram(module, images->list);
  // A run reads it where it is.
  if (succeeded(program) && getOption(module, "generate", 0) && !options.has("run"))
    program->texts = carriedTexts(module, options);
  ObjectBuffers objects;
  if (failed(program) ||
      failed(emitObjects(module, how, *program, protobuf, objects, images->bytes, std::move(known))))
    return failure();
  auto linked = linkObjects(objects, /*relocatable=*/emit == "obj");
  if (!linked)
    throw Error(runtime::StatusFailure, llvm::toString(linked.takeError()));
  llvm::StringRef bytes = (*linked)->getBuffer();
  if (emit == "obj") {
    runtime::AtomicFile file(output);
    file.append(bytes.data(), bytes.size());
    file.commit();
    return success();
  }
  if (!options.has("run")) {
    targets.programs.push_back(std::move(*linked));
    if (targets.programs.size() < targets.each.size())
      return success();
    std::vector<std::string_view> programs;
    for (const auto &program : targets.programs)
      programs.push_back(program->getBuffer());
    runtime::writeExecutable(runtimePath(), programs, output);
    if (!options.has("quiet"))
      sayWritten(module, options, path, output, targets.areSeveral(), !program->texts.empty());
    return success();
  }
  int file = inMemory(bytes);
  if (handover)
    handover->give(file);
  becomeRuntime(file, options);
}

} // namespace dsopt
