//===- Footer.h - the end of an ahead-of-time compiled program --*- C -*-===//
//
// An executable written by `-o` is dsopt-run, followed at a page boundary by the
// program's shared object, followed by this footer: the last 32 bytes of the
// file, little-endian. A dsopt-run without it takes its object from the command
// line. C, no other header than stdint: the compiler and the runtime share it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_FOOTER_H
#define DSOPT_RUNTIME_FOOTER_H

#include <stdint.h>

/// What `magic` holds (8 bytes, no terminator).
#define DSOPT_FOOTER_MAGIC "DSOPTOBJ"
#define DSOPT_FOOTER_VERSION 1
/// The shared object starts at a multiple of it, so that it can be mapped in place.
#define DSOPT_FOOTER_ALIGNMENT 4096

struct dsopt_footer {
  uint64_t offset;  ///< where in the file the shared object starts
  uint64_t size;    ///< its bytes
  char magic[8];    ///< DSOPT_FOOTER_MAGIC
  uint64_t version; ///< DSOPT_FOOTER_VERSION
};

#endif // DSOPT_RUNTIME_FOOTER_H
