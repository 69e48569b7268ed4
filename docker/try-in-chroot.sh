#!/bin/sh
# Tries the image's steps without Docker: install.sh in a fresh Debian made by debootstrap, and in it
# a replication from simulated logs into the embedded PostgreSQL, as the user of the image.
#
#   try-in-chroot.sh DIRECTORY [MIRROR]
#
# Needs root and debootstrap; DIRECTORY is made, and left for a look.
set -eu
directory=$1
mirror=${2:-}
source=$(cd "$(dirname "$0")/.." && pwd)

[ -e "$directory/etc/debian_version" ] ||
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates \
        bookworm "$directory" $mirror

# What is mounted here must come off again without taking the machine's own mounts along: each is
# cut off from the others (slave) before anything is mounted below it.
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
# As the Dockerfile's cache mount: packages that are there already are not fetched again.
mount --bind "${XDG_CACHE_HOME:-$HOME/.cache}" "$directory/root/.cache"
for place in $places; do
    mount --make-rslave "$directory/$place"
done
# How this machine reaches the package index is how the other one does.
mkdir -p "$directory/etc/ssl/certs"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    [ ! -e "$file" ] || cp -L "$file" "$directory$file"
done

in_image() {
    # shellcheck disable=SC2046 - a word for each variable
    chroot "$directory" /usr/bin/env -i HOME=/root \
        $(env | grep -E '^(PIP_|UV_|SSL_CERT_FILE=|https?_proxy=)[^ ]*$') \
        PATH=/opt/olr-pg/.venv/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
in_image sh /src/docker/install.sh /src /opt/olr-pg
in_image su -s /bin/sh olr-pg -c '
    set -eu
    export PATH=/opt/olr-pg/.venv/bin:$PATH XDG_CACHE_HOME=/opt/olr-pg/cache
    export NUMBA_CACHE_DIR=/opt/olr-pg/cache/numba
    cd /var/lib/olr-pg
    rm -rf try && mkdir try && cd try
    olr-pg version
    olr-pg simulate --seed 1 --workload orders --size 100KB --out sim
    cat >olr-pg.json <<EOF
{"source": {"kind": "offline", "dictionary": "sim/dictionary.json", "logs": "sim/logs"},
 "target": {"address": ":0"}, "status": {"address": ":0"},
 "apply": {"connect-string": "embedded", "create-tables": true,
           "tables": "SELECT OWNER, TABLE_NAME FROM USER_TABLES"}}
EOF
    before=$(find /opt/olr-pg/cache/numba -name "*.nbc" | wc -l)
    olr-pg run --config olr-pg.json --once
    olr-pg run --config olr-pg.json --no-apply &
    until olr-pg status --config olr-pg.json --check 2>/dev/null; do sleep 1; done
    kill $!
    wait $! || true
    after=$(find /opt/olr-pg/cache/numba -name "*.nbc" | wc -l)
    echo "kernels: $before compiled ahead, $after after a run"
    [ "$before" -eq "$after" ] || { echo "prepare has missed kernels"; exit 1; }
'
echo "the image's steps work"
