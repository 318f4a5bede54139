"""Writes resources.json, types.json and columns.json from a running kube-apiserver without extensions.

    KUBECONFIG=$(../../shared/envtest/up target/envtest) python3 kctl-apiserver/data/generate.py

What is kept of the types is what the API server itself acts on: fields, list types, merge keys, required fields.
"""

import json
import pathlib
import subprocess
import urllib.request

here = pathlib.Path(__file__).parent


def get(path):
    return json.loads(subprocess.run(["kubectl", "get", "--raw", path], check=True, capture_output=True).stdout)


def write(name, entries):
    lines = ",\n".join(json.dumps(entry, separators=(",", ":"), sort_keys=True) for entry in entries)
    (here / name).write_text("[\n" + lines + "\n]\n")


def without_descriptions(node):
    if isinstance(node, dict):
        return {
            key: without_descriptions(value)
            for key, value in node.items()
            if not (key == "description" and isinstance(value, str))
        }
    if isinstance(node, list):
        return [without_descriptions(value) for value in node]
    return node


groups = [{"groupVersion": "v1", "resources": get("/api/v1")["resources"]}]
for group in get("/apis")["groups"]:
    for version in group["versions"]:
        groups.append({"groupVersion": version["groupVersion"], "resources": get("/apis/" + version["groupVersion"])["resources"]})
write("resources.json", groups)

definitions = without_descriptions(get("/openapi/v2")["definitions"])
# Only version 3 knows the defaults: `{}` is a part that is always there, others complete the keys of lists.
for path in get("/openapi/v3")["paths"].values():
    for name, schema in get(path["serverRelativeURL"]).get("components", {}).get("schemas", {}).items():
        for field, property in schema.get("properties", {}).items():
            known = definitions.get(name, {}).get("properties", {}).get(field)
            if known is not None and "default" in property:
                known["default"] = property["default"]
text = json.dumps([{"name": name, "type": definitions[name]} for name in sorted(definitions)])
write("types.json", json.loads(text.replace('"#/definitions/', '"')))


def tables():
    """The columns of each listable kind; only a client that names its own Accept header gets them, hence the proxy."""
    proxy = subprocess.Popen(["kubectl", "proxy", "--port=0"], stdout=subprocess.PIPE, text=True)
    try:
        address = "http://" + proxy.stdout.readline().split()[-1]
        seen = set()
        for group in groups:
            name, _, version = group["groupVersion"].rpartition("/")
            root = "/apis/" + group["groupVersion"] if name else "/api/" + version
            for resource in group["resources"]:
                key = (name, resource["kind"])
                if "list" not in resource["verbs"] or key in seen:
                    continue
                seen.add(key)
                accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
                url = f"{address}{root}/{resource['name']}?limit=1&includeObject=None"
                with urllib.request.urlopen(urllib.request.Request(url, headers=accept)) as answer:
                    yield {"group": name, "kind": resource["kind"], "columns": json.load(answer)["columnDefinitions"]}
    finally:
        proxy.terminate()


write("columns.json", tables())
