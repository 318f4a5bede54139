#!/usr/bin/env bash
# Measures each program on each JOB ROUNDS times and prints the medians. The programs take turns, so that noise affects
# all alike. Builds missing programs, starts a private API server, and stops it at the end. All files are in DIR.
usage='usage: run.sh [-d DIR] [-r ROUNDS] [-n SIZES] JOB...
  DIR     work folder (target/bench)      ROUNDS  of every program (3)      SIZES  of scale, in Pods ("1000 10000 30000")
  JOB     sync sync-pods converge latency noop scale; floor floor-pods ceiling
  KCTL    in the environment: the command of one more program
  QUIET   in the environment: longest wait for an idle machine before each run (20s)'
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=target/bench rounds=3 sizes="1000 10000 30000" batch=$(date +%FT%T) failed=0
while getopts d:r:n: option; do
  case $option in d) dir=$OPTARG ;; r) rounds=$OPTARG ;; n) sizes=$OPTARG ;; *) echo "$usage" >&2; exit 2 ;; esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { echo "$usage" >&2; exit 2; }
for job in "$@"; do
  case $job in sync | sync-pods | converge | latency | noop | scale | floor | floor-pods | ceiling) ;; *) echo "no job $job; $usage" >&2; exit 2 ;; esac
done
read -ra kctl <<<"${KCTL:-}"
[ ${#kctl[@]} = 0 ] || command -v "${kctl[0]}" >/dev/null || { echo "KCTL: cannot run ${kctl[0]}" >&2; exit 2; }
mkdir -p "$dir/bin"
dir=$(cd "$dir" && pwd) bin=$dir/bin

(cd "$here/driver" && nice go build -o "$bin/driver" .)
(cd "$here/peer-cr" && nice go build -o "$bin/peer-cr" .)
(cd "$here/peer-kube" && CARGO_TARGET_DIR=$dir/cargo nice cargo build --quiet --release --locked)
cp "$dir/cargo/release/peer-kube" "$bin/"

stop() {
  trap - EXIT INT TERM
  kill $(jobs -p) 2>/dev/null || true
  "$here/../../../tests/envtest/down" "$dir/server"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
KUBECONFIG=$("$here/../../../tests/envtest/up" "$dir/server")
export KUBECONFIG
kill "$(cat "$dir/server/controllers.pid")" # garbage collection would use CPU, and delete Pods whose ReplicaSet is made up

measure() { # LABEL CMD...; the job and its flags are in $job
  local label=$1
  shift
  "$bin/driver" ${job%% *} -work "$dir" -batch "$batch" -label "$label" -quiet-wait "${QUIET:-20s}" ${job#${job%% *}} -- "$@" &
  wait $! || failed=1
}
kctl() { [ ${#kctl[@]} = 0 ] || measure "$1" "${kctl[@]}"; }

measure_sync() {
  measure controller-runtime "$bin/peer-cr"
  measure kube-rs "$bin/peer-kube"
  kctl kctl
  BENCH_STRIP=1 measure "controller-runtime strip" "$bin/peer-cr"
  BENCH_STRIP=1 measure "kube-rs strip" "$bin/peer-kube"
  BENCH_STRIP=1 kctl "kctl strip"
}
measure_controllers() {
  measure controller-runtime "$bin/peer-cr"
  measure kube-rs "$bin/peer-kube"
  kctl kctl
}
measure_floors() {
  measure "floor list limit=500 json" "$bin/driver" floor-list -limit 500
  measure "floor list limit=0 json" "$bin/driver" floor-list -limit 0
  measure "floor list limit=0 json gzip" "$bin/driver" floor-list -limit 0 -gzip
  measure "floor list limit=0 proto" "$bin/driver" floor-list -limit 0 -proto
  measure "floor watchlist json" "$bin/driver" floor-watchlist
  measure "floor watchlist proto" "$bin/driver" floor-watchlist -proto
}

# A fresh server answers its first few thousand writes in half the time, which would favour the first program.
case " $* " in *" converge "* | *" latency "*) job=converge && measure warm-up "$bin/driver" floor-controller ;; esac

for _ in $(seq "$rounds"); do
  for job in "$@"; do
    case $job in
    sync | sync-pods) measure_sync && BENCH_STREAMING=1 measure "kube-rs streaming" "$bin/peer-kube" ;;
    converge | latency) measure_controllers && measure "floor writes json" "$bin/driver" floor-controller ;;
    noop) measure_controllers && BENCH_INDEX=1 measure "kube-rs own index" "$bin/peer-kube" ;;
    floor) job=sync && measure_floors ;;
    floor-pods) job=sync-pods && measure_floors ;;
    ceiling) measure "plain HTTP, 10 workers" ;;
    scale)
      for n in $sizes; do job="sync-pods -n $n" && measure_sync; done
      for n in 100 1000; do job="converge -fleets $n" && measure_controllers; done ;;
    esac
  done
done
python3 "$here/report.py" "$dir/results.jsonl" "$batch"
exit $failed
