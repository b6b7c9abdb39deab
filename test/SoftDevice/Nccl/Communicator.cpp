//===- Communicator.cpp - a communicator and what it has to do ------------===//

#include "Communicator.h"
#include "Machine/Numbers.h"

#include <cstdio>
#include <cstring>

namespace softdevice {

std::string &lastNcclError() {
  static std::string text;
  return text;
}

static const char *const kTypes[] = {"int8",   "uint8",   "int32",   "uint32",  "int64",
                                     "uint64", "float16", "float32", "float64", "bfloat16"};
static constexpr ncclDataType_t kFloat16 = 6, kBfloat16 = 9;
static constexpr size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

size_t bytesOf(ncclDataType_t type) {
  if (type < 0 || type > 9)
    throw NcclError{ncclInvalidArgument, "type " + std::to_string(type) + " is unknown"};
  return kBytes[type];
}

/// Rounded to the type each time.
static void addTo(std::string &value, const std::string &other, ncclDataType_t type) {
  for (size_t at = 0; at < value.size(); at += kBytes[type]) {
    auto read = [&](const std::string &from) {
      float number = 0;
      if (type == kFloat16) {
        uint16_t half;
        std::memcpy(&half, from.data() + at, sizeof(half));
        return fromF16(half);
      }
      std::memcpy(reinterpret_cast<char *>(&number) + (type == kBfloat16 ? 2 : 0), from.data() + at,
                  kBytes[type]);
      return number;
    };
    float sum = read(value) + read(other);
    uint32_t bits;
    std::memcpy(&bits, &sum, sizeof(bits));
    if (type == kFloat16)
      bits = toF16(sum);
    if (type == kBfloat16)
      bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    std::memcpy(value.data() + at, &bits, kBytes[type]);
  }
}

static std::string nameOf(const ncclUniqueId &id) { return {id.internal, strnlen(id.internal, 32)}; }

Communicator::Communicator(const ncclUniqueId &id, int rank, int size, const CUuuid &device)
    : rank(rank), size(size),
      wire(std::make_unique<Wire>(nameOf(id), rank, size, std::string(device.bytes, sizeof(device.bytes)))),
      device(device.bytes, sizeof(device.bytes)), sent(size) {}

void Communicator::fail(ncclResult_t result, const std::string &text) {
  error = result;
  lastNcclError() = text;
  std::fprintf(stderr, "software nccl: %s\n", text.c_str());
}

std::string Communicator::describe(const Header &header) const {
  return std::string(header.kind == Header::Gather ? "a part of ncclAllGather"
                     : header.kind == Header::Sum  ? "a part of ncclReduceScatter"
                                                   : "ncclSend") +
         " of " + std::to_string(header.count) + " " + kTypes[header.type];
}

void Communicator::join() {
  wire->drive();
  for (int peer = 0; peer < size; ++peer)
    if (peer != rank && wire->hello(peer).empty() && wire->isGone(peer))
      return fail(ncclRemoteError, "rank " + std::to_string(peer) + " was gone before all had come");
  if (!wire->isJoined())
    return;
  hasJoined = true;
  for (int peer = 0; peer < size; ++peer)
    if (peer != rank && wire->hello(peer) == device)
      return fail(ncclInvalidUsage, "Duplicate GPU detected : rank " + std::to_string(rank) + " and rank " +
                                        std::to_string(peer) + " both on CUDA device");
}

ncclResult_t Communicator::state() {
  if (!hasJoined && error == ncclSuccess)
    join();
  if (error != ncclSuccess)
    return error;
  if (!hasJoined)
    return ncclInProgress;
  wire->drive();
  // It may take its time.
  if (!issued.empty() && State::get().timeline->draw(2))
    submit();
  return issued.empty() ? error : ncclInProgress;
}

ncclResult_t Communicator::issue(std::shared_ptr<Operation> operation) {
  if (error != ncclSuccess)
    return error;
  if (!hasJoined || !issued.empty())
    throw NcclError{ncclInvalidArgument, operation->what + " while the communicator is in progress"};
  issued.push_back(std::move(operation));
  if (isBlocking || State::get().timeline->draw(2))
    submit();
  return issued.empty() ? ncclSuccess : ncclInProgress;
}

void Communicator::submit() {
  State &state = State::get();
  for (std::shared_ptr<Operation> &operation : issued) {
    operation->before = last && !last->isDone ? last : nullptr;
    last = operation;
    state.submit(
        operation->stream, operation->what,
        [self = shared_from_this(), operation](std::mt19937_64 &) { return self->finish(*operation); },
        [self = shared_from_this(), operation] { return self->isReady(*operation); });
  }
  issued.clear();
}

void Communicator::abort() {
  isAborted = true;
  wire.reset();
  issued.clear();
}

bool Communicator::isReady(Operation &operation) {
  if (isAborted)
    return true;
  if (error != ncclSuccess || (operation.before && !operation.before->isDone))
    return false;
  operation.before = nullptr;
  if (!operation.hasBegun)
    begin(operation);
  wire->drive();
  receive(operation);
  if (error != ncclSuccess)
    return false;
  if (operation.arrived.size() < operation.receives.size())
    return false;
  for (int peer = 0; peer < size; ++peer)
    if (wire->takenBy(peer) < sent[peer]) {
      if (wire->isGone(peer))
        fail(ncclRemoteError,
             "rank " + std::to_string(peer) + " is gone, and " + operation.what + " has a part for it");
      return false;
    }
  return true;
}

void Communicator::begin(Operation &operation) {
  State &state = State::get();
  operation.hasBegun = true;
  for (const Part &part : operation.sends) {
    size_t bytes = part.count * kBytes[part.type];
    std::string value;
    if (bytes)
      value.assign(state.memoryOf(part.address).reach(part.address, bytes, true, false, operation.what),
                   bytes);
    if (part.peer == rank) {
      operation.kept.push_back(std::move(value));
      continue;
    }
    ++sent[part.peer];
    wire->send(part.peer, {part.kind, static_cast<uint32_t>(part.type), part.count}, value);
  }
}

/// In order: peers' parts for this rank come in theirs.
void Communicator::receive(Operation &operation) {
  while (operation.arrived.size() < operation.receives.size()) {
    const Part &part = operation.receives[operation.arrived.size()];
    if (part.peer == rank) {
      operation.arrived.push_back(operation.kept.front());
      operation.kept.erase(operation.kept.begin());
      continue;
    }
    std::deque<Message> &inbox = wire->inbox(part.peer);
    std::string peer = "rank " + std::to_string(part.peer);
    if (inbox.empty()) {
      if (wire->isGone(part.peer))
        fail(ncclRemoteError, peer + " is gone, and " + operation.what + " expects a part of it");
      return;
    }
    Header expected{part.kind, static_cast<uint32_t>(part.type), part.count};
    const Header &got = inbox.front().header;
    if (got.kind != expected.kind || got.type != expected.type || got.count != expected.count)
      return fail(ncclInvalidUsage, "rank " + std::to_string(rank) + " expects " + describe(expected) +
                                        " of " + peer + ", which has " + describe(got));
    operation.arrived.push_back(std::move(inbox.front().bytes));
    inbox.pop_front();
    wire->send(part.peer, {Header::Taken}, "");
  }
}

Footprint Communicator::finish(Operation &operation) {
  operation.isDone = true;
  Footprint touched;
  if (isAborted)
    return touched;
  State &state = State::get();
  for (const Part &part : operation.sends)
    if (size_t bytes = part.count * kBytes[part.type])
      touched.add(part.address, bytes, false);
  for (size_t i = 0; i < operation.receives.size(); ++i) {
    const Part &part = operation.receives[i];
    const std::string &value = operation.arrived[i];
    if (value.empty() || part.kind == Header::Sum)
      continue;
    char *to = state.memoryOf(part.address).reach(part.address, value.size(), false, true, operation.what);
    std::memcpy(to, value.data(), value.size());
    touched.add(part.address, value.size(), true);
  }
  for (const Sum &sum : operation.sums) {
    std::string value = operation.arrived[sum.firstPart];
    for (size_t part = 1; part < sum.parts; ++part)
      addTo(value, operation.arrived[sum.firstPart + part], sum.type);
    if (value.empty())
      continue;
    std::memcpy(state.memoryOf(sum.address).reach(sum.address, value.size(), false, true, operation.what),
                value.data(), value.size());
    touched.add(sum.address, value.size(), true);
  }
  operation.arrived.clear();
  return touched;
}

} // namespace softdevice
