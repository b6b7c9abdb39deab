#!/bin/sh
# usage: compile.sh COMPILER ARGUMENTS...
# Compiles by ccache where that is. A header that is read once has its folder's name in it and is for no other, so that no
# cache may keep it: beside it lies the sum of all that it was made of, by which ccache knows objects that were compiled
# with it (CCACHE_PCH_EXTSUM), and finds them again where the same headers are written anew.
# Paths into the build are written from there, where ccache does not do it: it is the same compilation in every clone.
for argument; do
  case $last in -o) output=$argument ;; -MF) read=$argument ;; esac
  last=$argument
  shift
  set -- "$@" "${argument#"$PWD"/}"
done
case $output in
*.pch)
  "$@" || exit
  sed -e 's/^[^ ]*: //' -e 's/\\$//' "$read" | xargs cat | sha256sum >"$output.sum"
  ;;
*)
  command -v ccache >/dev/null || exec "$@"
  CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1 exec ccache "$@"
  ;;
esac
