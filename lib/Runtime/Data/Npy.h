//===- Npy.h - NumPy's header before an array -------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DATA_NPY_H
#define DSOPT_LIB_RUNTIME_DATA_NPY_H

#include "dsopt/Runtime/Npz.h"

namespace dsopt::runtime {

/// Bytes that tell how long a header is.
inline constexpr uint64_t kNpyPrefix = 12;

/// How many bytes the header takes that begins with these kNpyPrefix bytes; 0 if none does.
uint64_t npyHeaderBytes(const uint8_t *start);

/// Reads a whole header: type, order and shape of `array`, whose `memberBytes` are header and array
/// together. Returns what is wrong, to follow the array's name; empty: nothing.
std::string readNpyHeader(const uint8_t *header, NpzArray &array);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DATA_NPY_H
