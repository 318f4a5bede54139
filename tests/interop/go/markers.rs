//! Compares the golden manifests with those that controller-gen generates from the same kinds and roles in Go
//! (`controller-gen/`).

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde_json::Value;

use super::{Folder, program_of, run_and_read};

/// Fields of built-in types. Their schemas come from k8s-openapi here and from Go's sources there;
/// `guide/controller-gen.md` lists the differences.
const BUILT_IN: [&str; 3] = ["spec.selector", "spec.template", "status.conditions"];

/// All other differences. `guide/controller-gen.md` explains them.
const KNOWN: [&str; 14] = [
    "Bounds metadata.name: \"boundses.example.com\" here, \"bounds.example.com\" there",
    "Bounds names.plural: \"boundses\" here, \"bounds\" there",
    "Bounds v1 spec.table[][].enum: [\"a\",\"b\"] here, null there",
    "Free v1 spec.port.maximum: 2147483647 here, null there",
    "Free v1 spec.port.minimum: -2147483648 here, null there",
    "Ruled v1 spec.class.rules.0.message: \"the value can't be changed\" here, \"field is immutable\" there",
    "Ruled v1 spec.rules.0.message: \"at least one of a, b, c-d must be set\" here, \"at least one of the fields in [a b c-d] must be set\" there",
    "Ruled v1 spec.rules.0.rule: \"[has(self.a), has(self.b), has(self.c__dash__d)].filter(present, present).size() >= 1\" here, \"has(self.a)||has(self.b)||has(self.c-d)\" there",
    "Ruled v1 spec.rules.1.message: \"at most one of a, b must be set\" here, \"at most one of the fields in [a b] may be set\" there",
    "Ruled v1 spec.rules.1.rule: \"[has(self.a), has(self.b)].filter(present, present).size() <= 1\" here, \"(has(self.a)?1:0)+(has(self.b)?1:0) <= 1\" there",
    "Ruled v1 spec.rules.2.message: \"exactly one of secret, file must be set\" here, \"exactly one of the fields in [secret file] must be set\" there",
    "Ruled v1 spec.rules.2.rule: \"[has(self.secret), has(self.file)].filter(present, present).size() == 1\" here, \"(has(self.secret)?1:0)+(has(self.file)?1:0) == 1\" there",
    "Words metadata.name: \"wordses.example.com\" here, \"words.example.com\" there",
    "Words names.plural: \"wordses\" here, \"words\" there",
];

/// References with an embedded `LocalObjectReference`: controller-gen marks them as atomic, but our schema and the API
/// server merge their fields. Metadata of templates, which only our schema keeps, is left out.
const MERGED_OTHERWISE: [&str; 9] = [
    ".template.spec.containers[].envFrom[].configMapRef: map-type null here, \"atomic\" there",
    ".template.spec.containers[].envFrom[].secretRef: map-type null here, \"atomic\" there",
    ".template.spec.ephemeralContainers[].envFrom[].configMapRef: map-type null here, \"atomic\" there",
    ".template.spec.ephemeralContainers[].envFrom[].secretRef: map-type null here, \"atomic\" there",
    ".template.spec.initContainers[].envFrom[].configMapRef: map-type null here, \"atomic\" there",
    ".template.spec.initContainers[].envFrom[].secretRef: map-type null here, \"atomic\" there",
    ".template.spec.volumes[].configMap: map-type null here, \"atomic\" there",
    ".template.spec.volumes[].projected.sources[].configMap: map-type null here, \"atomic\" there",
    ".template.spec.volumes[].projected.sources[].secret: map-type null here, \"atomic\" there",
];

