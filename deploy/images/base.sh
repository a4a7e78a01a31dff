#!/usr/bin/env bash
# Makes a base image by hand, for machines that reach a Debian mirror and no image registry: a Debian by debootstrap, and
# this machine's Python 3.13 in /usr/local. Needs root, debootstrap and an engine.
#
#   deploy/images/base.sh [TAG]         # python:3.13-slim unless given
#
# BASE_PYTHON: the Python 3.13 that is taken over. BASE_SUITE, BASE_MIRROR: of Debian; the suite must not be older than what
# Python was built on. BASE_CA_FILE: certificates that the image trusts besides, where a proxy signs with its own.
set -euo pipefail
tag=${1:-python:3.13-slim}
python=${BASE_PYTHON:-python3.13}
prefix=$("$python" -c 'import sys; assert sys.version_info[:2] == (3, 13), sys.version; print(sys.base_prefix)')
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase \
  --include=ca-certificates,libbz2-1.0,libffi8,liblzma5,libreadline8,libsqlite3-0,libssl3,libuuid1,zlib1g \
  "${BASE_SUITE:-bookworm}" "$root" ${BASE_MIRROR:+"$BASE_MIRROR"}
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
mkdir -p "$root/usr/local/lib"
cp -a "$prefix/bin" "$root/usr/local/"
cp -a "$prefix/lib/python3.13" "$root/usr/local/lib/"
cp -a "$prefix"/lib/libpython3*.so* "$root/usr/local/lib/" 2>/dev/null || true
rm -rf "$root"/usr/local/lib/python3.13/{test,idlelib,tkinter,site-packages}
find "$root/usr/local/lib" -name __pycache__ -prune -exec rm -rf {} +
find "$root/usr/local/bin" -type f ! -name 'python3.13' -delete
ln -sf python3.13 "$root/usr/local/bin/python3"
ln -sf python3.13 "$root/usr/local/bin/python"
if [ -n "${BASE_CA_FILE:-}" ]; then
  cp "$BASE_CA_FILE" "$root/etc/ssl/certs/ca-certificates.crt"
fi
chroot "$root" ldconfig
chroot "$root" /usr/local/bin/python3.13 -m ensurepip --default-pip >/dev/null
tar -C "$root" -c . | docker import \
  --change 'ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin' \
  --change 'ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt' \
  --change 'CMD ["python3"]' - "$tag"
