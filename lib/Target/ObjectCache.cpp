//===- ObjectCache.cpp - compiled groups kept on disk ---------------------===//

#include "ObjectCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <fcntl.h>

using namespace llvm;
using namespace dsopt;
namespace fs = llvm::sys::fs;

/// Of the file's form.
static constexpr StringLiteral kVersion = "dsopt object 1\n";
using Digest = BLAKE3Result<32>;

static StringRef text(const Digest &digest) {
  return StringRef(reinterpret_cast<const char *>(digest.data()), digest.size());
}

ObjectCache::ObjectCache(StringRef folder, int64_t limit) : folder(folder), limit(limit) {
  if (!folder.empty() && fs::create_directories(folder))
    this->folder.clear();
}

/// `code` after all that says what becomes of it: which LLVM it is, too, however its version may be written.
static std::string keyOf(ArrayRef<StringRef> parts, StringRef code, TargetAttr target, unsigned optLevel) {
  BLAKE3 hash;
  std::string features = featureText(target);
  SmallVector<StringRef> all = {kVersion,       DSOPT_CODE_GENERATOR, LLVM_VERSION_STRING,
                                DSOPT_LLVM_SUM, target.getTriple(),   target.getArch(),
                                features};
  all.append(parts.begin(), parts.end());
  for (StringRef part : all) {
    hash.update(part);
    hash.update(StringRef("\0", 1));
  }
  hash.update(std::to_string(optLevel) + (target.getVectorBits() == 512 ? "w" : "n"));
  hash.update(code);
  return toHex(text(hash.final<32>()), /*LowerCase=*/true);
}

std::string ObjectCache::key(ArrayRef<char> bitcode, TargetAttr target, unsigned optLevel) {
  return keyOf({}, StringRef(bitcode.data(), bitcode.size()), target, optLevel);
}

std::string ObjectCache::key(StringRef text, StringRef passes, StringRef buildIds, TargetAttr target,
                             unsigned optLevel) {
  return keyOf({"text", passes, buildIds}, text, target, optLevel);
}

std::unique_ptr<MemoryBuffer> ObjectCache::find(StringRef key) {
  if (folder.empty())
    return nullptr;
  std::string path = pathOf(key);
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return nullptr;
  StringRef bytes = (*file)->getBuffer();
  size_t head = kVersion.size() + sizeof(Digest);
  if (!bytes.starts_with(kVersion) || bytes.size() < head ||
      bytes.substr(kVersion.size(), sizeof(Digest)) !=
          text(BLAKE3::hash<32>(arrayRefFromStringRef(bytes.drop_front(head))))) {
    fs::remove(path);
    return nullptr;
  }
  // Used just now: not among the first to go.
  int descriptor;
  if (!fs::openFileForWrite(path, descriptor, fs::CD_OpenExisting, fs::OF_Append)) {
    fs::setLastAccessAndModificationTime(descriptor, std::chrono::system_clock::now());
    fs::closeFile(descriptor);
  }
  return MemoryBuffer::getMemBufferCopy(bytes.drop_front(head), "dsopt.o");
}

void ObjectCache::store(StringRef key, StringRef object) {
  if (folder.empty())
    return;
  // LLVM's own temporary files take every '%' of the folder's name for a letter to choose.
  std::string name = folder + "/part-XXXXXX";
  int descriptor = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0)
    return;
  raw_fd_ostream os(descriptor, /*shouldClose=*/true);
  os << kVersion << text(BLAKE3::hash<32>(arrayRefFromStringRef(object))) << object;
  os.close();
  bool written = !os.has_error();
  os.clear_error();
  // Whole or not at all.
  if (!written || fs::rename(name, pathOf(key)))
    fs::remove(name);
  added = true;
}

void ObjectCache::link(StringRef key, StringRef name) {
  if (folder.empty() || name.empty())
    return;
  fs::create_hard_link(pathOf(key), pathOf(name));
  added = true;
}

ObjectCache::~ObjectCache() {
  if (!added)
    return;
  struct Entry {
    sys::TimePoint<> used;
    uint64_t bytes;
    std::string path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    auto status = it->status();
    if (!status || status->type() != fs::file_type::regular_file)
      continue;
    entries.push_back({status->getLastModificationTime(), status->getSize(), it->path()});
    total += status->getSize();
  }
  sort(entries, [](const Entry &a, const Entry &b) { return a.used < b.used; });
  for (const Entry &entry : entries) {
    if (total <= uint64_t(limit))
      break;
    if (!fs::remove(entry.path))
      total -= entry.bytes;
  }
}
