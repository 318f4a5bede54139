"""Compares the declarations of kctl-cel with the Go modules: functions and fields that expressions can use.

kctl-cel/src/library.txt and fields.txt are written by hand, because Go declares overloads in code. What they lack is in the list
`left_over`. A function may be declared before expressions can use it: in a new expression, an API server allows what the previous minor
version knows. library.txt names it in a line `# From 1.38 on: includes`.
"""

import pathlib
import re

declared = pathlib.Path(__file__).parent / "../../kctl-cel/src"
FUNCTION = re.compile(r'^\t+"([\w.@]+)": (?:\[\]cel\.FunctionOpt)?\{|decls\["([\w.@]+)"\]|cel\.Function\("([\w.@]+)"', re.MULTILINE)
# The table of format.go with the names of formats. Each is a function with the prefix `format.`.
FORMATS = re.compile(r"^var ConstantFormats = .*?^\}", re.DOTALL | re.MULTILINE)
FORMAT = re.compile(r'^\t"(\w+)": \{', re.MULTILINE)
LATER = re.compile(r"^# From 1\.(\d+) on: (.*)$", re.MULTILINE)
OBJECT_TYPE = re.compile(r'NewObjectType\("([\w.]+)", fields\(\n(.*?)\n\t\)\)', re.DOTALL)
OBJECT_FIELD = re.compile(r'^\t\tfield\("(\w+)"', re.MULTILINE)
OPTIONS = re.compile(r"IntroducedVersion: version\.MajorMinor\(1, (\d+)\),.*?EnvOptions: \[\]cel\.EnvOption\{\n(.*?)^\t\t\},", re.DOTALL | re.MULTILINE)


def functions(library):
    found = set()
    for path in sorted(library.glob("*.go")):
        # test.go has a library for Kubernetes' own tests.
        if path.name.endswith("_test.go") or path.name == "test.go":
            continue
        text = path.read_text()
        found |= {name for names in FUNCTION.findall(FORMATS.sub("", text)) for name in names if name}
        found |= {f"format.{name}" for formats in FORMATS.findall(text) for name in FORMAT.findall(formats)}
    return found


def lacking_functions(apiserver, minor):
    """Returns the functions that library.txt has to have in this version and lacks."""
    text = (declared / "library.txt").read_text()
    known = {line.split(" | ")[0].lstrip(".") for line in text.splitlines() if not line.startswith("#")}
    later = {name for since, names in LATER.findall(text) if int(since) > minor for name in names.split(", ")}
    missing = functions(apiserver / "pkg/cel/library") - known - later
    return [f"function {name}" for name in sorted(missing)]


def lacking_fields(apiserver):
    """Returns the fields of requests and namespaces that fields.txt lacks."""
    lines = [line for line in (declared / "fields.txt").read_text().splitlines() if not line.startswith("#")]
    known = {line.split(" ", 1)[0]: {field.split(" ")[0] for field in line.split(" ", 1)[1].split("; ")} for line in lines}
    types = OBJECT_TYPE.findall((apiserver / "pkg/admission/plugin/cel/compile.go").read_text())
    if len(types) < 5:
        return ["no types found in compile.go"]
    return [f"field {name}.{field}" for name, fields in types for field in OBJECT_FIELD.findall(fields) if field not in known.get(name, ())]


def new_options(apiserver, minor):
    """Returns the libraries that new expressions can use since this version, as `pkg/cel/environment/base.go` names them."""
    text = (apiserver / "pkg/cel/environment/base.go").read_text()
    return [line.strip() for introduced, lines in OPTIONS.findall(text) if int(introduced) == minor - 1 for line in lines.splitlines()]


def check(apiserver, minor):
    """Returns what kctl-cel lacks, and prints the libraries that are new for expressions."""
    for option in new_options(apiserver, minor):
        print(f"new in expressions: {option}")
    return [f"kctl-cel lacks {what}" for what in lacking_functions(apiserver, minor) + lacking_fields(apiserver)]
