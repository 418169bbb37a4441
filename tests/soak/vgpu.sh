#!/usr/bin/env bash
# The GPU tests on the virtual GPU in many orders of its warps and threads, under every schedule of its streams, with
# conformance cases of fresh seeds, and every golden hash, on the CPU too. Prints a line for each; about 15 minutes.
# SEEDS: how many (10).
set -euo pipefail
cd "$(dirname "$0")/../.."
seeds=${SEEDS:-10}
logs=build/soak-vgpu
mkdir -p "$logs"
export LD_LIBRARY_PATH="$PWD/build/lib/vgpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" SHOAL_TEST_CUDA=required
export VGPU_EXIT=0 # some of the tests end kernels with an error
failed=0

# check NAME COMMAND...
check() {
    local name=$1 begun=$SECONDS
    shift
    if "$@" >"$logs/$name.log" 2>&1; then
        echo "passed  $name  $((SECONDS - begun)) s"
    else
        echo "FAILED  $name: see $logs/$name.log"
        failed=1
    fi
}

for program in vgpu_kernels_test vgpu_kernels_75_test vgpu_cub_test cuda_parity_test vgpu_conformance_test; do
    for ((seed = 1; seed <= seeds; seed++)); do
        check "$program.seed_$seed" env VGPU_SEED="$seed" "build/bin/tests/$program"
    done
    for schedule in lazy shuffle; do
        check "$program.$schedule" env VGPU_SEED=1 VGPU_STREAMS="$schedule" "build/bin/tests/$program"
    done
done

for ((seed = 1; seed <= seeds; seed++)); do
    cases=$logs/cases_$seed
    check "cases.seed_$seed" python3 tests/vgpu/conformance/generate.py "$RANDOM$seed" "$cases"
    check "conformance.seed_$seed" env SHOAL_CONFORMANCE_CASES="$cases" build/bin/tests/vgpu_conformance_test
done

check hashes env SHOAL_TEST_LONG=1 ESRUN=build/bin/esrun python3 tests/es/cli_hash_test.py Cuda
check hashes.esrun_cpu env SHOAL_TEST_LONG=1 ESRUN=build/bin/esrun python3 tests/es/cli_hash_test.py Hash.test_golden
check hashes.pporun_cpu env SHOAL_TEST_LONG=1 PPORUN=build/bin/pporun python3 tests/ppo/cli_hash_test.py Hash.test_golden
exit $failed
