#!/bin/sh
# Starts olr-pg in the image. Compiled kernels lie beside the code; a processor of another kind
# compiles its own, for which the place must be writable. Where the root file system is read-only,
# it is copied once to the volume (some 10 MB).
set -eu
prepared=/opt/olr-pg/cache
if [ ! -w "$prepared/numba" ]; then
    own=${OLR_PG_CACHE:-/var/lib/olr-pg/cache}
    if ! cmp -s "$prepared/build" "$own/build"; then
        rm -rf "$own"
        mkdir -p "$own"
        cp -R "$prepared/." "$own/"
        chmod -R u+w "$own"
    fi
    export NUMBA_CACHE_DIR="$own/numba" XDG_CACHE_HOME="$own"
fi
if [ -n "${OLR_PG_KERNELS:-}" ]; then
    # One that does not fit is reported; the kernels are compiled then.
    olr-pg prepare --no-java --import "$OLR_PG_KERNELS" >&2 || true
fi
exec olr-pg "$@"
