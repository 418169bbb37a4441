#!/usr/bin/env bash
# install_test.sh CMAKE BUILD_FOLDER [LIBRARY...]: installs into a fresh prefix, moves it, and runs what is there. Moved,
# because an installation that finds its library only where it was built or first put is broken.
set -euo pipefail

cmake=$1
build=$2
shift 2
folder=$(mktemp -d "$build/install_test.XXXXXX")
trap 'rm -rf "$folder"' EXIT

"$cmake" --install "$build" --prefix "$folder/first" >"$folder/log" || {
    cat "$folder/log"
    exit 1
}
mv "$folder/first" "$folder/moved"
prefix=$folder/moved

(cd / && "$prefix/bin/esrun" --list) >"$folder/list"
grep --quiet '\bcartpole\b' "$folder/list" || {
    echo "the installed esrun --list does not name cartpole:"
    cat "$folder/list"
    exit 1
}
(cd / && "$prefix/bin/esrun" cartpole --generations 2 --test-episodes 2 --bind none --quiet --out "$folder/run") >"$folder/result" || {
    echo "the installed esrun does not train"
    exit 1
}
grep --quiet '^parameters [0-9a-f]\{16\}$' "$folder/result" || {
    echo "the installed esrun prints no hash of its parameters:"
    cat "$folder/result"
    exit 1
}
[[ -s $prefix/include/shoal_objective.h ]] || { echo "not installed: include/shoal_objective.h"; exit 1; }
for library in "$@"; do
    [[ -e $prefix/lib/$library ]] || { echo "not installed: lib/$library"; exit 1; }
done
# shellcheck disable=SC2016 # $ORIGIN is the loader's
readelf -d "$prefix/bin/esrun" | grep --quiet 'RUNPATH.*\[$ORIGIN/../lib\]' || {
    echo "the installed esrun does not look for libraries in ../lib:"
    readelf -d "$prefix/bin/esrun"
    exit 1
}
for document in README.md CHANGELOG.md LICENSE; do
    [[ -s $prefix/share/doc/shoal/$document ]] || { echo "not installed: share/doc/shoal/$document"; exit 1; }
done
