//===- SavedState.cpp - a run's state to and from a checkpoint ------------===//

#include "Core/SavedState.h"
#include "Core/Parameters.h"
#include "dsopt/Runtime/Checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dsopt::runtime {
namespace fs = std::filesystem;

/// Bytes after which a new file begins.
static constexpr int64_t kFileBytes = INT64_C(4) << 30;

namespace {
/// Elements [begin, end) of a tensor, which a rank has at `address`.
struct Piece {
  size_t tensor = 0;
  int64_t begin = 0, end = 0;
  char *address = nullptr;
};

/// Which elements of a bucket's buffer a rank has, or writes: those of each parameter in [first, last).
template <typename Body>
void forParameters(const Program &program, int64_t bucket, int64_t first, int64_t last, Body body) {
  for (const Parameter &parameter : program.parameters) {
    if (parameter.bucket != bucket)
      continue;
    int64_t begin = std::max(first, parameter.bucket_offset);
    int64_t end = std::min(last, parameter.bucket_offset + elementsOf(parameter));
    if (begin < end)
      body(parameter, begin, end);
  }
}

/// The optimizer's states in an update's operands, but for masters, which are the parameters themselves.
template <typename Body> void forStates(const Program &program, const Position &position, Body body) {
  for (const Action &action : position.updates) {
    std::string prefix = program.buckets[action.bucket].name + ".";
    for (size_t i = 2; i < action.refs.size(); ++i) {
      const std::string &name = position.buffers[action.refs[i].buffer].name;
      if (name != prefix + "master")
        body(action, action.refs[i], name.substr(std::min(prefix.size(), name.size())));
    }
  }
}

/// What a parameter's state is called among the saved tensors: a parameter may have that name itself.
std::string stateName(const Program &program, const Parameter &parameter, const std::string &state) {
  std::string name = parameter.name + "." + state;
  while (std::any_of(program.parameters.begin(), program.parameters.end(),
                     [&](const Parameter &other) { return other.name == name; }))
    name += "~";
  return name;
}

size_t indexOf(const std::vector<Parameter> &tensors, const std::string &name) {
  return std::find_if(tensors.begin(), tensors.end(), [&](auto &tensor) { return tensor.name == name; }) -
         tensors.begin();
}

/// The optimizer state that a rank has, or (`writes`) its share of it where all have the same.
std::vector<Piece> statePieces(const Program &program, const RankInfo &info, const Addresses &addresses,
                               const std::vector<Parameter> &tensors, bool writes) {
  std::vector<Piece> pieces;
  forStates(program, program.positions[info.position],
            [&](const Action &action, const Ref &ref, const std::string &state) {
              int64_t slice = program.buckets[action.bucket].padded / program.dp;
              int64_t start = action.sliced ? info.dpRank * slice : 0, first = start,
                      last = start + action.elements;
              if (writes && !action.sliced)
                first = info.dpRank * slice, last = first + slice;
              forParameters(program, action.bucket, first, last,
                            [&](const Parameter &parameter, int64_t begin, int64_t end) {
                              pieces.push_back({indexOf(tensors, stateName(program, parameter, state)),
                                                begin - parameter.bucket_offset,
                                                end - parameter.bucket_offset,
                                                addresses.at(ref) + (begin - start) * 4});
                            });
            });
  return pieces;
}

/// The parameter values that a rank writes.
std::vector<Piece> parameterPieces(const Program &program, const RankInfo &info, const Addresses &addresses,
                                   const std::vector<Parameter> &tensors) {
  std::vector<Piece> pieces;
  for (const Parameter &parameter : program.parameters) {
    int64_t position = 0;
    const Position::Load *load = parameterHolder(program, parameter, position);
    if (!load || position != info.position)
      continue;
    int64_t slice = program.buckets[load->bucket].padded / program.dp, first = info.dpRank * slice;
    int64_t start = load->sliced ? first : 0, size = elementBytes(parameter.type);
    int64_t begin = std::max(first, parameter.bucket_offset);
    int64_t end = std::min(first + slice, parameter.bucket_offset + elementsOf(parameter));
    if (begin < end)
      pieces.push_back({indexOf(tensors, parameter.name), begin - parameter.bucket_offset,
                        end - parameter.bucket_offset, addresses.at(load->target) + (begin - start) * size});
  }
  return pieces;
}

[[noreturn]] void failed(const std::string &path, const char *what) {
  throw Error(StatusFailure, path + ": " + what + ": " + std::strerror(errno));
}

/// The files of a checkpoint, open for writing.
class Files {
public:
  explicit Files(std::string folder) : folder(std::move(folder)) {}
  ~Files() {
    for (auto &[name, descriptor] : files)
      close(descriptor);
  }
  int open(const std::string &name, int flags = O_RDWR) {
    auto it = files.find(name);
    if (it != files.end())
      return it->second;
    int descriptor = ::open(path(name).c_str(), flags | O_CLOEXEC, 0666);
    if (descriptor < 0)
      failed(path(name), "cannot be written");
    files[name] = descriptor;
    return descriptor;
  }
  void write(const std::string &name, int64_t offset, const char *data, int64_t bytes) {
    if (!writeFully(open(name), offset, data, bytes))
      failed(path(name), "writing failed");
  }
  void read(const std::string &name, int64_t offset, char *data, int64_t bytes) {
    if (!readFully(open(name), offset, data, bytes))
      failed(path(name), "cannot be read back");
  }
  void sync() {
    for (auto &[name, descriptor] : files)
      if (fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS)
        failed(path(name), "writing failed");
  }

private:
  std::string path(const std::string &name) const { return folder + "/" + name; }
  std::string folder;
  std::map<std::string, int> files;
};

/// Where the tensors lie: parameters and state apart, some GiB a file. Returns the files' headers.
std::map<std::string, std::string> layOut(std::vector<Parameter> &tensors, size_t parameters) {
  std::map<std::string, std::string> headers;
  for (auto [kind, begin, end] :
       {std::tuple("model", size_t(0), parameters), std::tuple("optimizer", parameters, tensors.size())}) {
    std::vector<std::vector<Parameter *>> groups;
    int64_t bytes = kFileBytes;
    for (size_t i = begin; i < end; ++i) {
      if (bytes >= kFileBytes) {
        groups.emplace_back();
        bytes = 0;
      }
      groups.back().push_back(&tensors[i]);
      bytes += tensors[i].bytes;
    }
    for (size_t i = 0; i < groups.size(); ++i) {
      char number[48] = "";
      if (groups.size() > 1)
        std::snprintf(number, sizeof number, "-%05zu-of-%05zu", i + 1, groups.size());
      std::string name = std::string(kind) + number + ".safetensors";
      for (Parameter *tensor : groups[i])
        tensor->file = name;
      headers[name] = layOutSafetensors(groups[i]);
    }
  }
  return headers;
}

void syncFolder(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  fsync(descriptor);
  close(descriptor);
}

/// The folder that becomes the checkpoint; removed unless it does.
class Draft {
public:
  Draft(const std::string &target, bool isMine) : target(target), path(target + ".tmp"), isMine(isMine) {
    if (!isMine)
      return;
    std::error_code error;
    fs::remove_all(path, error);
    fs::create_directories(path, error);
    if (error)
      throw Error(StatusFailure, path + ": cannot be made: " + error.message());
  }
  ~Draft() {
    std::error_code error;
    if (isMine && !done)
      fs::remove_all(path, error);
  }
  void commit() {
    syncFolder(path);
    std::error_code error;
    fs::remove_all(target, error);
    fs::rename(path, target, error);
    if (error)
      throw Error(StatusFailure, target + ": cannot be put in place: " + error.message());
    syncFolder(fs::path(target).parent_path());
    done = true;
  }
  const std::string target, path;

private:
  bool isMine, done = false;
};

/// Makes a file of its full size, so that a full disk is found before anything is written.
void allocate(Files &files, const std::string &folder, const std::string &name, const std::string &header,
              int64_t bytes) {
  int descriptor = files.open(name, O_RDWR | O_CREAT | O_TRUNC);
  if (int error = posix_fallocate(descriptor, 0, bytes)) {
    errno = error;
    bool unknown = error == EOPNOTSUPP || error == EINVAL;
    if (!unknown || ftruncate(descriptor, bytes) != 0)
      failed(folder + "/" + name, "writing failed");
  }
  files.write(name, 0, header.data(), header.size());
}

/// A hash and which it is: (tensor, chunk).
struct Hash {
  int64_t tensor = -1, chunk = 0;
  uint64_t value = 0;
};
} // namespace

