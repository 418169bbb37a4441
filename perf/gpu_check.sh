#!/usr/bin/env bash
# The tests and benchmarks that need a GPU, for a machine that has one and little else: an NVIDIA driver for CUDA 13,
# glibc 2.34 and the usual commands; no compiler, toolkit, Python or package registry.
#
#   perf/gpu_check.sh pack
#       Here: builds, and fills build/gpu_check with programs, libraries and data, under 64 MiB in all.
#   gpu_check.sh run [--small] [--limit SECONDS] [FOLDER]
#       There: runs everything, goes on after failures, and writes three files to $OUT (./gpu_check_results if unset):
#       summary.txt, a line per program; perf.csv, the benchmark's figures; log.txt, all output. Exit status 1 if
#       something failed. FOLDER is what pack made: by default the folder of this script, which pack puts there, or
#       build/gpu_check. It takes at most SECONDS (345). LD_LIBRARY_PATH goes before the folder's own libraries.
#
# --small is for trying it on the virtual GPU: small sizes in the benchmark, and fewer hashes.
#
#   LD_LIBRARY_PATH=$PWD/build/lib/vgpu perf/gpu_check.sh run --small --limit 1800
set -euo pipefail
script=$(readlink -f "${BASH_SOURCE[0]}")
here=$(dirname "$script")

packed_mib_max=64

# The programs with GoogleTest's output, and how much of the time each may take, in percent. They add up to more than
# 100: few take that long, and the benchmark's part is kept free for it.
tests=(cuda_parity_test:25 cuda_ppo_test:25 cuda_ppo_group_test:20 cuda_comm_test:10 hashes:25 vgpu_conformance_test:25 vgpu_kernels_test:20
    vgpu_kernels_75_test:20 vgpu_runtime_test:25 vgpu_cub_test:40 profiler_gpu_test:20)
perf_percent=20
crashes_max=5 # of one program: after each it goes on with the cases that had not begun
names_max=20  # failed cases of one program that the summary names
alone_max=40  # failed cases of one program that are tried again, each in a process of its own

say() { printf '%s\n' "gpu_check: $*" >&2; }

fail() {
    say "$1"
    exit "${2:-1}"
}

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$script" >&2
    exit 2
}

# ---- pack ------------------------------------------------------------------------------------------------------------

# What a program loads that is not part of the C library or the CUDA runtime: "/lib/x86_64-linux-gnu/libhwloc.so.15".
libraries_of() {
    ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
        grep -Ev '/(libc|libm|libdl|libpthread|librt|libcudart)\.so'
}