fn merged_otherwise(here: &Value, there: &Value) -> Vec<String> {
    let spec = |crd: &Value| crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone();
    let (mut one, mut other) = (BTreeMap::new(), BTreeMap::new());
    merging(&spec(here), "", &mut one);
    merging(&spec(there), "", &mut other);
    let places: BTreeSet<_> = one.keys().chain(other.keys()).filter(|place| !place.0.contains(".metadata")).collect();
    let differ = places.into_iter().filter(|place| one.get(*place) != other.get(*place));
    let null = Value::Null;
    let json_of =
        |marks: &BTreeMap<FieldMarker, Value>, place: &FieldMarker| marks.get(place).unwrap_or(&null).to_string();
    differ
        .map(|place| {
            format!("{}: {} {} here, {} there", place.0, place.1, json_of(&one, place), json_of(&other, place))
        })
        .collect()
}

/// A field and the name of one of its merge extensions.
type FieldMarker = (String, &'static str);

fn merging(schema: &Value, place: &str, marks: &mut BTreeMap<FieldMarker, Value>) {
    for mark in ["list-type", "list-map-keys", "map-type"] {
        if let Some(value) = schema.get(format!("x-kubernetes-{mark}")) {
            marks.insert((place.to_owned(), mark), value.clone());
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        merging(field, &format!("{place}.{name}"), marks);
    }
    for (key, end) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[key].is_object() {
            merging(&schema[key], &format!("{place}{end}"), marks);
        }
    }
}

/// Kinds whose templates and conditions have built-in types.
const WITH_BUILT_IN: [&str; 2] = ["PodSet", "RestartPolicy"];

/// Roles of examples, and the Go packages with the same RBAC markers.
const ROLES: [(&str, &str); 2] = [("podset", "./apps"), ("config-restarter", "./restarter")];

#[tokio::test]
#[ignore = "needs Go: cargo xtask interop"]
async fn controller_gen_makes_the_same_definitions_and_roles() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let mut ours = read(&golden.join("markers"));
    for example in ["podset", "website", "config-restarter"] {
        ours.extend(read(&golden.join(example).join("crds")));
    }
    let theirs = generate("crd:allowDangerousTypes=true", "crd", "./...").await;
    let (mut different, mut n_kinds) = (Vec::new(), 0);
    for there in &theirs {
        let kind = there["spec"]["names"]["kind"].as_str().expect("a kind");
        let here = ours.iter().find(|object| object["spec"]["names"]["kind"] == kind).expect(kind);
        compare(kind, here, there, &mut different);
        if WITH_BUILT_IN.contains(&kind) {
            assert_eq!(merged_otherwise(here, there), MERGED_OTHERWISE, "how lists of a template of {kind} are merged");
        }
        n_kinds += 1;
    }
    different.sort();
    assert_eq!(n_kinds, 12, "all kinds of the sources in Go");
    assert_eq!(different, KNOWN, "{different:#?}");

    for (name, package) in ROLES {
        let theirs = generate(&format!("rbac:roleName={name}"), "rbac", package).await;
        let roles = read(&golden.join(name).join("rbac"));
        let here = roles.iter().find(|role| role["metadata"]["name"] == name && role["kind"] == "ClusterRole");
        assert_eq!(here.expect(name)["rules"], theirs[0]["rules"], "{name}: merged and sorted alike");
    }
}

/// Returns the objects that a controller-gen generator creates for packages.
async fn generate(option: &str, generator: &str, packages: &str) -> Vec<Value> {
    let made = Folder::new(&format!("controller-gen-{}", packages.trim_matches(['.', '/'])));
    let mut program = program_of("controller-gen", "sigs.k8s.io/controller-tools/cmd/controller-gen").await;
    program.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("interop/controller-gen"));
    program.args([option, &format!("paths={packages}"), &format!("output:{generator}:dir={}", made.0.display())]);
    run_and_read(&mut program).await;
    read(&made.0)
}

fn read(folder: &Path) -> Vec<Value> {
    let files = std::fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("a file").path());
    let yaml = files.filter(|file| file.extension().is_some_and(|ending| ending == "yaml"));
    yaml.map(|file| {
        let text = std::fs::read_to_string(&file).expect("the file is UTF-8");
        kctl::from_yaml(text.trim_start_matches("---")).expect("YAML")
    })
    .collect()
}

