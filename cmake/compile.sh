#!/bin/sh
# usage: precompile.sh COMPILER ARGUMENTS...
# Compiles a header that is read once, and leaves beside it the sum of all that it was made of: ccache knows objects that
# were compiled with it by this sum (CCACHE_PCH_EXTSUM), and finds them again where the same headers are written anew.
for argument; do
  case $last in -o) output=$argument ;; -MF) read=$argument ;; esac
  last=$argument
done
"$@" || exit
case $output in
*.pch) sed -e 's/^[^ ]*: //' -e 's/\\$//' "$read" | xargs cat | sha256sum >"$output.sum" ;;
esac
