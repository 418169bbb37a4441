#!/usr/bin/env bash
# One job of each trainer by 1, 2 and 4 workers of one thread (or those that WORKERS names): speed-up and efficiency, and
# how the bound moves, side by side; then each worker's waiting. ES and PPO are those of the settings that follow, or of
# the command lines in ESRUN_JOB and PPORUN_JOB (--device cuda --gpu ... where each worker has a GPU of its own).
set -euo pipefail
cd "$(dirname "$0")/.."
read -r -a workers <<<"${WORKERS:-1 2 4}"
read -r -a es <<<"${ESRUN_JOB:-bipedal_walker --pop 512 --generations 6 --time-limit 400}"
read -r -a ppo <<<"${PPORUN_JOB:-bipedal_walker --steps 200000}"
folder=$(mktemp --directory)
trap 'rm -r "$folder"' EXIT

# compare TOOL ARGUMENTS...
compare() {
  local tool=$1 runs=() n hashes=() run
  shift
  for n in "${workers[@]}"; do
    run=$folder/$tool-$n
    build/bin/"$tool" "$@" --no-stop-at-target --threads 1 --workers "$n" --min-workers "$n" --profile --quiet \
      --json --out "$run" >"$run.json"
    hashes+=("$(grep --only-matching '"params_hash": "[0-9a-f]*"' "$run.json")")
    runs+=("$run")
  done
  if [[ $(printf '%s\n' "${hashes[@]}" | sort --unique | wc --lines) != 1 ]]; then
    echo "scaling: $tool: the parameters differ: ${hashes[*]}" >&2
    return 1
  fi
  echo "$tool $*: ${hashes[0]} for ${workers[*]} workers"
  build/bin/profreport "${runs[@]}" | sed --quiet '/^comparison/,$p'
  for run in "${runs[@]}"; do
    build/bin/profreport "$run" | sed --quiet '/^worker /,/^Computes longest/p'
  done
  echo
}

compare esrun "${es[@]}"
compare pporun "${ppo[@]}"
