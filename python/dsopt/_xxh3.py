"""XXH3 of 64 bits with numpy alone: a checkpoint's manifest has it of each MiB of its tensors."""
from __future__ import annotations

from typing import List, Tuple

import numpy as np

#: What is hashed at once of a tensor.
CHUNK_BYTES = 1 << 20
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
_MASK = (1 << 64) - 1
_P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_START = (_P32[2], _P64[0], _P64[1], _P64[2], _P64[3], _P32[1], _P64[4], _P32[0])
_STRIPE, _STRIPES = 64, 16  # bytes, and how many in a block
_BLOCK = _STRIPE * _STRIPES
_SHORT = 240


def _word(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at:at + size], "little")


def _keys(at: int) -> np.ndarray:
    return np.frombuffer(_SECRET, "<u8", 8, at) if at % 8 == 0 else np.frombuffer(_SECRET[at:at + 64], "<u8")


#: Of each stripe of a block.
_BLOCK_KEYS = np.stack([_keys(8 * stripe) for stripe in range(_STRIPES)])
_SCRAMBLE, _LAST = _keys(192 - 64), _keys(192 - 64 - 7)


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * 0x165667919E3779F9 & _MASK
    return value ^ value >> 32


def _avalanche64(value: int) -> int:
    value = (value ^ value >> 33) * _P64[1] & _MASK
    value = (value ^ value >> 29) * _P64[2] & _MASK
    return value ^ value >> 32


def _fold(one: int, other: int) -> int:
    product = one * other
    return product & _MASK ^ product >> 64


def _mix(data: bytes, at: int, secret: int) -> int:
    return _fold(_word(data, at) ^ _word(_SECRET, secret), _word(data, at + 8) ^ _word(_SECRET, secret + 8))


def _short(data: bytes) -> int:
    size = len(data)
    if size == 0:
        return _avalanche64(_word(_SECRET, 56) ^ _word(_SECRET, 64))
    if size <= 3:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _avalanche64(combined ^ _word(_SECRET, 0, 4) ^ _word(_SECRET, 4, 4))
    if size <= 8:
        value = _word(data, size - 4, 4) + (_word(data, 0, 4) << 32) ^ _word(_SECRET, 8) ^ _word(_SECRET, 16)
        value ^= (value << 49 | value >> 15) & _MASK ^ (value << 24 | value >> 40) & _MASK
        value = value * 0x9FB21C651E98DF25 & _MASK
        value ^= (value >> 35) + size
        value = value * 0x9FB21C651E98DF25 & _MASK
        return value ^ value >> 28
    if size <= 16:
        low = _word(data, 0) ^ _word(_SECRET, 24) ^ _word(_SECRET, 32)
        high = _word(data, size - 8) ^ _word(_SECRET, 40) ^ _word(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche(size + swapped + high + _fold(low, high) & _MASK)
    total = size * _P64[0]
    if size <= 128:
        for pair in range((size - 1) // 32 + 1):
            total += _mix(data, 16 * pair, 32 * pair) + _mix(data, size - 16 * (pair + 1), 32 * pair + 16)
        return _avalanche(total & _MASK)
    total = _avalanche(total + sum(_mix(data, 16 * i, 16 * i) for i in range(8)) & _MASK)
    total += sum(_mix(data, 16 * i, 16 * (i - 8) + 3) for i in range(8, size // 16))
    return _avalanche(total + _mix(data, size - 16, 136 - 17) & _MASK)


def _stripes(words: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """What stripes [..., 8] add to the accumulators."""
    keyed = words ^ keys
    return words.reshape(*words.shape[:-1], 4, 2)[..., ::-1].reshape(words.shape) + (keyed & 0xFFFFFFFF) * (keyed >> 32)


def _long(chunks: np.ndarray) -> List[int]:
    """The hashes of rows of bytes of one size above 240."""
    count, size = chunks.shape
    blocks = (size - 1) // _BLOCK
    state = np.tile(np.array(_START, np.uint64), (count, 1))
    words = np.ascontiguousarray(chunks[:, :blocks * _BLOCK]).view("<u8").reshape(count, blocks, _STRIPES, 8)
    for block in range(blocks):
        state += _stripes(words[:, block], _BLOCK_KEYS).sum(axis=1, dtype=np.uint64)
        state ^= state >> np.uint64(47)
        state ^= _SCRAMBLE
        state *= np.uint64(_P32[0])
    rest = (size - 1 - blocks * _BLOCK) // _STRIPE
    if rest:
        begin = blocks * _BLOCK
        words = np.ascontiguousarray(chunks[:, begin:begin + rest * _STRIPE]).view("<u8").reshape(count, rest, 8)
        state += _stripes(words, _BLOCK_KEYS[:rest]).sum(axis=1, dtype=np.uint64)
    state += _stripes(np.ascontiguousarray(chunks[:, size - _STRIPE:]).view("<u8"), _LAST)
    hashes = []
    for row in state.tolist():
        total = size * _P64[0]
        for i in range(4):
            total += _fold(row[2 * i] ^ _word(_SECRET, 11 + 16 * i), row[2 * i + 1] ^ _word(_SECRET, 19 + 16 * i))
        hashes.append(_avalanche(total & _MASK))
    return hashes


def _whole_and_rest(data: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    whole = len(data) // CHUNK_BYTES * CHUNK_BYTES
    return data[:whole].reshape(-1, CHUNK_BYTES), data[whole:]


def xxh3(data: bytes) -> str:
    """The hash of some bytes, in 16 digits."""
    value = _short(data) if len(data) <= _SHORT else _long(np.frombuffer(data, np.uint8)[None])[0]
    return f"{value:016x}"


def chunk_hashes(data: np.ndarray) -> List[str]:
    """The hash of each MiB of an array's bytes, the last one of what is left."""
    whole, rest = _whole_and_rest(np.ascontiguousarray(data).reshape(-1).view(np.uint8))
    hashes = []
    for begin in range(0, len(whole), 64):
        hashes += [f"{value:016x}" for value in _long(whole[begin:begin + 64])]
    return hashes + ([xxh3(rest.tobytes())] if len(rest) else [])
