# Shared by quickstart, test and .ci/run: what a Debian 12 machine needs, and how it gets it.
# Source it; it defines functions and runs nothing.
#
#   need_packages        the Debian packages that build and run the tests
#   need_formatter       clang-format 14
#   need_clang           clang 14
#   need_cuda DIRECTORY  CUDA headers and NVRTC for the build tree DIRECTORY; sets cuda_options
#
# JITNEY_IGNORE_TOOLKIT=1 makes need_cuda act as on a machine without a CUDA Toolkit.

say() { printf '%s\n' "$*" >&2; }
fail() {
    say "error: $*"
    exit 1
}

# apt_install PACKAGE...: installs those that are missing; asks nothing where none is.
apt_install() {
    local package missing=()
    for package in "$@"; do
        [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
            missing+=("$package")
    done
    ((${#missing[@]})) || return 0

    command -v apt-get >/dev/null ||
        fail "this is no Debian system; install what these packages hold, with its own package" \
            "manager, and build with cmake --preset release: ${missing[*]}"
    local as_root=()
    if [[ $EUID -ne 0 ]]; then
        command -v sudo >/dev/null ||
            fail "packages are missing, and this is neither root nor is sudo here; as root, run:" \
                "apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    say "installing ${missing[*]}"
    "${as_root[@]}" apt-get -qq update
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null </dev/null
}

need_packages() {
    apt_install cmake ninja-build g++ python3 pkg-config libxxhash-dev libfmt-dev libspdlog-dev \
        libcli11-dev nlohmann-json3-dev libdlpack-dev doctest-dev libbenchmark-dev \
        libboost-context-dev
}

need_formatter() { apt_install git clang-format-14; }

need_clang() { apt_install clang-14; }

# toolkit_include: prints the first directory of a CUDA Toolkit's headers that is new enough and
# has its NVRTC, in the order in which cmake/dependencies.cmake looks. NVRTC 12.8 is the first that
# knows sm_100 and sm_120.
toolkit_include() {
    local root version library
    for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /opt/cuda /usr; do
        [[ -n $root && -f $root/include/cuda.h && -f $root/include/nvrtc.h ]] || continue
        version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\)$/\1/p' "$root/include/cuda.h")
        ((version >= 12080)) || continue
        for library in "$root"/lib64/libnvrtc.so* "$root"/lib/libnvrtc.so* \
            "$root"/lib/*-linux-gnu/libnvrtc.so*; do
            if [[ -f $library ]]; then
                echo "$root/include"
                return
            fi
        done
    done
}

# fetch_cuda DIRECTORY: CUDA headers and NVRTC, from NVIDIA's Python packages, into
# DIRECTORY/include and DIRECTORY/lib.
fetch_cuda() {
    local packages=(nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96)
    if [[ -f $1/packages && $(<"$1/packages") == "${packages[*]}" ]]; then
        return
    fi
    python3 -m pip --version >/dev/null 2>&1 || apt_install python3-pip
    say "no CUDA Toolkit here: fetching ${packages[*]} (90 MB) into $1"
    local scratch wheel
    mkdir -p "$1"
    scratch=$(mktemp -d "$1/fetch.XXXXXX")
    python3 -m pip download -q --no-cache-dir --disable-pip-version-check --no-deps \
        --only-binary=:all: -d "$scratch" "${packages[@]}" >&2 ||
        fail "the CUDA headers and NVRTC could not be fetched; install a CUDA Toolkit of 12.8 or" \
            "newer and point CUDA_HOME at it"
    for wheel in "$scratch"/*.whl; do
        python3 -m zipfile -e "$wheel" "$scratch/unpacked"
    done
    # The runtime library and NVRTC's second build (.alt) are not needed.
    rm -f "$scratch"/unpacked/nvidia/cu13/lib/{libcuda*,*.alt.so*}
    rm -rf "${1:?}/include" "${1:?}/lib"
    mv "$scratch"/unpacked/nvidia/cu13/{include,lib} "$1"
    cp "$scratch"/unpacked/nvidia_cuda_nvrtc-*.dist-info/licenses/License.txt "$1/LICENSE.txt"
    rm -rf "$scratch"
    echo "${packages[*]}" >"$1/packages"
}

# need_cuda BUILD: sets cuda_options, which the configuration of the build tree BUILD takes. What is
# fetched lies in build/cuda once; other build trees have a link to it, since the library looks for
# NVRTC in ../cuda/lib as seen from itself.
need_cuda() {
    local build=$1 include=
    cuda_options=()
    if [[ -n ${JITNEY_CUDA_INCLUDE_DIR:-} ]]; then
        cuda_options=("-DCUDA_INCLUDE_DIR=$JITNEY_CUDA_INCLUDE_DIR")
        return
    fi
    if [[ ${JITNEY_IGNORE_TOOLKIT:-0} != 1 ]]; then
        include=$(toolkit_include)
    fi
    if [[ -z $include ]]; then
        fetch_cuda "$PWD/build/cuda"
        if [[ $build != build ]]; then
            mkdir -p "$build"
            ln -sfn "$PWD/build/cuda" "$build/cuda"
        fi
        include=$PWD/build/cuda/include
    fi
    cuda_options=("-DCUDA_INCLUDE_DIR=$include")
}
