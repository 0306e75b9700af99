#!/bin/sh
# Builds the helper image's root file system with debootstrap: rootfs.sh FOLDER SUITE MIRROR TAR
# A folder of its own, root, and a mirror that the caller read from apt's configuration.
set -eu
root=$1 suite=$2 mirror=$3 tar=$4

# python3's closure only; debootstrap's minbase brings the C library and the shell.
debootstrap --variant=minbase --include=python3 "$suite" "$root" "$mirror"

cd "$root"
ln -sf ../../bin/python3 usr/local/bin/python3
ln -sf python3 usr/local/bin/python
find usr/lib/python3* usr/share/python3 -name __pycache__ -prune -exec rm -rf {} +
rm -rf usr/share/doc usr/share/man usr/share/locale usr/share/info usr/share/lintian usr/share/bash-completion usr/share/perl5
rm -rf usr/share/zoneinfo usr/lib/*/perl-base usr/lib/*/perl usr/bin/perl* usr/lib/*/gconv usr/lib/locale
rm -rf usr/lib/apt usr/lib/*/libapt-* usr/bin/apt* usr/lib/python3*/pydoc_data usr/lib/python3*/lib2to3 usr/lib/python3*/idlelib
rm -rf usr/lib/systemd usr/sbin/fsck* usr/sbin/mkfs* usr/sbin/mke2fs usr/lib/*/libicu* usr/lib/udev usr/lib/*/security
rm -rf var/cache/* var/lib/apt var/log/* var/lib/dpkg/info var/lib/dpkg/*-old tmp/* run/* dev/* etc/apt
install -d -m 1777 tmp
chroot . /usr/bin/python3 -c 'import ctypes, hashlib, json, socket, ssl, sqlite3, urllib.request, zlib'
find . -name __pycache__ -prune -exec rm -rf {} +

tar --create --file="$tar" --sort=name --mtime=@0 --numeric-owner --exclude=./dev/* .
