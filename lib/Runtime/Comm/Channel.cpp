//===- Channel.cpp - a connection that both sides proved ------------------===//

#include "Comm/Channel.h"
#include "Comm/Hmac.h"

#include <algorithm>

namespace dsopt::runtime {

/// What ranks begin with: a name, and the version of all that follows.
static constexpr std::string_view kMagic = "dsopt ranks 3\n", kName = kMagic.substr(0, 12);
static constexpr size_t kGreetingBytes = kMagic.size() + sizeof(uint64_t) + kProofBytes;
static constexpr size_t kAnswerBytes = kMagic.size() + 1 + kProofBytes;
static constexpr size_t kHeadBytes = 2 * sizeof(uint32_t), kTagBytes = 16;

template <typename T> static std::string_view bytesOf(const T &value) {
  return {reinterpret_cast<const char *>(&value), sizeof value};
}

Channel::Channel(Side side, std::string key, uint64_t job, std::string nonce, size_t limit)
    : side(side), key(std::move(key)), nonce(std::move(nonce)), job(job), limit(limit) {
  if (side == Caller) {
    out += kMagic;
    out += bytesOf(job);
    out += this->nonce;
    expect(Answer, kAnswerBytes);
  } else {
    expect(Greeting, kGreetingBytes);
  }
}

void Channel::expect(State newState, size_t bytes) {
  state = newState;
  expected = bytes;
  received.clear();
}

size_t Channel::wants() const { return wrong || ready ? 0 : expected - received.size(); }

void Channel::receive(std::string_view bytes) {
  received += bytes.substr(0, wants());
  // What does not begin as ranks do is told by its first bytes: it may never send as many as a rank.
  if (state == Greeting || state == Answer) {
    size_t begun = std::min(received.size(), kName.size());
    if (received.compare(0, begun, kName.substr(0, begun)) != 0)
      return fail(NoRank);
    if (received.size() >= kMagic.size() && received.compare(0, kMagic.size(), kMagic) != 0) {
      if (state == Greeting)
        out += kMagic; // the caller sees which version is here
      return fail(OtherVersion);
    }
  }
  if (!wrong && !ready && received.size() == expected)
    complete();
}

void Channel::complete() {
  uint32_t length = 0;
  switch (state) {
  case Greeting:
    return greet();
  case Answer:
    return answer();
  case Proof:
    return judge();
  case Verdict:
    return received == "Y" ? expect(Counterproof, kProofBytes) : fail(received == "N" ? OtherKey : NoRank);
  case Counterproof:
    if (!equalInSecret(received, proofOf("listener")))
      return fail(OtherKey);
    key = proofOf("packets");
    return expect(Head, kHeadBytes);
  case Head:
    head = received;
    std::memcpy(&length, head.data() + sizeof length, sizeof length);
    if (length > limit)
      return fail(Damaged);
    return expect(Body, length + kTagBytes);
  case Body: {
    std::string_view body = std::string_view(received).substr(0, received.size() - kTagBytes);
    Side sender = side == Caller ? Listener : Caller;
    std::string frame = head + std::string(body);
    if (!equalInSecret(std::string_view(received).substr(body.size()),
                       tagOf(sender, receivedPackets++, frame)))
      return fail(Damaged);
    std::memcpy(&message.kind, head.data(), sizeof message.kind);
    message.bytes = body;
    ready = true;
    return expect(Head, kHeadBytes);
  }
  }
}

void Channel::greet() {
  bool same = std::string_view(received).substr(kMagic.size(), sizeof job) == bytesOf(job);
  otherNonce = received.substr(kMagic.size() + sizeof job);
  out += kMagic;
  out += same ? 'C' : 'E';
  out += same ? nonce : std::string(kProofBytes, '\0');
  if (!same)
    return fail(OtherJob);
  expect(Proof, kProofBytes);
}

void Channel::answer() {
  char verdict = received[kMagic.size()];
  if (verdict != 'C')
    return fail(verdict == 'E' ? OtherJob : NoRank);
  otherNonce = received.substr(kMagic.size() + 1);
  out += proofOf("caller");
  expect(Verdict, 1);
}

void Channel::judge() {
  bool right = equalInSecret(received, proofOf("caller"));
  out += right ? 'Y' : 'N';
  if (!right)
    return fail(OtherKey);
  out += proofOf("listener");
  key = proofOf("packets");
  expect(Head, kHeadBytes);
}

std::string Channel::proofOf(const char *who) const {
  std::string text = who;
  text += '\0';
  text += side == Caller ? nonce : otherNonce;
  text += side == Caller ? otherNonce : nonce;
  return hmac(key, text);
}

std::string Channel::tagOf(Side sender, uint64_t number, std::string_view frame) const {
  std::string text(1, sender);
  text += bytesOf(number);
  text += frame;
  return hmac(key, text).substr(0, kTagBytes);
}

bool Channel::next(Message &next) {
  if (!ready)
    return false;
  ready = false;
  next = std::move(message);
  return true;
}

void Channel::send(uint32_t kind, const Packet &packet) {
  std::string frame;
  frame += bytesOf(kind);
  frame += bytesOf(static_cast<uint32_t>(packet.bytes.size()));
  frame += packet.bytes;
  out += frame + tagOf(side, sentPackets++, frame);
}

} // namespace dsopt::runtime
