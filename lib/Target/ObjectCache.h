//===- ObjectCache.h - compiled groups kept on disk -------------*- C++ -*-===//
//
// A folder of objects named by the hash of everything they come from. A cache
// never fails: what cannot be read, is damaged or cannot be written is compiled
// as if there were none.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TARGET_OBJECTCACHE_H
#define DSOPT_LIB_TARGET_OBJECTCACHE_H

#include "dsopt/Target/Target.h"

#include <atomic>

namespace dsopt {

class ObjectCache {
public:
  /// `folder` empty: no cache. `limit`: bytes that stay, of those used last.
  ObjectCache(llvm::StringRef folder, int64_t limit);
  /// Removes what is beyond the limit if something was added.
  ~ObjectCache();

  /// The name of the object that this bitcode becomes.
  static std::string key(llvm::ArrayRef<char> bitcode, TargetAttr target, unsigned optLevel);

  /// The name of the object that functions of this text become: by passes and libraries of these build IDs.
  static std::string key(llvm::StringRef text, llvm::StringRef passes, llvm::StringRef buildIds,
                         TargetAttr target, unsigned optLevel);

  /// Null if it is not there. These may be called by several threads and processes at a time.
  std::unique_ptr<llvm::MemoryBuffer> find(llvm::StringRef key);
  void store(llvm::StringRef key, llvm::StringRef object);
  /// A second name for an object, if that is not empty.
  void link(llvm::StringRef key, llvm::StringRef name);

private:
  std::string pathOf(llvm::StringRef key) const { return folder + "/" + key.str() + ".o"; }
  std::string folder;
  int64_t limit;
  std::atomic<bool> added{false};
};

} // namespace dsopt

#endif // DSOPT_LIB_TARGET_OBJECTCACHE_H
