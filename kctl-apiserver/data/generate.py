"""Generates the data files of this folder, which the embedded API server reads.

resources.json, types.json, descriptions.json, parameters.json, columns.json, access.json and standard.json come from a running
kube-apiserver without extensions. proto.json, validation.json, features.json and version.txt come from the Go modules of the same
version, which `go mod download` has put into the module cache.

    KUBECONFIG=$(cargo xtask server up target/envtest) python3 kctl-apiserver/data/generate.py
    python3 kctl-apiserver/data/generate.py modules  # the files from Go modules alone: needs no server

types.json has the parts of the OpenAPI schemas that the server acts on: fields, list types, merge keys and required fields. The
descriptions are needed only for OpenAPI documents. They are in descriptions.json, which is read when a client requests a document.

proto.json has the fields of protobuf messages. For each field it records how Go writes the field to JSON:

    list, map   omitted if it is empty; the keys of a map are strings
    pointer     written if it is set
    always      written even if it is zero, because the Go field is a struct or lacks `omitempty`
    inline      embedded: its fields are written as fields of the surrounding message
    (nothing)   omitted if it is zero

A message with `items` is a list in JSON.

validation.json has the tags of declarative validation (`+k8s:…` in k8s.io/api) of the served types: the rules for each type and field
that kctl-apiserver/src/validation/declared.rs applies. A tag that depends on a feature gate is included if the default of the gate
turns the tag on.

features.json has the feature gates of kube-apiserver: the versions in which the stage or the default of each changed, and the fields
of served types that need it (`+featureGate`). kctl-apiserver/src/feature_gates.rs reads it.

With a server, tables.py writes the tables of kctl-runtime, which come from types.json and resources.json, and answers.py records the
defaulted objects of kctl-apiserver/src/defaulting/answers.json.

A feature gate that gates.py can't read, a tag that is neither a rule nor in `BY_FUNCTION`, and a function of CEL that cel.py misses in
kctl-cel are errors after all files are written.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.request

import answers
import cel
import gates
import tables

here = pathlib.Path(__file__).parent
# Parts of the Go modules that need a decision. They are an error at the end, after everything else is written.
left_over = []


def get(path):
    return json.loads(subprocess.run(["kubectl", "get", "--raw", path], check=True, stdout=subprocess.PIPE).stdout)


def check_version():
    """Exits if the server has another version than the Go modules. A server that was built from modules only knows its minor version."""
    version = get("/version")
    found = version["gitVersion"]
    if found.startswith("v0.0.0-"):
        found = f"v{version['major']}.{version['minor']}"
    if found != KUBERNETES and not (KUBERNETES + ".").startswith(found + "."):
        sys.exit(f"the server of KUBECONFIG has version {found}, but tests/envtest/go.mod has {KUBERNETES}")


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


# A description that at least this many fields share is written once.
SHARED_FROM = 4
# The Go modules with the types, and their versions as in the module cache.
GO_MOD = (here / "../../tests/envtest/go.mod").read_text()
VERSION = re.search(r"k8s.io/api => k8s.io/api (v\S+)", GO_MOD)[1]
KUBERNETES = re.search(r"k8s.io/kubernetes (v\S+)", GO_MOD)[1]
MODULES = ["api", "apimachinery", "apiextensions-apiserver", "kube-aggregator"]
# A type with a custom JSON form, which proto.rs implements.
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
GO_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
GO_FIELD = re.compile(r"^\s+(?:\w+\s+)?(\S+)\s+`(.*)`", re.MULTILINE)
PROTO_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
PROTO_FIELD = re.compile(r"^  (?:(optional|repeated|required) )?(map<string, *[^>]+>|\S+) (\w+) = (\d+);", re.MULTILINE)
SCALARS = {"string", "bytes", "bool", "int32", "int64", "double"}


def go_fields(folder):
    """Returns the fields of the structs of a package. Keys are struct and protobuf number; values are Go type, JSON name and JSON options."""
    found = {}
    for path in sorted(folder.glob("*.go")):
        if path.name.endswith("_test.go") or path.name.startswith("zz_generated"):
            continue
        for name, lines in GO_STRUCT.findall(path.read_text()):
            for go_type, tags in GO_FIELD.findall(lines):
                json_tag = re.search(r'json:"([^"]*)"', tags)
                number = re.search(r'protobuf:"\w+,(\d+)', tags)
                if number:
                    field, *options = json_tag[1].split(",") if json_tag else ["-", "omitempty"]
                    if not field:
                        options.append("inline")
                    found.setdefault(name, {})[int(number[1])] = (go_type, field, options)
    return found


def form(kind, repeated, go_type, options):
    if repeated:
        return "list"
    if go_type.startswith("*"):
        return "pointer"
    if "inline" in options:
        return "inline"
    left_out = "omitzero" in options or ("omitempty" in options and (kind in SCALARS or kind == INT_OR_STRING))
    return None if left_out else "always"


def message(package, lines, fields):
    """Returns the fields of a message, without those that Go does not write to JSON."""
    entries = []
    for label, kind, name, number in PROTO_FIELD.findall(lines):
        of_map = kind.startswith("map<")
        kind = kind.removeprefix("map<string,").removesuffix(">").strip()
        if kind not in SCALARS:
            kind = open_api_name(kind[1:] if kind.startswith(".") else f"{package}.{kind}")
        entry = {"number": int(number), "type": kind}
        # Types with a custom JSON marshaller have fields without tags.
        go_type, json_name, options = fields.get(int(number), ("", name, ["omitempty"]))
        if json_name == "-":
            json_name, options = name, ["omitempty"]
        how = "map" if of_map else form(kind, label == "repeated", go_type, options)
        if how in ("list", "map", "pointer") and not {"omitempty", "omitzero", "inline"} & set(options):
            entry["null"] = True
        if how != "inline":
            entry["name"] = json_name
        if how:
            entry["form"] = how
        entries.append(entry)
    return entries


def open_api_name(name):
    return name.replace("k8s.io.", "io.k8s.", 1).replace("_", "-")


def messages(cache):
    found = {}
    for module in MODULES:
        for path in sorted((cache / "k8s.io" / f"{module}@{VERSION}").rglob("generated.proto")):
            text = path.read_text()
            package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)[1]
            structs = go_fields(path.parent)
            for name, lines in PROTO_MESSAGE.findall(text):
                entry = {"fields": message(package, lines, structs.get(name, {}))}
                if name not in structs and [field["type"] for field in entry["fields"]] == ["string"]:
                    only = entry["fields"][0]
                    if only["name"] == "items":
                        entry = {"items": only["number"]}
                found[open_api_name(f"{package}.{name}")] = entry
    return found


GO_TYPE = re.compile(r"^type (\w+) (\S+)")
GO_FIELD_OF_JSON = re.compile(r'^\s+(?:\w+\s+)?(\S+)\s+`.*json:"([^",]*)')
K8S_TAG = re.compile(r"^\s*//\s*\+k8s:(.*?)\s*(?:#.*)?$")
# Tags that do not constrain the value of a field in the served versions.
NO_RULES = re.compile(
    r"optional$|listType=atomic$|conversion-gen|deepcopy-gen|defaulter-gen|deprecated|openapi-|prerelease-|protobuf-"
    r"|supportsSubresource|isSubresource|(eachVal=\+k8s:)?opaqueType$"
)
# Rules that are named like their tag. The value of a rule without a number or string is `true`.
NUMBERS = {"minimum", "maximum", "maxItems", "maxLength", "maxBytes"}
FLAGS = {"required", "immutable", "enum"}
# Tags that no rule of validation.json expresses, by field: a function of the kind validates the field, except where a comment says more.
# A tag that is neither here nor a rule is an error.
BY_FUNCTION = {
    ("batch.v1.JobSpec", "maxFailedIndexes"): ['dependentRequired("backoffLimitPerIndex")'],
    ("certificates.v1.CertificateSigningRequestStatus", "conditions"): [
        "listMapKey=type", "customUnique", 'item(type: "Approved")=+k8s:zeroOrOneOfMember', 'item(type: "Denied")=+k8s:zeroOrOneOfMember',
    ],
    # Names of objects are validated with the rest of the metadata.
    ("core.v1.ReplicationController", "metadata"): ["subfield(name)=+k8s:optional", "subfield(name)=+k8s:format=k8s-long-name"],
    ("resource.v1.DeviceClass", "metadata"): ["subfield(name)=+k8s:optional", "subfield(name)=+k8s:format=k8s-long-name"],
    ("core.v1.NodeSpec", "providerID"): ["update=NoUnset"],
}
# The formats that kctl-apiserver/src/validation/format.rs checks.
FORMATS = {
    "k8s-short-name", "k8s-long-name", "k8s-long-name-caseless", "k8s-label-key", "k8s-uuid", "k8s-extended-resource-name",
    "k8s-resource-pool-name", "k8s-resource-fully-qualified-name",
}


# Go modules that define feature gates of kube-apiserver, with the folder of these files.
GATE_MODULES = [("kubernetes", "pkg/features"), ("apiserver", "pkg/features"), ("apiextensions-apiserver", "pkg/features")]


def gate_stages(cache):
    """Returns the feature gates of kube-apiserver by name. Each has a list of steps: the version, the default and the stage."""
    files = {}
    for module, folder in GATE_MODULES:
        version = VERSION if module != "kubernetes" else KUBERNETES
        files[module] = (cache / "k8s.io" / f"{module}@{version}" / folder / "kube_features.go").read_text()
    found, unread = gates.stages(files, KUBERNETES.removeprefix("v"))
    left_over.extend(unread)
    return found


def gated_fields(lines):
    """Returns the fields of a package with a `+featureGate` tag: struct, JSON name and gates. The field needs all of the gates."""
    struct, names = None, []
    for line in lines:
        tag, go_type, field = gates.TAG.match(line), GO_TYPE.match(line), GO_FIELD_OF_JSON.match(line)
        if tag:
            names = tag[1].split(",")
        elif go_type:
            struct, names = go_type[1], []
        elif not line.strip().startswith("//"):
            # Enum values also have the tag, but no JSON name.
            if field and names:
                yield struct, field[2], [gates.ALIASES.get(name, name) for name in names]
            names = []


def write_features(cache, served):
    """Writes the feature gates, each with the fields that it gates. Returns the names of those that are on by default."""
    stages, fields = gate_stages(cache), {}
    for package, lines in packages(cache, served):
        for struct, field, names in gated_fields(lines):
            if f"{package}.{struct}" not in served:
                continue
            for gate in names:
                if gate in stages:
                    by_type = fields.setdefault(gate, {})
                    by_type.setdefault(f"{package}.{struct}", []).append(field)
                elif gate not in gates.REMOVED:
                    left_over.append(f"{package}.{struct}.{field}: no feature gate {gate}; see REMOVED and ALIASES in gates.py")
    gated = {gate: {"fields": of} for gate, of in fields.items()}
    write("features.json", [{"name": gate, "stages": stages[gate]} | gated.get(gate, {}) for gate in sorted(stages)])
    return {gate for gate, steps in stages.items() if steps[-1]["default"]}


def without_stage(tag):
    return re.sub(r'^(alpha|beta)\(since: *"[^"]*"\)=\+k8s:', "", tag)


def rule_of_tag(tag, enabled):
    """Returns the rule of a tag: its name and its value. Returns None if a feature gate turns the tag off by default."""
    tag = without_stage(tag)
    gated = re.match(r'if(En|Dis)abled\("?(\w+)"?\)=\+k8s:(.*)', tag)
    if gated:
        return rule_of_tag(gated[3], enabled) if (gated[2] in enabled) == (gated[1] == "En") else None
    name, _, value = tag.partition("=")
    # `member` lists all values of the discriminator (until 1.36). `ifMode` lists the values that allow the field (since
    # 1.37).
    member = re.match(r'(member|ifMode)\("(\w+)"\)', name)
    if member:
        others = {"*": "forbidden"} if member[1] == "ifMode" else {}
        return "member", {member[2]: value.removeprefix("+k8s:")} | others
    if name in NUMBERS:
        return name, int(value)
    if name in FLAGS:
        return name, True
    if name == "unionMember" and not value:
        return name, True
    if tag in ("discriminator", "modeDiscriminator"):
        return "discriminator", True
    if name == "format" and value.strip('"') in FORMATS:
        return name, value.strip('"')
    if tag.startswith("eachKey=+k8s:format=") and tag.rpartition("=")[2] in FORMATS:
        return "formatOfKeys", tag.rpartition("=")[2]
    if tag == "update=NoModify":
        return "noModify", True
    if name == "listMapKey":
        return "unique", [value]
    if tag in ("unique=set", "listType=set"):
        return "unique", []
    return "unknown", tag


def declared_rules(lines, enabled):
    """Returns the rules of the fields of a package, by struct and JSON name."""
    struct, tags, enums, found, types = None, [], set(), {}, {}
    n_tags = n_used = 0
    unknown = []
    for line in lines:
        tag, go_type, field = K8S_TAG.match(line), GO_TYPE.match(line), GO_FIELD_OF_JSON.match(line)
        if tag and not NO_RULES.match(without_stage(tag[1])):
            tags.append(tag[1])
            n_tags += 1
        elif go_type:
            struct = go_type[1]
            if any(tag.endswith("enum") for tag in tags):
                enums.add(struct)
                n_used += 1
            tags = []
        elif field:
            rules = {}
            custom = any(tag.endswith("customUnique") for tag in tags)
            for tag in tags:
                rule = rule_of_tag(tag, enabled)
                if rule and rule[0] == "unique" and custom:
                    rule = ("unknown", tag)
                if not rule or rule[0] == "unknown":
                    unknown += [(struct, field[2], without_stage(tag))] if rule and "unique=map" not in tag and "listType=map" not in tag else []
                    continue
                n_used += 1
                name, value = rule
                if name in ("unique", "member") and name in rules:
                    value = rules[name] + value if name == "unique" else rules[name] | value
                rules[name] = value
            types.setdefault(struct, {})[field[2]] = field[1].lstrip("*[]")
            if rules:
                found.setdefault(struct, {})[field[2]] = rules
            tags = []
    for struct, fields in types.items():
        for field, go_type in fields.items():
            if go_type in enums:
                found.setdefault(struct, {}).setdefault(field, {})["enum"] = True
    return found, n_tags, n_used, unknown


def packages(cache, served):
    """Returns the packages of k8s.io/api with served types: the name and the lines of `types.go`."""
    for path in sorted((cache / "k8s.io" / f"api@{VERSION}").glob("*/*/types.go")):
        package = f"io.k8s.api.{path.parent.parent.name}.{path.parent.name}"
        if any(name.startswith(package + ".") for name in served):
            yield package, path.read_text().splitlines()


def reachable(enabled_fields):
    """Returns the types that an object in a request can contain. `enabled_fields` returns the fields of a type that are not dropped."""
    types = {entry["name"]: entry["type"] for entry in json.loads((here / "types.json").read_text())}
    left = [name for name, schema in types.items() if "x-kubernetes-group-version-kind" in schema]
    found = set()
    while left:
        name = left.pop()
        if name in found or name not in types:
            continue
        found.add(name)
        for field in enabled_fields(name, types[name].get("properties", {})):
            left += [part["$ref"] for part in [field, field.get("items", {}), field.get("additionalProperties", {})] if "$ref" in part]
    return found


def report_unknown_tags(unknown, features):
    """Reports tags that are neither rules nor in `BY_FUNCTION`. Fields that the server drops are not considered, and entries of `BY_FUNCTION`
    whose tag is gone are reported too."""
    off = [gate["fields"] for gate in features if "fields" in gate and not gate["stages"][-1]["default"]]
    dropped = {(name, field) for of_gate in off for name, fields in of_gate.items() for field in fields}
    in_requests = reachable(lambda name, fields: [fields[field] for field in fields if (name, field) not in dropped])
    listed = {(f"io.k8s.api.{name}", field, tag) for (name, field), tags in BY_FUNCTION.items() for tag in tags}
    found = {(name, field, tag) for name, field, tag in unknown if name in in_requests and (name, field) not in dropped}
    left_over.extend(f"no rule for {name}.{field}: {tag}" for name, field, tag in sorted(found - listed))
    left_over.extend(f"not a tag, but in BY_FUNCTION: {name}.{field}: {tag}" for name, field, tag in sorted(listed - found))


def write_rules(cache, served, enabled):
    entries, all_unknown = [], []
    n_tags = n_used = 0
    for package, lines in packages(cache, served):
        found, tags, used, unknown = declared_rules(lines, enabled)
        n_tags, n_used = n_tags + tags, n_used + used
        all_unknown += [(f"{package}.{struct}", field, tag) for struct, field, tag in unknown]
        entries += [{"name": f"{package}.{name}", "fields": fields} for name, fields in found.items()]
    report_unknown_tags(all_unknown, json.loads((here / "features.json").read_text()))
    print(f"{n_used} of {n_tags} tags of served versions that restrict a value are rules in validation.json")
    write("validation.json", [entry for entry in sorted(entries, key=lambda entry: entry["name"]) if entry["name"] in served])


def module_cache():
    cache = os.environ.get("GOMODCACHE")
    if not cache:
        cache = subprocess.run(["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True).stdout.strip()
    return pathlib.Path(cache)


def write_messages(cache):
    known = messages(cache)
    kinds = json.loads((here / "types.json").read_text())
    left = [entry["name"] for entry in kinds if "x-kubernetes-group-version-kind" in entry["type"]]
    reached = {}
    while left:
        name = left.pop()
        if name in reached or name in SCALARS or name not in known:
            continue
        reached[name] = known[name]
        left.extend(field["type"] for field in known[name].get("fields", []))
    write("proto.json", [{"name": name, **reached[name]} for name in sorted(reached)])


def write_types():
    check_version()
    groups = [{"groupVersion": "v1", "resources": get("/api/v1")["resources"]}]
    for group in get("/apis")["groups"]:
        for version in group["versions"]:
            groups.append({"groupVersion": version["groupVersion"], "resources": get("/apis/" + version["groupVersion"])["resources"]})
    write("resources.json", groups)

    document = get("/openapi/v2")
    write("descriptions.json", descriptions(document["definitions"]))
    write("parameters.json", parameters(document))
    definitions = without_descriptions(document["definitions"])
    # Only OpenAPI version 3 has the defaults. `{}` marks a field that is always present, and other defaults complete
    # list keys.
    for path in get("/openapi/v3")["paths"].values():
        for name, schema in get(path["serverRelativeURL"]).get("components", {}).get("schemas", {}).items():
            for field, property in schema.get("properties", {}).items():
                known = definitions.get(name, {}).get("properties", {}).get(field)
                if known is not None and "default" in property:
                    known["default"] = property["default"]
    text = json.dumps([{"name": name, "type": definitions[name]} for name in sorted(definitions)])
    write("types.json", json.loads(text.replace('"#/definitions/', '"')))
    write("columns.json", table_columns(groups))
    write("access.json", access())
    write("standard.json", standard())
    tables.write()
    answers.write()


def descriptions(definitions):
    """Returns the descriptions that many types share, and by type its description and its fields' descriptions. Each is a string, or the index of
    a shared one."""
    texts = collections.Counter()
    for definition in definitions.values():
        texts.update(field.get("description") for field in definition.get("properties", {}).values())
    shared = [text for text, uses in texts.most_common() if text and uses >= SHARED_FROM]
    place = {text: number for number, text in enumerate(shared)}
    yield {"shared": shared}
    for name in sorted(definitions):
        definition = definitions[name]
        of_fields = {field: property.get("description") for field, property in definition.get("properties", {}).items()}
        fields = {field: place.get(text, text) for field, text in of_fields.items() if text}
        entry = {"name": name} | ({"type": definition["description"]} if "description" in definition else {})
        yield entry | ({"fields": fields} if fields else {})


def parameters(document):
    """Returns the query parameters of requests. Parameters of the same name are distinguished by their subresource or method."""
    found = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            both = [] if method == "parameters" else operation.get("parameters", []) + item.get("parameters", [])
            special = both and (operation.get("x-kubernetes-action") == "connect" or path.endswith("/log"))
            for parameter in both:
                shared = parameter.get("$ref", "").removeprefix("#/parameters/")
                parameter = document["parameters"].get(shared, parameter)
                name = parameter["name"]
                if name == "name" or (name == "body" and not shared):
                    continue
                entry = {"parameter": parameter} | ({"shared": shared} if shared else {})
                of = None
                if special and name not in ["namespace", "pretty"] and parameter["in"] == "query":
                    of = path.removeprefix("/api/v1/").removeprefix("namespaces/{namespace}/").replace("{name}/", "")
                    of = of.removesuffix("/{path}")
                elif name == "body" or (name == "fieldManager" and method == "patch"):
                    of = method
                found[(name, of or "", shared)] = entry | ({"of": of} if of else {})
    for _, entry in sorted(found.items()):
        yield entry


BOOTSTRAPPED = "kubernetes.io/bootstrapping"


def access():
    """Returns the roles and bindings of a new cluster, without uids and times."""
    group = "rbac.authorization.k8s.io"
    for resource in ["clusterroles", "clusterrolebindings", "roles", "rolebindings"]:
        answer = get(f"/apis/{group}/v1/{resource}")
        items = [item for item in answer["items"] if item["metadata"].get("labels", {}).get(BOOTSTRAPPED) == "rbac-defaults"]
        for found in items:
            aggregate(found, items)
        for found in items:
            yield bootstrap_object(group, resource, answer, found)


def aggregate(role, roles):
    """Sets the rules of an aggregated role, after the rules of the roles that are part of it, as the controller would, which does not run."""
    if "aggregationRule" not in role or role.get("rules"):
        return
    role["rules"] = []
    for selector in role["aggregationRule"]["clusterRoleSelectors"]:
        for part in roles:
            if part is not role and selector["matchLabels"].items() <= part["metadata"]["labels"].items():
                aggregate(part, roles)
                for rule in part["rules"] or []:
                    if rule not in role["rules"]:
                        role["rules"].append(rule)
    written = {"manager": "clusterrole-aggregation-controller", "operation": "Apply", "fieldsV1": {"f:rules": {}}}
    role["metadata"]["managedFields"].insert(0, role["metadata"]["managedFields"][0] | written)


def bootstrap_object(group, resource, answer, found):
    """Returns an object of a list as a line of a data file, without uid and times."""
    meta = found["metadata"]
    for field in ["uid", "resourceVersion", "creationTimestamp"]:
        del meta[field]
    for manager in meta.get("managedFields", []):
        del manager["time"]
    for condition in found.get("status", {}).get("conditions", []):
        del condition["lastTransitionTime"]
    found |= {"apiVersion": answer["apiVersion"], "kind": answer["kind"].removesuffix("List")}
    return {"group": group, "resource": resource, "object": found}


def standard():
    """Returns the other objects of a new cluster, without uids and times. Replaces the port of the API server by the default port, and its
    address by one that is reserved for documentation."""
    everywhere = {
        "scheduling.k8s.io": ["priorityclasses"],
        "flowcontrol.apiserver.k8s.io": ["flowschemas", "prioritylevelconfigurations"],
        "networking.k8s.io": ["servicecidrs"],
    }
    paths = [(group, name, f"/apis/{group}/v1/{name}") for group, names in everywhere.items() for name in names]
    paths.append(("", "services", "/api/v1/namespaces/default/services"))
    # Paths that were added later are appended, because uids are generated in this order.
    paths.append(("apiregistration.k8s.io", "apiservices", "/apis/apiregistration.k8s.io/v1/apiservices"))
    paths.append(("networking.k8s.io", "ipaddresses", "/apis/networking.k8s.io/v1/ipaddresses"))
    paths.append(("", "endpoints", "/api/v1/namespaces/default/endpoints"))
    paths.append(("discovery.k8s.io", "endpointslices", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"))
    for group, resource, path in paths:
        answer = get(path)
        for found in answer["items"]:
            for port in found["spec"].get("ports", []) if "spec" in found else []:
                port["targetPort"] = 6443
            for part in [*found.get("subsets", []), *([found] if "endpoints" in found else [])]:
                for port in part["ports"]:
                    port["port"] = 6443
                for address in part.get("addresses", []):
                    address["ip"] = "192.0.2.1"
                for endpoint in part.get("endpoints", []):
                    endpoint["addresses"] = ["192.0.2.1"]
            yield bootstrap_object(group, resource, answer, found)


def table_columns(groups):
    """Returns the table columns of each listable kind. The requests go through a proxy, because kubectl can't set the `Accept` header
    that selects tables."""
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


if sys.argv[1:] != ["modules"]:
    write_types()
cache = module_cache()
write_messages(cache)
(here / "version.txt").write_text(KUBERNETES.removeprefix("v") + "\n")
served = {entry["name"] for entry in json.loads((here / "types.json").read_text())}
write_rules(cache, served, write_features(cache, served))
left_over += cel.check(cache / "k8s.io" / f"apiserver@{VERSION}", int(KUBERNETES.split(".")[1]))
if left_over:
    sys.exit("\n".join(["left over:", *left_over]))
