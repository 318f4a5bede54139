"""Reads the feature gates of kube-apiserver from `kube_features.go`.

Everything that a function can't read is in its list `left_over`. A lost gate would keep a field that a real server drops.
"""

import re

# The two spellings of a constant, within `const (…)`.
CONSTANT = re.compile(r'^\t(\w+)(?: +featuregate\.Feature)? += (?:featuregate\.Feature\()?"(\w+)"\)?$')
CONSTANTS = re.compile(r"^const \(\n(.*?)^\)", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"^var \w+ = map\[featuregate\.Feature\]featuregate\.VersionedSpecs\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
SPECS = re.compile(r"^\t([\w.]+): \{\n(.*?)^\t\},\n", re.MULTILINE | re.DOTALL)
SPEC = re.compile(r"^\t\t\{(.*)\},$")
SPEC_FIELD = re.compile(r"(\w+): ([^,]+)(?:, *|$)")
SPEC_FIELDS = {"Version", "Default", "LockToDefault", "PreRelease", "MinCompatibilityVersion"}
VERSION = re.compile(r'version\.MustParse\("([\d.]+)"\)')
# Packages whose gates the table of kube-apiserver lists, and which have their own table among the read files.
READ_PACKAGES = {"apiextensionsfeatures", "genericfeatures"}
# Packages with gates of clients and controllers, which no field needs.
OTHER_PACKAGES = {"clientfeatures", "kcmfeatures", "zpagesfeatures"}
TAG = re.compile(r"^\s*//\s*\+featureGate=(\S+)")
# Names in `+featureGate` tags that are not the name of a feature gate, with the gate's real name.
ALIASES = {"PodCertificateProjection": "PodCertificateRequest"}
# Gates that Kubernetes has removed after they were on for good, and whose tags remain.
REMOVED = {"CSIStorageCapacity"}


def code(text):
    """Returns the lines of Go code without comments and empty lines."""
    lines = (re.sub(r"\s*//.*", "", line) for line in text.splitlines())
    return [line for line in lines if line.strip()]


def minor(version):
    return tuple(int(number) for number in version.split(".")[:2])


def stage(line):
    """Returns the step of a line `{Version: …}`, and the oldest version of another server that it needs (or `None`). Returns `None` if the
    line has another form."""
    spec = SPEC.match(line)
    fields = dict(SPEC_FIELD.findall(spec[1])) if spec else {}
    version, compatible = VERSION.fullmatch(fields.get("Version", "")), VERSION.fullmatch(fields.get("MinCompatibilityVersion", ""))
    release = re.fullmatch(r"featuregate\.(\w+)", fields.get("PreRelease", ""))
    default = fields.get("Default", "false")
    if not version or not release or default not in ("true", "false") or set(fields) - SPEC_FIELDS:
        return None
    if SPEC_FIELD.sub("", spec[1]).strip() or ("MinCompatibilityVersion" in fields and not compatible):
        return None
    return {"since": version[1], "default": default == "true", "stage": release[1]}, compatible and compatible[1]


def steps_of(lines, version, left_over):
    """Returns the steps of a gate for a server that still has to work together with the previous minor version."""
    steps, compatible = [], None
    for line in lines:
        found = stage(line)
        if not found:
            left_over.append(line.strip())
            continue
        # A later step inherits the condition.
        compatible = found[1] or compatible
        major, number = minor(version)
        if not compatible or minor(compatible) <= (major, number - 1):
            steps.append(found[0])
    return steps


def constants(text, left_over):
    """Returns the names of gates by the name of their Go constant."""
    names = {}
    for line in code("".join(CONSTANTS.findall(text))):
        constant = CONSTANT.match(line)
        if constant:
            names[constant[1]] = constant[2]
        else:
            left_over.append(line.strip())
    return names


def specs(text, version, left_over):
    """Returns the steps of gates by the constant in the table, with its package."""
    tables = TABLE.findall(text)
    if len(tables) != 1:
        left_over.append(f"{len(tables)} tables of feature gates")
    left_over.extend(line.strip() for table in tables for line in code(SPECS.sub("", table)))
    return {constant: steps_of(code(lines), version, left_over) for constant, lines in SPECS.findall("".join(tables))}


def stages(files, version):
    """Returns the feature gates by name. Each has a list of steps: the version, the default and the stage. The second result lists what
    could not be read. `files` are the contents of `kube_features.go` by module, and `version` is the version of Kubernetes."""
    found, left_over, names, imported = {}, [], {}, set()
    for module, text in files.items():
        unread = []
        names |= constants(text, unread)
        for constant, steps in specs(text, version, unread).items():
            package, _, constant = constant.rpartition(".")
            if package in READ_PACKAGES:
                imported.add(constant)
            elif not package and constant in names:
                found[names[constant]] = steps
            elif package not in OTHER_PACKAGES:
                unread.append(f"{package}.{constant} in the table")
        left_over += [f"{module}: {line}" for line in unread]
    # A gate may have constants in two modules, and its steps in one of them.
    left_over += [f"{constant} has no steps" for constant, gate in names.items() if gate not in found]
    left_over += [f"{constant} is in the table of another package alone" for constant in imported if constant not in names]
    return found, left_over
