//===- Footer.h - the end of an ahead-of-time compiled program --*- C -*-===//
//
// An executable written by `-o` is dsopt-run, followed at a page boundary by the
// program's shared object, followed by this footer: the last 56 bytes of the
// file, little-endian. A dsopt-run without it takes its object from the command
// line. Each byte before the footer is under one of its two hashes, each byte of
// the footer under its own. C, no other header than stdint.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_FOOTER_H
#define DSOPT_RUNTIME_FOOTER_H

#include <stdint.h>

/// What `magic` holds (8 bytes, no terminator).
#define DSOPT_FOOTER_MAGIC "DSOPTOBJ"
#define DSOPT_FOOTER_VERSION 2
/// The shared object starts at a multiple of it, so that it can be mapped in place.
#define DSOPT_FOOTER_ALIGNMENT 4096

struct dsopt_footer {
  uint64_t offset;  ///< where in the file the shared object starts
  uint64_t size;    ///< its bytes
  uint64_t runtime; ///< XXH3, 64 bits, of all before the shared object
  uint64_t program; ///< XXH3, 64 bits, of the shared object
  uint64_t footer;  ///< XXH3, 64 bits, of the four numbers above
  char magic[8];    ///< DSOPT_FOOTER_MAGIC
  uint64_t version; ///< DSOPT_FOOTER_VERSION
};

#endif // DSOPT_RUNTIME_FOOTER_H
