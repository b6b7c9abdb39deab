//===- NpzWriter.h - small .npz archives for tests --------------*- C++ -*-===//

#ifndef DSOPT_TEST_NPZWRITER_H
#define DSOPT_TEST_NPZWRITER_H

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <zlib.h>

namespace dsopt::test {

/// Collects arrays and writes them as NumPy's savez (or savez_compressed) would.
class NpzWriter {
public:
  bool deflate = false, zip64 = false;
  int npyVersion = 1;

  template <typename T>
  void add(const std::string &name, const std::string &dtype, const std::string &shape,
           const std::vector<T> &values, const std::string &order = "False") {
    std::string header =
        "{'descr': '" + dtype + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
    std::string member = "\x93NUMPY";
    member += static_cast<char>(npyVersion);
    member += '\0';
    put(member, header.size(), npyVersion == 1 ? 2 : 4);
    member += header;
    member.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
    addMember(name + ".npy", member);
  }

  std::string bytes() const {
    std::string file = body;
    uint64_t directoryAt = body.size();
    file += directory;
    if (zip64) {
      uint64_t record = file.size();
      put(file, 0x06064b50, 4);
      put(file, 44, 8);
      put(file, 45, 2);
      put(file, 45, 2);
      put(file, 0, 8);
      put(file, count, 8);
      put(file, count, 8);
      put(file, directory.size(), 8);
      put(file, directoryAt, 8);
      put(file, 0x07064b50, 4);
      put(file, 0, 4);
      put(file, record, 8);
      put(file, 1, 4);
    }
    put(file, 0x06054b50, 4);
    put(file, 0, 4);
    put(file, zip64 ? 0xffff : count, 2);
    put(file, zip64 ? 0xffff : count, 2);
    put(file, zip64 ? 0xffffffff : directory.size(), 4);
    put(file, zip64 ? 0xffffffff : directoryAt, 4);
    put(file, 0, 2);
    return file;
  }

  void write(const std::string &path) const { std::ofstream(path, std::ios::binary) << bytes(); }

private:
  std::string body, directory;
  uint64_t count = 0;

  static void put(std::string &out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      out += static_cast<char>(value >> (8 * i));
  }

  void addMember(const std::string &name, const std::string &data) {
    uint32_t crc = crc32_z(0, reinterpret_cast<const Bytef *>(data.data()), data.size());
    std::string stored = data;
    if (deflate) {
      stored.resize(data.size() + 1024);
      z_stream stream{};
      deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
      stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(data.data()));
      stream.avail_in = static_cast<uInt>(data.size());
      stream.next_out = reinterpret_cast<Bytef *>(stored.data());
      stream.avail_out = static_cast<uInt>(stored.size());
      ::deflate(&stream, Z_FINISH);
      stored.resize(stream.total_out);
      deflateEnd(&stream);
    }
    uint64_t local = body.size();
    std::string extra;
    if (zip64) {
      put(extra, 1, 2);
      put(extra, 24, 2);
      put(extra, data.size(), 8);
      put(extra, stored.size(), 8);
      put(extra, local, 8);
    }
    auto common = [&](std::string &out) {
      put(out, 20, 2);
      put(out, 0, 2);
      put(out, deflate ? 8 : 0, 2);
      put(out, 0, 4);
      put(out, crc, 4);
      put(out, zip64 ? 0xffffffff : stored.size(), 4);
      put(out, zip64 ? 0xffffffff : data.size(), 4);
      put(out, name.size(), 2);
      put(out, extra.size(), 2);
    };
    put(body, 0x04034b50, 4);
    common(body);
    body += name + extra + stored;
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    common(directory);
    put(directory, 0, 2);
    put(directory, 0, 2);
    put(directory, 0, 2);
    put(directory, 0, 4);
    put(directory, zip64 ? 0xffffffff : local, 4);
    directory += name + extra;
    ++count;
  }
};

} // namespace dsopt::test

#endif // DSOPT_TEST_NPZWRITER_H