fn compare(kind: &str, here: &Value, there: &Value, different: &mut Vec<String>) {
    let mut one =
        |place: &str, here: &Value, there: &Value| differences(&format!("{kind} {place}"), here, there, different);
    one("metadata.name", &here["metadata"]["name"], &there["metadata"]["name"]);
    one("metadata.labels", &here["metadata"]["labels"], &there["metadata"]["labels"]);
    for field in ["kind", "plural", "singular", "shortNames", "categories"] {
        one(&format!("names.{field}"), &here["spec"]["names"][field], &there["spec"]["names"][field]);
    }
    one("scope", &here["spec"]["scope"], &there["spec"]["scope"]);
    let versions = |crd: &Value| crd["spec"]["versions"].as_array().cloned().unwrap_or_default();
    assert_eq!(versions(here).len(), versions(there).len(), "{kind}");
    for before in versions(here) {
        let name = before["name"].as_str().expect("a name");
        let after = versions(there).into_iter().find(|version| version["name"] == name).expect(name);
        for field in [
            "served",
            "storage",
            "deprecated",
            "deprecationWarning",
            "subresources",
            "selectableFields",
            "additionalPrinterColumns",
        ] {
            one(&format!("{name} {field}"), &before[field], &after[field]);
        }
        let schema = |version: &Value| normal(&version["schema"]["openAPIV3Schema"], true);
        one(&format!("{name} "), &schema(&before), &schema(&after));
    }
}

/// Returns a schema as a tree of its fields, without parts that make no difference to API servers.
fn normal(schema: &Value, is_root: bool) -> Value {
    let mut own = serde_json::Map::new();
    for (key, value) in schema.as_object().into_iter().flatten() {
        match key.as_str() {
            // Ignore descriptions, the fields that all objects have, and formats that the type implies.
            "description" => {}
            "format" if value == "double" => {}
            "anyOf" if schema["x-kubernetes-int-or-string"] == true => {}
            "properties" => {
                for (name, field) in value.as_object().into_iter().flatten() {
                    if !is_root || !["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                        own.insert(format!(".{name}"), normal(field, false));
                    }
                }
            }
            "items" => {
                own.insert("[]".into(), normal(value, false));
            }
            "additionalProperties" => {
                own.insert("{}".into(), normal(value, false));
            }
            "required" | "enum" => {
                own.insert(format!(".{key}"), sort_value(value));
            }
            "x-kubernetes-validations" => {
                own.insert(".rules".into(), sort_value(value));
            }
            _ => {
                own.insert(format!(".{key}"), value.clone());
            }
        }
    }
    own.into()
}

fn sort_value(values: &Value) -> Value {
    let mut values = values.as_array().cloned().unwrap_or_default();
    values.sort_by_key(|value| value["message"].as_str().map_or_else(|| value.to_string(), ToOwned::to_owned));
    values.into()
}

fn differences(place: &str, here: &Value, there: &Value, different: &mut Vec<String>) {
    let path = place.rsplit(' ').next().unwrap_or_default();
    let is_built_in = WITH_BUILT_IN.iter().any(|kind| place.starts_with(kind));
    if here == there || (is_built_in && BUILT_IN.iter().any(|built_in| path.starts_with(built_in))) {
        return;
    }
    let below = |name: &str| {
        format!("{place}{}{name}", if name.starts_with(char::is_numeric) { "." } else { "" }).replace(" .", " ")
    };
    match (here, there) {
        (Value::Object(one), Value::Object(other)) => {
            let names: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let separator = if name.starts_with(['.', '[', '{']) { "" } else { "." };
                differences(&below(&format!("{separator}{name}")), &here[name], &there[name], different);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differences(&below(&index.to_string()), one, other, different);
            }
        }
        _ => different.push(format!("{place}: {here} here, {there} there")),
    }
}
