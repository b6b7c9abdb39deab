//===- Footer.h - the end of an ahead-of-time compiled program --*- C -*-===//
//
// An executable written by `-o` is dsopt-run, followed at page boundaries by the
// shared objects of one program, or of the same for a device and for the host,
// followed by this footer: the last 80 bytes of the file, little-endian. A
// dsopt-run without it takes its object from the command line. Each byte before
// the footer is under one of its hashes, each byte of the footer under its own. C,
// no other header than stdint.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_FOOTER_H
#define DSOPT_RUNTIME_FOOTER_H

#include <stdint.h>

/// What `magic` holds (8 bytes, no terminator).
#define DSOPT_FOOTER_MAGIC "DSOPTOBJ"
#define DSOPT_FOOTER_VERSION 3
/// Shared objects start at multiples of it, so that they can be mapped in place.
#define DSOPT_FOOTER_ALIGNMENT 4096

/// Programs of an executable, at most.
#define DSOPT_FOOTER_PROGRAMS 2

struct dsopt_footer_program {
  uint64_t offset; ///< where in the file the shared object starts
  uint64_t size;   ///< its bytes; 0: there is none
  uint64_t hash;   ///< XXH3, 64 bits, of all from `offset` to the next program or to the footer
};

struct dsopt_footer {
  struct dsopt_footer_program programs[DSOPT_FOOTER_PROGRAMS];
  uint64_t runtime; ///< XXH3, 64 bits, of all before the first one
  uint64_t footer;  ///< XXH3, 64 bits, of the numbers above
  char magic[8];    ///< DSOPT_FOOTER_MAGIC
  uint64_t version; ///< DSOPT_FOOTER_VERSION
};

#endif // DSOPT_RUNTIME_FOOTER_H
