//===- ObjectCacheTest.cpp - objects come back whole or not at all --------===//

#include "ObjectCache.h"

#include "dsopt/Interfaces/OptionsDialect.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

using namespace dsopt;
namespace fs = llvm::sys::fs;

namespace {
class Cache : public ::testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(fs::createUniqueDirectory("dsopt-cache", folder)); }
  void TearDown() override { fs::remove_directories(folder); }
  void write(const llvm::Twine &path, llvm::StringRef text) {
    std::error_code error;
    llvm::raw_fd_ostream(path.str(), error) << text;
    ASSERT_FALSE(error);
  }
  static std::string found(ObjectCache &cache, llvm::StringRef key) {
    auto object = cache.find(key);
    return object ? object->getBuffer().str() : "nothing";
  }
  llvm::SmallString<128> folder;
};
} // namespace

TEST_F(Cache, FindsWhatWasStored) {
  ObjectCache cache(folder.str(), 1 << 20);
  EXPECT_EQ(found(cache, "k"), "nothing");
  cache.store("k", "an object");
  EXPECT_EQ(found(cache, "k"), "an object");
  EXPECT_EQ(found(cache, "other"), "nothing");
}

TEST_F(Cache, AFolderMayHaveAnyName) {
  std::string odd = (folder + "/a%s%").str();
  ObjectCache cache(odd, 1 << 20);
  cache.store("k", "an object");
  EXPECT_EQ(found(cache, "k"), "an object");
}

TEST_F(Cache, AnObjectHasTwoNames) {
  ObjectCache cache(folder.str(), 1 << 20);
  cache.store("k", "an object");
  cache.link("k", "other");
  cache.link("k", "");
  cache.link("nothing", "third");
  EXPECT_EQ(found(cache, "other"), "an object");
  EXPECT_EQ(found(cache, "third"), "nothing");
}

TEST_F(Cache, KeysTellTargetsApart) {
  mlir::DialectRegistry registry;
  registry.insert<OptionsDialect>();
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto target = [&](const char *arch) {
    return *resolveTarget(mlir::UnknownLoc::get(&context), arch, /*threads=*/1);
  };
  TargetAttr one = target("znver4"), two = target("x86-64-v3");
  llvm::SmallVector<char> bitcode = {'b', 'c'};
  EXPECT_EQ(ObjectCache::key(bitcode, one, 3), ObjectCache::key(bitcode, one, 3));
  EXPECT_NE(ObjectCache::key(bitcode, one, 3), ObjectCache::key(bitcode, two, 3));
  EXPECT_NE(ObjectCache::key(bitcode, one, 3), ObjectCache::key(bitcode, one, 2));
  EXPECT_NE(ObjectCache::key(bitcode, one, 3), ObjectCache::key({}, one, 3));
  std::string text = ObjectCache::key("text", "passes", "ids", one, 3);
  EXPECT_EQ(text, ObjectCache::key("text", "passes", "ids", one, 3));
  EXPECT_NE(text, ObjectCache::key("text2", "passes", "ids", one, 3));
  EXPECT_NE(text, ObjectCache::key("text", "passes2", "ids", one, 3));
  EXPECT_NE(text, ObjectCache::key("text", "passes", "ids2", one, 3));
  EXPECT_NE(text, ObjectCache::key("text", "passes", "ids", two, 3));
}

TEST_F(Cache, DamagedObjectsAreForgotten) {
  ObjectCache cache(folder.str(), 1 << 20);
  cache.store("k", "an object");
  std::string path = (folder + "/k.o").str(), bytes;
  {
    auto file = llvm::MemoryBuffer::getFile(path);
    ASSERT_TRUE(bool(file));
    bytes = (*file)->getBuffer().str();
  }
  for (size_t at : {size_t(0), bytes.size() / 2, bytes.size() - 1}) {
    std::string changed = bytes;
    changed[at] ^= 1;
    write(path, changed);
    EXPECT_EQ(found(cache, "k"), "nothing") << "byte " << at;
    EXPECT_FALSE(fs::exists(path));
  }
  write(path, llvm::StringRef(bytes).drop_back(3));
  EXPECT_EQ(found(cache, "k"), "nothing");
}

TEST_F(Cache, AFolderThatCannotBeWrittenIsNoCache) {
  write(folder + "/file", "");
  ObjectCache cache((folder + "/file/cache").str(), 1 << 20);
  cache.store("k", "an object");
  EXPECT_EQ(found(cache, "k"), "nothing");
  ObjectCache none("", 1 << 20);
  none.store("k", "an object");
  EXPECT_EQ(found(none, "k"), "nothing");
}

TEST_F(Cache, TheOldestGoFirst) {
  std::string object(1000, 'x');
  for (const char *key : {"a", "b", "c"}) {
    ObjectCache(folder.str(), 1 << 20).store(key, object);
    int descriptor;
    ASSERT_FALSE(
        fs::openFileForWrite(folder + "/" + key + ".o", descriptor, fs::CD_OpenExisting, fs::OF_Append));
    auto age = std::chrono::hours('d' - *key);
    fs::setLastAccessAndModificationTime(descriptor, std::chrono::system_clock::now() - age);
    fs::closeFile(descriptor);
  }
  {
    ObjectCache cache(folder.str(), 2500);
    EXPECT_EQ(found(cache, "a"), object); // used: now the youngest
    cache.store("d", object);
  }
  ObjectCache cache(folder.str(), 2500);
  EXPECT_EQ(found(cache, "a"), object);
  EXPECT_EQ(found(cache, "b"), "nothing");
  EXPECT_EQ(found(cache, "c"), "nothing");
  EXPECT_EQ(found(cache, "d"), object);
}
