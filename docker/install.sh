#!/bin/sh
# The steps of the image, in one place: the Dockerfile runs them, and docker/try-in-chroot.sh runs
# them in a fresh Debian without Docker.
#
#   install.sh SOURCE PREFIX
#
# SOURCE is a clone of the repository, PREFIX gets the environment, /opt/olr-pg say. Needs root,
# python3 (3.11 or later) with venv, and a way to the package index.
set -eu
source=$1
prefix=$2
user=olr-pg

id "$user" >/dev/null 2>&1 ||
    useradd --uid 10001 --shell /usr/sbin/nologin --create-home --home-dir /var/lib/olr-pg "$user"

# uv is needed to install, not to run.
python3 -m venv "$prefix/uv"
"$prefix/uv/bin/pip" install --quiet --no-cache-dir uv
cd "$source"
UV_PROJECT_ENVIRONMENT="$prefix/.venv" UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1 \
    UV_PYTHON_DOWNLOADS=never \
    "$prefix/uv/bin/uv" sync --frozen --no-dev --no-editable --quiet
rm -rf "$prefix/uv"

# What is compiled is kept beside the code, not in the volume: kernels for this kind of processor
# (another kind compiles its own, so the directory stays writable), and Java's classes.
mkdir -p "$prefix/cache/numba"
chown -R "$user:" "$prefix/cache"
cd /
su -s /bin/sh "$user" -c "
    export NUMBA_CACHE_DIR=$prefix/cache/numba XDG_CACHE_HOME=$prefix/cache
    $prefix/.venv/bin/olr-pg prepare
"
