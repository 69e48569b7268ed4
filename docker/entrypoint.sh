#!/bin/sh
# Starts olr-pg in the image. The compiled kernels are stored beside the code. On another kind of processor,
# olr_pg compiles its own, so their directory must be writable. If the root file system is read-only, this
# script copies the directory once to the volume (about 10 MB).
set -eu
prepared=/opt/olr-pg/cache
if [ ! -w "$prepared/numba" ]; then
    own=${OLR_PG_CACHE:-/var/lib/olr-pg/cache}
    if ! mkdir -p "$own" 2>/dev/null || [ ! -w "$own" ]; then
        echo "the user ID $(id -u) cannot write to $own: give it write access to the volume" >&2
        exit 1
    fi
    if ! cmp -s "$prepared/build" "$own/build"; then
        rm -rf "$own"
        mkdir -p "$own"
        cp -R "$prepared/." "$own/"
        chmod -R u+w "$own"
    fi
    export NUMBA_CACHE_DIR="$own/numba" XDG_CACHE_HOME="$own"
fi
if [ -n "${OLR_PG_KERNELS:-}" ]; then
    # If the pack is for another processor or version, this is reported, and olr_pg compiles the kernels.
    olr-pg prepare --no-java --import "$OLR_PG_KERNELS" >&2 || true
fi
exec olr-pg "$@"
