#!/usr/bin/env bash
# ring.sh SHARDER DIR: runs the operator of `shards-bench` as shards of the real sharder on a real kube-apiserver. Shards join, stop, are killed
# and freeze. In the end, all objects have to be reconciled in their last state, and none by two shards at once.
#
# SHARDER is a checkout of kubernetes-controller-sharding v0.13.0, because the Go proxy does not serve it:
#
#     git clone --branch v0.13.0 https://github.com/timebertt/kubernetes-controller-sharding target/sharder
#     cargo build --release -p shards-bench
#     benches/shards/ring.sh target/sharder target/ring
#
# DIR gets the files of the server, logs and journals, and has to be new. The sharder's webhook needs the port 9443. It needs what `cargo xtask
# server` needs, and kubectl. REPLICA names another build of the operator.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
sharder=$(cd "${1:?a checkout of kubernetes-controller-sharding}" && pwd)
mkdir -p "${2:?a new folder}/webhook"
dir=$(cd "$2" && pwd)
replica=$(realpath "${REPLICA:-$root/target/release/shards-replica}")
objects=300
declare -A pids=()

(cd "$sharder" && CGO_ENABLED=0 GOWORK=off go build -o "$dir/sharder" ./cmd/sharder)
KUBECONFIG=$("$root/tests/envtest/up" "$dir/server")
export KUBECONFIG
stop() {
    for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
    "$root/tests/envtest/down" "$dir/server"
}
trap stop EXIT

# kubeconfig FILE NAMESPACE ACCOUNT: a kubeconfig with the permissions of a service account.
kubeconfig() {
    cp "$KUBECONFIG" "$1"
    kubectl --kubeconfig "$1" config set-credentials account --token "$(kubectl create token "$3" --namespace "$2" --duration 2h)"
    kubectl --kubeconfig "$1" config set-context envtest --user account --namespace "$2"
} >/dev/null

# The sharder with its own role.
kubectl apply --server-side -k "$sharder/config/crds"
kubectl apply --server-side --namespace sharding-system -k "$sharder/config/rbac"
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=sharder -addext subjectAltName=IP:127.0.0.1 \
    -keyout "$dir/webhook/tls.key" -out "$dir/webhook/tls.crt" 2>/dev/null
cat >"$dir/sharder.yaml" <<CONFIG
apiVersion: config.sharding.timebertt.dev/v1alpha1
kind: SharderConfig
health: { bindAddress: "0" }
metrics: { bindAddress: "0" }
webhook:
  server: { certDir: "$dir/webhook" }
  config:
    clientConfig: { url: "https://127.0.0.1:9443/", caBundle: "$(base64 -w 0 "$dir/webhook/tls.crt")" }
CONFIG
kubeconfig "$dir/sharder.kubeconfig" sharding-system sharder
KUBECONFIG=$dir/sharder.kubeconfig "$dir/sharder" --config "$dir/sharder.yaml" >"$dir/sharder.log" 2>&1 &
pids[sharder]=$!

# The operator with its printed role, and its ring. No controller runs the printed Deployment: the shards are processes.
"$replica" generate-manifests --controller-ring pod-group --image unused:1 | kubectl apply --server-side -f -
kubeconfig "$dir/shard.kubeconfig" default pod-group

# shard NAME: starts a shard.
shard() {
    BENCH_JOURNAL=$dir/$1.journal KUBECONFIG=$dir/shard.kubeconfig "$replica" run --controller-ring pod-group \
        --leader-election-identity "$1" >"$dir/$1.log" 2>&1 &
    pids[$1]=$!
}

# change N: sets `spec.change` of all objects, and creates them the first time.
change() {
    for ((i = 0; i < objects; i++)); do
        echo "---"
        echo "{apiVersion: bench.example.com/v1, kind: PodGroup, metadata: {name: group-$i}, spec: {replicas: 2, change: $1}}"
    done | kubectl apply --server-side -f - >/dev/null
}

# state N: prints the number of objects that were reconciled with `spec.change` N, of drain labels, and of objects by shard.
state() {
    kubectl get podgroups -o json | python3 -c '
import collections, json, sys
objects = json.load(sys.stdin)["items"]
labels = [o["metadata"].get("labels", {}) for o in objects]
done = sum(o.get("status", {}).get("change") == int(sys.argv[1]) for o in objects)
drains = sum(any(key.startswith("drain.") for key in of) for of in labels)
shards = collections.Counter(of.get("shard.alpha.sharding.timebertt.dev/pod-group", "none") for of in labels)
print(done, drains, *(f"{name}={n}" for name, n in sorted(shards.items())))' "$1"
}

# settle N PATTERN: waits until all objects are reconciled with N, none is drained, and the shards match the pattern.
settle() {
    for ((second = 0; second < 180; second++)); do
        now=$(state "$1")
        if [[ $now =~ ^"$objects 0 "$2 ]]; then
            echo "after $second s: $now"
            return
        fi
        sleep 1
    done
    echo "not settled: $now" >&2
    exit 1
}

echo "three shards start, and $objects objects are created"
for name in shard-1 shard-2 shard-3; do shard $name; done
for ((i = 0; i < 60; i++)); do
    [[ $(kubectl get controllerring pod-group -o jsonpath='{.status.availableShards}') == 3 ]] && break
    sleep 1
done
change 0
settle 0 'shard-1=[0-9]+ shard-2=[0-9]+ shard-3=[0-9]+$'

echo "a fourth one joins"
shard shard-4
settle 0 'shard-1=[0-9]+ shard-2=[0-9]+ shard-3=[0-9]+ shard-4=[0-9]+$'

echo "one stops"
kill "${pids[shard-2]}"
settle 0 'shard-1=[0-9]+ shard-3=[0-9]+ shard-4=[0-9]+$'

echo "one is killed and one is frozen for 46 s; all objects change 14 times"
kill -9 "${pids[shard-1]}"
kill -STOP "${pids[shard-3]}"
frozen=$SECONDS
for n in {1..14}; do change "$n"; done
sleep $((SECONDS - frozen < 46 ? 46 - (SECONDS - frozen) : 0))
kill -CONT "${pids[shard-3]}"
settle 14 'shard-4=[0-9]+$'
for ((i = 0; i < 20; i++)); do
    kill -0 "${pids[shard-3]}" 2>/dev/null || break
    sleep 0.5
done
kill -0 "${pids[shard-3]}" 2>/dev/null && { echo "the frozen shard did not end" >&2; exit 1; }
[[ $(kubectl get pods --no-headers | wc -l) == $((objects * 2)) ]] || { echo "not two Pods of each object" >&2; exit 1; }

# A reconcile without an end, or with an error, is left out: a frozen shard has one that lasts until it continues, but writes nothing.
python3 - "$dir"/*.journal <<'CHECK'
import sys

runs = []
for path in sys.argv[1:]:
    started = {}
    for line in open(path):
        event, at, name, _ = line.split()
        if event == "S":
            started[name] = int(at)
        elif event == "E":
            runs.append((name, started.pop(name), int(at), path))
runs.sort()
twice = [(a, b) for a, b in zip(runs, runs[1:]) if a[0] == b[0] and a[3] != b[3] and b[1] < a[2]]
print(f"{len(runs)} reconciles, {len(twice)} of one key in two shards at once")
sys.exit(f"{twice[:5]}" if twice else 0)
CHECK