std::vector<Parameter> savedTensors(const Program &program) {
  std::vector<Parameter> tensors;
  auto add = [&](const Parameter &like, const std::string &name, const std::string &type) {
    Parameter tensor;
    tensor.name = name;
    tensor.type = type;
    tensor.shape = like.shape;
    tensor.bytes = wholeBytes(tensor);
    tensors.push_back(std::move(tensor));
  };
  for (const Parameter &parameter : program.parameters) {
    int64_t position = 0;
    if (parameterHolder(program, parameter, position))
      add(parameter, parameter.name, parameter.type);
  }
  for (const Position &position : program.positions)
    forStates(program, position, [&](const Action &action, const Ref &, const std::string &state) {
      for (const Parameter &parameter : program.parameters)
        if (parameter.bucket == action.bucket)
          add(parameter, stateName(program, parameter, state), "f32");
    });
  return tensors;
}

void saveState(const Program &program, const RankInfo &info, const Addresses &addresses, Engine &engine,
               const std::string &checkpoint, Manifest &manifest) {
  std::vector<Parameter> &tensors = manifest.tensors = savedTensors(program);
  int64_t position = 0;
  size_t parameters =
      std::count_if(program.parameters.begin(), program.parameters.end(), [&](const Parameter &parameter) {
        return parameterHolder(program, parameter, position) != nullptr;
      });
  std::map<std::string, std::string> headers = layOut(tensors, parameters);

  Draft draft(checkpoint, info.rank == 0);
  Files files(draft.path);
  if (info.rank == 0)
    for (const Parameter &tensor : tensors)
      if (auto it = headers.find(tensor.file); it != headers.end()) {
        allocate(files, draft.path, it->first, it->second, tensor.file_bytes);
        headers.erase(it);
      }
  engine.barrier();

  std::vector<Piece> pieces = parameterPieces(program, info, addresses, tensors);
  for (Piece &piece : statePieces(program, info, addresses, tensors, /*writes=*/true))
    pieces.push_back(piece);
  std::vector<Hash> hashes, shared;
  for (const Piece &piece : pieces) {
    const Parameter &tensor = tensors[piece.tensor];
    int64_t size = elementBytes(tensor.type), begin = piece.begin * size, end = piece.end * size;
    files.write(tensor.file, tensor.offset + begin, piece.address, end - begin);
    // Of a chunk that another rank writes a part of, the one who has its first byte reads it back.
    for (int64_t chunk = (begin + kHashedBytes - 1) / kHashedBytes; chunk * kHashedBytes < end; ++chunk) {
      int64_t first = chunk * kHashedBytes, last = std::min(first + kHashedBytes, tensor.bytes);
      if (last <= end)
        hashes.push_back({static_cast<int64_t>(piece.tensor), chunk,
                          XXH3_64bits(piece.address + (first - begin), last - first)});
      else
        shared.push_back({static_cast<int64_t>(piece.tensor), chunk, 0});
    }
  }
  files.sync();
  engine.barrier();
  std::vector<char> whole(shared.empty() ? 0 : kHashedBytes);
  for (Hash &hash : shared) {
    const Parameter &tensor = tensors[hash.tensor];
    int64_t first = hash.chunk * kHashedBytes, bytes = std::min(kHashedBytes, tensor.bytes - first);
    files.read(tensor.file, tensor.offset + first, whole.data(), bytes);
    hash.value = XXH3_64bits(whole.data(), bytes);
    hashes.push_back(hash);
  }

  int64_t mine = hashes.size(), ranks = engine.size();
  std::vector<int64_t> counts(ranks);
  engine.exchange(&mine, sizeof mine, counts.data());
  hashes.resize(*std::max_element(counts.begin(), counts.end()));
  std::vector<Hash> all(hashes.size() * ranks);
  engine.exchange(hashes.data(), hashes.size() * sizeof(Hash), all.data());
  if (info.rank == 0) {
    for (Parameter &tensor : tensors)
      tensor.chunks.resize((tensor.bytes + kHashedBytes - 1) / kHashedBytes);
    for (const Hash &hash : all)
      if (hash.tensor >= 0)
        tensors[hash.tensor].chunks[hash.chunk] = hash.value;
    writeManifest(manifest, draft.path);
    draft.commit();
  }
  engine.barrier();
}