pack() {
    cd "$here/.."
    local program programs=() library runtime cupti folder=build/gpu_check library_build=build/gpu_check_library
    for program in "${tests[@]}"; do
        if [[ $program != hashes:* ]]; then programs+=("${program%:*}"); fi
    done
    cmake --preset release >/dev/null
    cmake --build --preset release --target "${programs[@]}" perf_gpu esrun >&2
    # Machine code for the GPUs of data centres; the last also as PTX, for newer ones and for the virtual GPU.
    cmake --preset cuda-release -B "$library_build" -DSHOAL_CUDA_ARCHS="80;100;90" >/dev/null
    cmake --build "$library_build" --target shoal_cuda >&2

    rm -rf "$folder"
    mkdir -p "$folder/bin" "$folder/lib"
    for program in "${programs[@]/#/tests/}" perf_gpu esrun; do
        strip -o "$folder/bin/${program#tests/}" "build/bin/$program"
    done
    strip -o "$folder/lib/libshoal_cuda.so" "$library_build/lib/libshoal_cuda.so"
    runtime=$(sed -n 's/^SHOAL_CUDART:[A-Z]*=//p' build/CMakeCache.txt)
    cp -L "$runtime" "$folder/lib/$(objdump -p "$runtime" | awk '$1 == "SONAME" { print $2 }')"
    cupti=$(find "$(dirname "$(readlink -f "$runtime")")"/{.,../extras/CUPTI/lib64,../../../extras/CUPTI/lib64} \
        -maxdepth 1 -name 'libcupti.so.1?' 2>/dev/null | head -n 1) || true
    [[ -n $cupti ]] || fail "no libcupti.so beside $runtime: it is part of CUDA's toolkit"
    cp -L "$cupti" "$folder/lib/"
    for library in $(libraries_of "$folder"/bin/*); do cp -L "$library" "$folder/lib/"; done
    tar --create --gzip --file "$folder/cases.tar.gz" -C build/tests/vgpu/conformance cases
    PYTHONDONTWRITEBYTECODE=1 python3 tests/es/cli_hash_test.py --list >"$folder/hashes.txt"
    cp "$script" "$folder/gpu_check.sh"

    local size_kib
    size_kib=$(du --summarize --apparent-size --block-size=1K "$folder" | cut -f1)
    say "$folder: $(find "$folder" -type f | wc -l) files, $size_kib KiB"
    ((size_kib < packed_mib_max * 1024)) || fail "$folder is larger than $packed_mib_max MiB"
}

# ---- run -------------------------------------------------------------------------------------------------------------

# The golden hashes of hashes.txt (simulator, case, hash, esrun's options; tabs between), in GoogleTest's words.
check_hashes() {
    local env name hash options got args failed=0 folder
    folder=$(mktemp -d)
    while IFS=$'\t' read -r env name hash options; do
        if [[ -n ${GPU_CHECK_SMALL:-} && $name != short ]]; then continue; fi
        printf '[ RUN      ] %s.%s\n' "$env" "${name// /_}"
        read -ra args <<<"$options"
        got=$("$1/bin/esrun" "${args[@]}" --device=cuda --json --quiet --out "$folder/$env.$name" 2>&1 </dev/null) || true
        if [[ $got =~ \"params_hash\":\ *\"$hash\" ]]; then
            printf '[       OK ] %s.%s (1 ms)\n' "$env" "${name// /_}"
        else
            printf '%s\nexpected params_hash %s\n' "$got" "$hash"
            printf '[  FAILED  ] %s.%s (1 ms)\n' "$env" "${name// /_}"
            failed=1
        fi
    done <"$1/hashes.txt"
    rm -rf "$folder"
    return "$failed"
}

# cases_in LOG "       OK " (or "  SKIPPED ", " RUN      "): the cases for which GoogleTest says that, perhaps in a line
# that the program's own output began.
cases_in() { sed -nE "s/.*\[$2\] ([^ ,.]+\.[^ ,]+).*/\1/p" "$1"; }

# The cases that failed, or had begun when the program ended, in the order in which they ran.
failed_cases() {
    cases_in "$1" ' RUN      ' |
        grep -vxFf <(cases_in "$1" '       OK ' && cases_in "$1" '  SKIPPED ') || true
}

# within SECONDS COMMAND...: no longer than that, nor than there is time.
within() {
    local limit=$1 left=$((deadline - SECONDS))
    shift
    if ((left < limit)); then limit=$left; fi
    if ((limit < 1)); then
        echo "no time was left"
        return 124
    fi
    timeout --kill-after=5 "$limit" "$@" </dev/null
}

# note NAME RESULT SECONDS COUNTS: a line of the summary.
note() {
    printf '%-24s %-6s %4d s  %s\n' "$1" "$2" "$3" "$4" | tee -a "$results/summary.txt"
    if [[ $2 != pass ]]; then failures=$((failures + 1)); fi
}

# Failed cases again, each in a process of its own: a fault takes the whole process's GPU away.
try_alone() {
    local name passed=0 tried=0 log=$3
    : >"$log.alone"
    while read -r name && ((tried < alone_max && SECONDS < $1)); do
        tried=$((tried + 1))
        if within 30 "$2" --gtest_filter="$name" >>"$log.alone" 2>&1; then passed=$((passed + 1)); fi
    done < <(failed_cases "$log")
    if ((tried > 0)); then echo ", $passed of $tried tried alone pass"; fi
    sed 's/^/alone: /' "$log.alone" >>"$results/log.txt"
}

# run_test NAME PERCENT: all cases of a program.
run_test() {
    local name=$1 limit=$((total_s * $2 / 100)) start=$SECONDS log=$scratch/$1.log status=0 crashes=0 seen
    local command=("$folder/bin/$name") result=pass counts
    if [[ $name == hashes ]]; then command=(bash "$script" hashes "$folder"); fi
    : >"$log"
    within "$limit" "${command[@]}" >>"$log" 2>&1 || status=$?
    while ((status > 128 && status != 137 && crashes < crashes_max)); do
        crashes=$((crashes + 1))
        seen=$(cases_in "$log" ' RUN      ' | paste -sd:)
        status=0
        within "$((start + limit - SECONDS))" "${command[@]}" --gtest_filter="-$seen" >>"$log" 2>&1 || status=$?
    done
    printf '\n==== %s\n' "$name" | cat - "$log" >>"$results/log.txt"
    local passed failed skipped
    passed=$(cases_in "$log" '       OK ' | wc -l)
    skipped=$(cases_in "$log" '  SKIPPED ' | sort -u | wc -l) # GoogleTest lists them at the end once more
    failed=$(failed_cases "$log" | wc -l)
    counts="$passed passed, $failed failed, $skipped skipped"
    if ((status == 124 || status == 137)); then counts+=", out of time"; fi
    if ((crashes > 0)); then counts+=", crashes: $crashes"; fi
    if ((status != 0 || crashes > 0 || failed > 0 || passed == 0)); then
        result=FAIL
        counts+=", exit status $status"
        if ((failed > 0)) && [[ $name != hashes ]]; then
            counts+=$(try_alone "$((start + limit))" "${command[0]}" "$log")
        fi
    fi
    note "$name" "$result" "$((SECONDS - start))" "$counts"
    failed_cases "$log" | sed -n "1,$names_max s/^/    /p" | tee -a "$results/summary.txt"
}

run_perf() {
    local start=$SECONDS result=pass
    echo "case, min, median, unit, repeats" >"$results/perf.csv"
    printf '\n==== perf_gpu\n' >>"$results/log.txt"
    within "$((total_s * perf_percent / 100))" "$folder/bin/perf_gpu" ${GPU_CHECK_SMALL:+--small} \
        >>"$results/perf.csv" 2>>"$results/log.txt" || result=FAIL
    cat "$results/perf.csv"
    note perf_gpu "$result" "$((SECONDS - start))" "$(($(wc -l <"$results/perf.csv") - 1)) figures"
}

run() {
    total_s=345 folder='' failures=0
    while (($# > 0)); do
        case $1 in
        --small) export GPU_CHECK_SMALL=1 ;;
        --limit)
            [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || usage
            total_s=$2
            shift
            ;;
        -*) usage ;;
        *) folder=$1 ;;
        esac
        shift
    done
    if [[ -z $folder ]]; then folder=$here; fi
    if [[ ! -f $folder/hashes.txt ]]; then folder=$here/../build/gpu_check; fi
    [[ -f $folder/hashes.txt ]] || fail "no packed folder in ${folder}: perf/gpu_check.sh pack makes one"
    folder=$(readlink -f "$folder")
    results=${OUT:-gpu_check_results}
    mkdir -p "$results"
    rm -f "$results/summary.txt" "$results/log.txt" "$results/perf.csv"
    results=$(readlink -f "$results")
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT

    tar --extract --gzip --file "$folder/cases.tar.gz" -C "$scratch"
    export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder/lib"
    export SHOAL_TEST_CUDA=required SHOAL_CONFORMANCE_CASES=$scratch/cases
    export VGPU_EXIT=0 # on the virtual GPU; some of the tests end kernels with an error
    {
        nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem --format=csv,noheader ||
            echo "no nvidia-smi"
    } 2>/dev/null | tee -a "$results/summary.txt"
    ldd "$folder/bin/vgpu_cub_test" >>"$results/log.txt" 2>&1 || true

    local test begin=$SECONDS
    # The benchmark's part is kept free; whatever is left over is its too.
    deadline=$((begin + total_s * (100 - perf_percent) / 100))
    for test in "${tests[@]}"; do run_test "${test%:*}" "${test#*:}"; done
    deadline=$((begin + total_s))
    run_perf
    say "$failures of $((${#tests[@]} + 1)) programs failed; results are in $results"
    ((failures == 0))
}

case ${1:-} in
pack | run) "$@" ;;
hashes) check_hashes "$2" ;;
*) usage ;;
esac
