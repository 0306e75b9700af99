#!/bin/sh
# Installs what the tests need from Debian or Ubuntu, only what is missing.  As root; does nothing when all is there.
set -eu

packages="docker.io docker-registry debootstrap iptables iproute2 gcc libc6-dev ca-certificates
libglib2.0-0 libegl1 libgl1 libxkbcommon0 libdbus-1-3 libfontconfig1
libxcb-cursor0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-randr0 libxcb-render-util0 libxcb-shape0 libxcb-sync1
libxcb-xfixes0 libxcb-xkb1 libx11-xcb1 libxkbcommon-x11-0
ffmpeg xvfb xdotool jwm dbus at-spi2-core libglib2.0-bin desktop-file-utils"

missing=""
for package in $packages; do
    case "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" in
        installed) ;;
        *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "not root; missing for the engine tests:$missing" >&2
    exit 1
fi

# The tests start dockerd and docker-registry themselves: keep the packages from starting system services, without
# touching a policy that is there already.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi

export DEBIAN_FRONTEND=noninteractive
quiet="-qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120"
log=$(mktemp)
# The lists of a fresh container are empty, those of an old one are stale: fetch them, but only fail on the install.
apt-get $quiet update >"$log" 2>&1 || true
# shellcheck disable=SC2086
if ! apt-get $quiet install -y --no-install-recommends $missing >>"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    exit 1
fi
rm -f "$log"