void loadState(const Program &program, const RankInfo &info, const Addresses &addresses, ThreadPool *pool,
               const std::string &checkpoint, const Manifest &manifest) {
  std::vector<Parameter> tensors = savedTensors(program);
  auto describe = [](const Parameter &tensor) {
    std::string text = "'" + tensor.name + "' " + tensor.type + " [";
    for (size_t i = 0; i < tensor.shape.size(); ++i)
      text += (i ? ", " : "") + std::to_string(tensor.shape[i]);
    return text + "]";
  };
  std::set<std::string> names;
  for (Parameter &tensor : tensors) {
    const Parameter *stored = manifest.find(tensor.name);
    if (!stored || stored->type != tensor.type || stored->shape != tensor.shape)
      throw Error(StatusInput, checkpoint + " is of another model or optimizer: the program has " +
                                   describe(tensor) + ", the checkpoint " +
                                   (stored ? describe(*stored) : "nothing of that name"));
    tensor = *stored;
    names.insert(tensor.name);
  }
  // What only evaluates leaves the optimizer's state where it is.
  for (const Parameter &stored : manifest.tensors)
    if (program.trains && !names.count(stored.name))
      throw Error(StatusInput, checkpoint + " is of another model or optimizer: it has " + describe(stored) +
                                   ", the program nothing of that name");

  ParameterFiles files(checkpoint, pool, "the checkpoint was written");
  Program stored = program;
  for (Parameter &parameter : stored.parameters)
    if (const Parameter *tensor = manifest.find(parameter.name)) {
      parameter.file = tensor->file;
      parameter.offset = tensor->offset;
      parameter.bytes = tensor->bytes;
      parameter.source.clear();
      parameter.file_bytes = tensor->file_bytes;
      parameter.chunks = tensor->chunks;
    }
  loadParameters(stored, info, addresses, files);
  for (const Piece &piece : statePieces(program, info, addresses, tensors, /*writes=*/false))
    files.read(tensors[piece.tensor], piece.begin, piece.end, piece.address);
}

} // namespace dsopt::runtime
