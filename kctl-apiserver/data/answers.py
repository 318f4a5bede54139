"""Records kctl-apiserver/src/defaulting/answers.json again: creates each object on a running kube-apiserver as a dry run.

    KUBECONFIG=$(cargo xtask server up target/envtest) python3 kctl-apiserver/data/answers.py

generate.py runs this too. A new entry needs `apiVersion`, `kind` and `sent`; its name says what it checks. The recorded object lacks
everything that `default_object` does not set: what other parts of the server add or allocate.
"""

import json
import pathlib
import subprocess

here = pathlib.Path(__file__).parent
path = here / "../src/defaulting/answers.json"
# Metadata that a server adds, unless the request has it.
METADATA = ["name", "namespace", "uid", "creationTimestamp", "managedFields", "resourceVersion", "generation", "finalizers"]
# Fields that admission plugins and strategies set, unless the request has them.
SET_ELSEWHERE = {
    "Pod": ["spec.priority", "spec.preemptionPolicy"],
    "PersistentVolume": ["status.lastPhaseTransitionTime"],
    "Service": ["spec.clusterIP", "spec.clusterIPs", "spec.ports.*.nodePort"],
    # The strategy generates a selector for the uid.
    "Job": ["spec.selector", "spec.template.metadata.labels", "metadata.labels"],
}


def remove(value, sent, names):
    """Removes the field at a path from a value, unless the request has it. `*` means each item of a list."""
    name, *below = names
    if name == "*":
        for number, item in enumerate(value):
            remove(item, sent[number] if number < len(sent) else {}, below)
    elif name in value and not below and name not in sent:
        del value[name]
    elif name in value and below:
        remove(value[name], sent.get(name) or {}, below)


def created(answer, resources):
    """Returns the object that the server would store."""
    version, kind = answer["apiVersion"], answer["kind"]
    resource = resources[version, kind]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    place = "/namespaces/default" if resource["namespaced"] else ""
    meta = {"name": "recorded"} | answer["sent"].get("metadata", {})
    body = answer["sent"] | {"apiVersion": version, "kind": kind, "metadata": meta}
    command = ["kubectl", "create", "--raw", f"{root}{place}/{resource['name']}?dryRun=All", "-f", "-"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, input=json.dumps(body).encode()).stdout)


def stored(answer, resources):
    """Returns the part of the stored object that `default_object` sets."""
    found = created(answer, resources)
    paths = [f"metadata.{name}" for name in METADATA] + ["apiVersion", "kind"] + SET_ELSEWHERE.get(answer["kind"], [])
    if "clusterIP" in answer["sent"].get("spec", {}):
        # Defaulting sets the list from the address in the request.
        paths = [field for field in paths if field != "spec.clusterIPs"]
    for field in paths:
        remove(found, answer["sent"], field.split("."))
    return found


def write():
    answers = json.loads(path.read_text())
    groups = json.loads((here / "resources.json").read_text())
    resources = {(group["groupVersion"], one["kind"]): one for group in groups for one in group["resources"] if "/" not in one["name"]}
    entries = []
    for name, answer in answers.items():
        lines = [f'"apiVersion": {json.dumps(answer["apiVersion"])}, "kind": {json.dumps(answer["kind"])}']
        for key, value in [("sent", answer["sent"]), ("stored", stored(answer, resources))]:
            lines.append(f'"{key}": {json.dumps(value, sort_keys=True)}')
        entries.append(f"  {json.dumps(name)}: {{\n    " + ",\n    ".join(lines) + "\n  }")
    path.write_text("{\n" + ",\n".join(entries) + "\n}\n")


if __name__ == "__main__":
    write()
