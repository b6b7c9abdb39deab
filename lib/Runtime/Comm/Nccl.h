//===- Nccl.h - NCCL, opened at run time ------------------------*- C++ -*-===//
//
// `Library` is the library, `Communicator` a rank's end of one of its communicators, which
// does not block: what is begun on it goes to the stream by and by, and until it `isSettled`
// nothing else is begun. Failures are Errors of status 2 with what the library says.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_COMM_NCCL_H
#define DSOPT_LIB_RUNTIME_COMM_NCCL_H

#include "Comm/NcclApi.h"
#include "dsopt/Runtime/Element.h"
#include "dsopt/Runtime/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dsopt::runtime::nccl {

/// Of status 2: what a call or a communicator says.
struct Failure : Error {
  explicit Failure(const std::string &message) : Error(StatusFailure, message) {}
};

struct Library {
#define DSOPT_MEMBER(name, returns, parameters) returns(*name) parameters = nullptr;
  DSOPT_NCCL_LIBRARY(DSOPT_MEMBER)
#undef DSOPT_MEMBER

  /// The library, opened when first asked for. An Error of status 2 says what is missing, which version is
  /// there and which is needed.
  static const Library &get();
  /// Fails unless the result is success or that something is begun.
  void check(Result result, const char *call, Handle communicator = nullptr) const;
};

/// One of several sends and receives that are one operation. `peer` is a place in the communicator.
struct Transfer {
  int peer;
  const void *source; ///< null: it is received
  void *target;       ///< null: it is sent
  int64_t bytes;
};

class Communicator {
public:
  /// `ranks` as the run numbers them, `self` this rank's place.
  Communicator(std::vector<int> ranks, int self) : members(std::move(ranks)), place(self) {}
  ~Communicator() { abort(); }
  Communicator(const Communicator &) = delete;

  /// Begins to join the others, which all come with one id; the thread's device is this rank's.
  void join(const UniqueId &id);
  /// Whether all that was begun is on its streams. An Error where this communicator has failed.
  bool isSettled() const;
  /// A communicator of one rank has nobody to join.
  bool isOpen() const { return handle != nullptr; }
  /// Ends what it does on the device; nothing else can be done with it then.
  void abort();
  /// To part from the others in good order: `leave`, then `close` once it is settled.
  void leave();
  void close();

  void gather(const void *slice, void *target, int64_t bytes, StreamHandle stream);
  /// Adds in NCCL's own order; `elements` of each slice.
  void reduce(const void *whole, void *slice, int64_t elements, Element type, StreamHandle stream);
  void exchange(const std::vector<Transfer> &transfers, StreamHandle stream);

  const std::vector<int> &ranks() const { return members; }
  int size() const { return static_cast<int>(members.size()); }
  int self() const { return place; }

private:
  std::vector<int> members;
  int place;
  Handle handle = nullptr;
};

} // namespace dsopt::runtime::nccl

#endif // DSOPT_LIB_RUNTIME_COMM_NCCL_H
