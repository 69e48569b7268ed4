#!/bin/sh
# Tests the image's steps without Docker: runs install.sh in a new Debian (debootstrap) of the release that the
# Dockerfile names, and there replicates simulated logs to the embedded PostgreSQL. The replication runs as the
# user of the image, without capabilities, and can write only to its own directory and /tmp.
#
#   try-in-chroot.sh DIRECTORY [MIRROR]
#
# Requires root and debootstrap. The script creates DIRECTORY, and does not delete it.
set -eu
directory=$1
mirror=${2:-}
source=$(cd "$(dirname "$0")/.." && pwd)
release=$(sed -n 's/^ARG BASE=.*-slim-//p' "$source/docker/Dockerfile")

[ -e "$directory/etc/debian_version" ] ||
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates \
        "$release" "$directory" $mirror

# Unmounting must not affect the mounts of this machine, so each bind mount becomes a slave mount before anything
# is mounted below it.
places="src proc dev root/.cache"
cleanup() {
    for place in $places; do
        ! mountpoint -q "$directory/$place" || umount --recursive --lazy "$directory/$place"
    done
}
trap cleanup EXIT
mkdir -p "$directory/src" "$directory/root/.cache"
mount --bind "$source" "$directory/src"
mount -o remount,bind,ro "$directory/src"
mount -t proc proc "$directory/proc"
mount --rbind /dev "$directory/dev"
# Like the cache mount in the Dockerfile: do not download packages again.
mount --bind "${XDG_CACHE_HOME:-$HOME/.cache}" "$directory/root/.cache"
for place in $places; do
    mount --make-rslave "$directory/$place"
done
# Use this machine's settings for the package index.
mkdir -p "$directory/etc/ssl/certs"
mkdir -p "$directory/etc/apt/apt.conf.d"
cp /etc/apt/apt.conf.d/* "$directory/etc/apt/apt.conf.d/" 2>/dev/null || true
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    [ ! -e "$file" ] || cp -L "$file" "$directory$file"
done

in_image() {
    # shellcheck disable=SC2046 - a word for each variable
    chroot "$directory" /usr/bin/env -i HOME=/root \
        $(env | grep -E '^(PIP_|UV_|SSL_CERT_FILE=|https?_proxy=)[^ ]*$') \
        SLIM=yes SOURCE_DATE_EPOCH=1767225600 \
        PATH=/opt/olr-pg/.venv/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
# Without these, the image is larger and contains the Java of the packages.
in_image sh -c "apt-get update -qq && apt-get install -qq --yes --no-install-recommends \
    binutils default-jdk-headless" >/dev/null || echo "without jlink and strip"
rm -rf "$directory/opt/olr-pg"
in_image sh /src/docker/install.sh /src /opt/olr-pg
for part in "$directory"/opt/olr-pg "$directory"/opt/olr-pg/* "$directory"/opt/olr-pg/.venv; do
    du -sm "$part" | sed "s|$directory||; s|\t| MB |"
done

chmod -R a-w "$directory/opt/olr-pg/cache"
in_image setpriv --reuid 10001 --regid "$(in_image id -g olr-pg)" --clear-groups \
    --bounding-set=-all --inh-caps=-all --no-new-privs /bin/sh -c '
    set -eu
    export HOME=/var/lib/olr-pg XDG_CACHE_HOME=/opt/olr-pg/cache
    [ ! -d /opt/olr-pg/java ] || export JAVA_HOME=/opt/olr-pg/java
    export NUMBA_CACHE_DIR=/opt/olr-pg/cache/numba PYTHONDONTWRITEBYTECODE=1
    cd /var/lib/olr-pg
    rm -rf try cache && mkdir try && cd try
    olr() { /opt/olr-pg/entrypoint.sh "$@"; }
    olr version
    olr simulate --seed 1 --workload orders --size 100KB --out orders
    olr simulate --seed 3 --workload lobs --size 100KB --out lobs
    find ../cache/numba -name "*.nbc" | sort >before
    for source in orders lobs; do
        cat >$source.json <<END
{"source": {"kind": "offline", "dictionary": "$source/dictionary.json", "logs": "$source/logs"},
 "target": {"address": ":0"}, "status": {"address": ":0"}, "context": {"data": "data-$source"},
 "apply": {"connect-string": "embedded", "create-tables": true,
           "tables": "SELECT OWNER, TABLE_NAME FROM USER_TABLES"}}
END
        olr run --config $source.json --once
    done
    # Do not use the function here: the signal must reach the program, not a shell around it.
    /opt/olr-pg/entrypoint.sh run --config orders.json --no-apply &
    until olr status --config orders.json --check 2>/dev/null; do sleep 1; done
    kill $!
    wait $! || true
    find ../cache/numba -name "*.nbc" | sort >after
    if ! cmp before after; then
        echo "prepare has missed kernels:"
        diff before after
        exit 1
    fi
    echo "$(wc -l <before) kernels were compiled ahead, and no more were needed"
'
echo "the image's steps work"
