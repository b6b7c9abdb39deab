//===- Npz.h - reads NumPy's .npz archives ----------------------*- C++ -*-===//
//
// The zip directory (zip64 included), the .npy headers of its members, and their
// bytes: stored members are mapped, deflated ones inflated once on request. Bytes
// are compared with their checksum before anybody gets them. Errors are Error(1)
// and name the file and the member.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_NPZ_H
#define DSOPT_RUNTIME_NPZ_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dsopt::runtime {

class MappedFile;

/// One member that is a .npy array.
struct NpzArray {
  std::string name;  ///< without ".npy"
  std::string dtype; ///< as NumPy wrote it: "<f4"
  std::string type;  ///< as MLIR spells it (f32, i64, ui8, i1 ...), empty if dsopt reads no such type
  std::vector<int64_t> shape;
  bool fortran = false; ///< column-major: not readable
  int64_t elementBytes = 0;
  int64_t bytes = 0; ///< of the array

  // Where it lies in the archive.
  bool deflated = false;
  uint64_t offset = 0, storedBytes = 0; ///< of the member's data
  uint64_t memberBytes = 0;             ///< inflated: header and array
  int64_t headerBytes = 0;
  uint32_t crc = 0;
};

class NpzFile {
public:
  explicit NpzFile(const std::string &path);
  ~NpzFile();
  NpzFile(const NpzFile &) = delete;

  const std::vector<NpzArray> &arrays() const { return members; }
  /// The array called `name`, or null.
  const NpzArray *find(const std::string &name) const;
  /// Its bytes, little-endian and row-major. The first time reads them all, by every CPU of this process:
  /// they are inflated and their checksum is compared.
  const char *data(const NpzArray &array);
  const std::string &path() const { return filePath; }

private:
  /// A member that was asked for.
  struct Opened {
    const uint8_t *bytes = nullptr;
    uint64_t inflated = 0; ///< how many they are, in memory of their own; 0: they are the file's
  };

  std::string filePath;
  std::unique_ptr<MappedFile> mapped;
  const uint8_t *file;
  uint64_t fileBytes;
  std::vector<NpzArray> members;
  std::map<const NpzArray *, Opened> opened;

  [[noreturn]] void damaged(const std::string &what) const;
  const uint8_t *at(uint64_t offset, uint64_t bytes, const char *what) const;
  void readDirectory();
  void readHeader(NpzArray &array);
  void inflateWhole(const NpzArray &array, Opened &member) const;
};

/// Name, type and shape of every array, without reading any.
std::vector<NpzArray> readNpzHeaders(const std::string &path);

/// "f32 [4, 8]" for messages; an unreadable type shows NumPy's name.
std::string describeArray(const NpzArray &array);
std::string describeShape(const std::vector<int64_t> &shape);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_NPZ_H
