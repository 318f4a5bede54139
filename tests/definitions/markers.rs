//! Tests the equivalent of each controller-gen marker against `golden/markers/*.yaml`; `guide/controller-gen.md` has
//! the table. `GOLDEN=overwrite` rewrites the files.

#![expect(unreachable_pub, reason = "kinds are public where users declare them")]

use std::{collections::BTreeMap, fs, path::Path};

use kctl::{
    Json,
    k8s::apimachinery::pkg::util::intstr::IntOrString,
    manifest::{Descriptions, KindSpec, definitions},
    prelude::*,
};
use kctl_runtime::manifest::{check, crd_manifests};

/// All names of a kind, and its scope.
mod names {
    use super::*;

    #[resource(
        group = "example.com",
        version = "v1",
        kind = "Names",
        plural = "nameses",
        singular = "namely",
        shortname = "nm",
        category = "all",
        category = "examples",
        annotation("example.com/owner", "team"),
        label("tier", "test")
    )]
    pub struct NamesSpec {
        pub name: String,
    }
}

/// Subresources, printer columns and selectable fields.
mod served {
    use super::*;

    #[resource(
        group = "example.com",
        version = "v1",
        kind = "Served",
        namespaced,
        status = "ServedStatus",
        scale(
            spec_replicas_path = ".spec.replicas",
            status_replicas_path = ".status.replicas",
            label_selector_path = ".status.selector"
        ),
        printcolumn(
            json_path = ".spec.host",
            name = "Host",
            type_ = "string",
            description = "where it is",
            format = "byte",
            priority = 1
        ),
        selectable = ".spec.host"
    )]
    pub struct ServedSpec {
        pub host: String,
        pub replicas: i32,
    }

    #[schema]
    pub struct ServedStatus {
        pub replicas: i32,
        pub selector: String,
    }
}

/// A status without the `status` subresource.
mod unserved_status {
    use super::*;

    #[resource(
        group = "example.com",
        version = "v1",
        kind = "Plain",
        namespaced,
        status = "PlainStatus",
        status_subresource = false
    )]
    pub struct PlainSpec {
        pub host: String,
    }

    #[schema]
    pub struct PlainStatus {
        pub ready: bool,
    }
}

/// Several versions of one kind: stored, deprecated, not served, and converted by a webhook.
mod versions {
    use super::*;

    #[resource(
        group = "example.com",
        version = "v2",
        kind = "Versioned",
        namespaced,
        conversion(service = "versioned-webhook", namespace = "versioned", port = 9443)
    )]
    pub struct VersionedSpec {
        pub hosts: Vec<String>,
    }

    pub mod v1 {
        use super::*;

        #[resource(
            group = "example.com",
            version = "v1",
            kind = "Versioned",
            namespaced,
            storage = false,
            deprecated = "use v2"
        )]
        pub struct VersionedSpec {
            pub host: String,
        }
    }

    pub mod v1beta1 {
        use super::*;

        #[resource(
            group = "example.com",
            version = "v1beta1",
            kind = "Versioned",
            namespaced,
            storage = false,
            served = false,
            deprecated
        )]
        pub struct VersionedSpec {
            pub host: String,
        }
    }
}

/// Bounds of values, of list items and of map values.
mod bounds {
    use super::*;

    #[resource(group = "example.com", version = "v1", kind = "Bounds", namespaced)]
    #[kctl(min_properties = 1, max_properties = 20)]
    pub struct BoundsSpec {
        #[kctl(minimum = 1, maximum = 100, multiple_of = 5)]
        pub percent: i32,
        #[kctl(exclusive_minimum = 0, exclusive_maximum = 1.5)]
        pub ratio: f64,
        #[kctl(min_length = 1, max_length = 63, pattern = "^[a-z]+$")]
        pub name: String,
        #[kctl(format = "uri")]
        pub url: Option<String>,
        #[kctl(min_items = 1, max_items = 3, items(min_length = 2, max_length = 9, pattern = "^[a-z.]+$"))]
        pub hosts: Vec<String>,
        #[kctl(items(minimum = 1, exclusive_maximum = 65536, multiple_of = 1))]
        pub ports: Vec<i32>,
        #[kctl(items(items(allowed("a", "b"))))]
        pub table: Vec<Vec<String>>,
        #[kctl(max_properties = 8, values(max_length = 63))]
        pub labels: BTreeMap<String, String>,
        #[kctl(allowed("Always", "Never"))]
        pub policy: String,
        #[kctl(type_ = "string", format = "date-time")]
        pub since: Json,
    }
}

/// Defaults, nullable and optional fields, titles and external docs.
mod words {
    use super::*;

    #[resource(group = "example.com", version = "v1", kind = "Words", namespaced)]
    #[kctl(title = "Words", docs(url = "https://example.com/words", description = "more"))]
    pub struct WordsSpec {
        /// The default is serde's: the program fills it in, too.
        #[serde(default = "three")]
        pub count: i32,
        #[kctl(default = "web", example = "shop")]
        pub name: String,
        #[kctl(default = { "cpu": "1" })]
        pub limits: BTreeMap<String, String>,
        #[kctl(title = "Hosts", docs(url = "https://example.com/hosts"))]
        pub hosts: Option<Vec<String>>,
        #[kctl(nullable = false)]
        pub strict: Option<String>,
        #[schemars(required)]
        pub present: Option<String>,
        pub level: Option<Level>,
    }

    /// Volume of the sound.
    #[schema]
    pub enum Level {
        Low,
        #[serde(rename = "HIGH")]
        High,
    }

    fn three() -> i32 {
        3
    }
}

/// Preserved unknown fields, and values for which schemars has no type.
mod free {
    use super::*;

    #[resource(group = "example.com", version = "v1", kind = "Free", namespaced)]
    pub struct FreeSpec {
        #[kctl(preserve_unknown)]
        pub settings: Settings,
        #[kctl(embedded)]
        pub object: Json,
        #[kctl(embedded, preserve_unknown)]
        pub part: Option<Json>,
        #[kctl(schemaless)]
        pub anything: Json,
        #[kctl(schemaless)]
        pub tree: Tree,
        #[kctl(int_or_string)]
        pub either: Json,
        pub port: IntOrString,
        #[kctl(items(int_or_string))]
        pub ports: Vec<Json>,
    }

    #[schema]
    pub struct Settings {
        pub level: i32,
    }

    #[schema]
    pub struct Tree {
        pub children: Vec<Tree>,
    }
}

/// List, map and struct types for server-side apply.
mod topology {
    use super::*;

    #[resource(group = "example.com", version = "v1", kind = "Topology", namespaced)]
    pub struct TopologySpec {
        #[kctl(list = atomic)]
        pub whole: Vec<String>,
        #[kctl(list = set)]
        pub hosts: Vec<String>,
        #[kctl(list = map("name", "protocol"))]
        pub ports: Vec<Port>,
        #[kctl(list = map("name"))]
        pub more: Option<Vec<Port>>,
        #[kctl(map = atomic)]
        pub selector: BTreeMap<String, String>,
        #[kctl(map = granular)]
        pub labels: BTreeMap<String, String>,
        #[kctl(list = set)]
        pub points: Vec<Point>,
        #[kctl(map = atomic)]
        pub target: Option<Port>,
    }

    #[schema]
    pub struct Port {
        pub name: String,
        #[kctl(default = "TCP")]
        pub protocol: String,
    }

    #[schema]
    #[kctl(map = atomic)]
    pub struct Point {
        pub x: i32,
    }
}

/// CEL validation rules.
mod rules {
    use super::*;

    #[resource(
        group = "example.com",
        version = "v1",
        kind = "Ruled",
        namespaced,
        rule("self.metadata.name.size() <= 20", message = "the name is too long")
    )]
    #[kctl(rule("self.min <= self.max", message = "min is above max", reason = FieldValueInvalid, field_path = ".min"))]
    #[kctl(rule("!has(self.limit) || self.limit >= self.max", message_expression = "'the limit is ' + 'low'"))]
    #[kctl(exactly_one_of("secret", "file"))]
    #[kctl(at_most_one_of("a", "b"), at_least_one_of("a", "b", "c-d"))]
    pub struct RuledSpec {
        pub min: i32,
        pub max: i32,
        pub limit: Option<i32>,
        #[kctl(max_length = 63, immutable)]
        pub class: String,
        #[kctl(rule("oldSelf.hasValue() || self > 0", optional_old_self))]
        pub count: i32,
        pub secret: Option<String>,
        pub file: Option<String>,
        pub a: Option<bool>,
        pub b: Option<bool>,
        #[serde(rename = "c-d")]
        pub cd: Option<bool>,
        #[kctl(max_items = 10, items(rule("self != ''"), max_length = 10))]
        pub hosts: Vec<String>,
        /// The rule of the type and of the field both apply.
        #[kctl(rule("self.low > 0"))]
        pub range: Option<Range>,
    }

    #[schema]
    #[kctl(rule("self.low <= self.high"))]
    pub struct Range {
        pub low: i32,
        pub high: i32,
    }
}

/// An enum with fields: exactly one variant is set.
mod variants {
    use super::*;

    #[resource(group = "example.com", version = "v1", kind = "Variant", namespaced)]
    pub struct VariantSpec {
        pub source: Source,
        pub fallback: Option<Source>,
    }

    /// Origin of the value.
    #[schema]
    #[serde(rename_all = "camelCase")]
    pub enum Source {
        /// A Secret.
        Secret {
            #[kctl(min_length = 1)]
            name: String,
        },
        /// A file.
        File {
            path: String,
        },
        Nothing {},
    }
}

fn groups() -> Vec<(&'static str, Vec<KindSpec>)> {
    vec![
        ("names", vec![KindSpec::of::<names::Names>()]),
        ("served", vec![KindSpec::of::<served::Served>()]),
        ("unserved_status", vec![KindSpec::of::<unserved_status::Plain>()]),
        (
            "versions",
            vec![
                KindSpec::of::<versions::v1::Versioned>(),
                KindSpec::of::<versions::v1beta1::Versioned>(),
                KindSpec::of::<versions::Versioned>(),
            ],
        ),
        ("bounds", vec![KindSpec::of::<bounds::Bounds>()]),
        ("words", vec![KindSpec::of::<words::Words>()]),
        ("free", vec![KindSpec::of::<free::Free>()]),
        ("topology", vec![KindSpec::of::<topology::Topology>()]),
        ("rules", vec![KindSpec::of::<rules::Ruled>()]),
        ("variants", vec![KindSpec::of::<variants::Variant>()]),
    ]
}

#[test]
fn marker_crds_match_golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/markers");
    let mut different = Vec::new();
    for (name, kinds) in groups() {
        let manifests = crd_manifests(&kinds, Descriptions::Own).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(manifests.len(), 1, "{name}");
        let yaml = &manifests[0].yaml;
        let file = folder.join(format!("{name}.yaml"));
        if std::env::var("GOLDEN").is_ok_and(|mode| mode == "overwrite") {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&file, yaml).unwrap();
        }
        if fs::read_to_string(&file).unwrap_or_default() != *yaml {
            different.push(name);
        }
    }
    assert!(
        different.is_empty(),
        "not as in golden/markers: {different:?}; read the difference after GOLDEN=overwrite"
    );
}

#[tokio::test]
async fn api_servers_take_the_golden_definitions() {
    let embedded = kube::Client::new(kctl_apiserver::ApiServer::new().service(), "default");
    let real = kctl_tests::real_client().await;
    for (name, kinds) in groups() {
        let crd = serde_json::to_value(&definitions(&kinds, Descriptions::All).unwrap()[0]).unwrap();
        assert!(check(&crd).has_no_problems(), "{name}");
        for client in [Some(&embedded), real.as_ref()].into_iter().flatten() {
            let response = crate::schemas::ask(client, &crd).await;
            assert_eq!(response, None, "{name}");
        }
    }
}

/// Every row of the table names an attribute that one of the modules above uses.
#[test]
fn guides_marker_table_has_only_tested_markers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = fs::read_to_string(root.join("../guide/controller-gen.md")).unwrap();
    let source = fs::read_to_string(root.join("definitions/markers.rs")).unwrap();
    // Code blocks of these pages are compiled, and their options are compared with the options of the attributes.
    let [attributes, permissions] =
        ["attributes", "permissions"].map(|name| fs::read_to_string(root.join(format!("../guide/{name}.md"))).unwrap());
    let rows: Vec<Vec<&str>> = guide
        .lines()
        .filter(|line| line.starts_with("| `+") || line.starts_with("| no `+"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(rows.len() > 50, "{} rows", rows.len());
    for row in rows {
        let [marker, codes_cell, test] = row.as_slice() else { panic!("three columns: {row:?}") };
        let test = test.trim_matches('`');
        let codes = codes_cell.split('`').skip(1).step_by(2).filter(|code| !code.contains('…'));
        if test == "attributes" {
            for code in codes {
                let known = attributes.contains(code) || permissions.contains(code);
                assert!(known, "{marker}: `{code}` is not in the guides to attributes and permissions");
            }
            continue;
        }
        let module = source.split("\nmod ").find(|part| part.starts_with(&format!("{test} {{")));
        let Some(module) = module else {
            assert!(test.starts_with('–') || test.starts_with("not"), "{marker}: no module `{test}`");
            continue;
        };
        let squeezed = |text: &str| text.split_whitespace().collect::<String>();
        for code in codes {
            assert!(squeezed(module).contains(&squeezed(code)), "{marker}: `{code}` is not in the module `{test}`");
        }
    }
}

/// Each controller-gen marker for CRDs, roles and webhooks. A marker is listed once per argument if the table has rows
/// for them.
const MARKERS: &str = "
    groupName versionName
    kubebuilder:skip kubebuilder:skipversion kubebuilder:object:root kubebuilder:object:generate
    kubebuilder:ac:generate kubebuilder:ac:output:package
    kubebuilder:resource:path kubebuilder:resource:singular kubebuilder:resource:shortName kubebuilder:resource:categories
    kubebuilder:resource:scope=Namespaced kubebuilder:resource:scope=Cluster
    kubebuilder:subresource:status kubebuilder:subresource:scale kubebuilder:printcolumn kubebuilder:storageversion
    kubebuilder:unservedversion kubebuilder:deprecatedversion kubebuilder:metadata:annotations kubebuilder:metadata:labels
    kubebuilder:selectablefield kubebuilder:externalDocs kubebuilder:title
    kubebuilder:validation:Maximum kubebuilder:validation:Minimum kubebuilder:validation:ExclusiveMaximum
    kubebuilder:validation:ExclusiveMinimum kubebuilder:validation:MultipleOf kubebuilder:validation:MinProperties
    kubebuilder:validation:MaxProperties kubebuilder:validation:MaxLength kubebuilder:validation:MinLength
    kubebuilder:validation:Pattern kubebuilder:validation:MaxItems kubebuilder:validation:MinItems
    kubebuilder:validation:UniqueItems kubebuilder:validation:Enum kubebuilder:validation:Format kubebuilder:validation:Type
    kubebuilder:validation:XPreserveUnknownFields kubebuilder:validation:XEmbeddedResource
    kubebuilder:validation:XIntOrString kubebuilder:validation:XValidation kubebuilder:validation:items:…
    kubebuilder:validation:AtMostOneOf kubebuilder:validation:ExactlyOneOf kubebuilder:validation:AtLeastOneOf
    kubebuilder:validation:Required kubebuilder:validation:Optional kubebuilder:validation:EmbeddedResource
    kubebuilder:validation:Schemaless kubebuilder:pruning:PreserveUnknownFields kubebuilder:default kubebuilder:example
    required optional nullable default k8s:required k8s:optional k8s:enum k8s:immutable
    listType=atomic listType=set listType=map listMapKey mapType structType k8s:listType k8s:listMapKey
    kubebuilder:rbac:groups kubebuilder:rbac:resources kubebuilder:rbac:resourceNames kubebuilder:rbac:verbs
    kubebuilder:rbac:urls kubebuilder:rbac:namespace kubebuilder:rbac:roleName
    kubebuilder:webhook:path kubebuilder:webhook:url kubebuilder:webhook:mutating kubebuilder:webhook:failurePolicy
    kubebuilder:webhook:matchPolicy kubebuilder:webhook:sideEffects kubebuilder:webhook:timeoutSeconds
    kubebuilder:webhook:groups kubebuilder:webhook:resources kubebuilder:webhook:verbs kubebuilder:webhook:versions
    kubebuilder:webhook:name kubebuilder:webhook:serviceName kubebuilder:webhook:serviceNamespace
    kubebuilder:webhook:servicePort kubebuilder:webhook:webhookVersions kubebuilder:webhook:admissionReviewVersions
    kubebuilder:webhook:reinvocationPolicy kubebuilder:webhook:patch
    kubebuilder:webhookconfiguration:mutating kubebuilder:webhookconfiguration:name
";

#[test]
fn guides_marker_table_has_every_controller_gen_marker() {
    let guide = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../guide/controller-gen.md")).unwrap();
    let rows = guide.lines().filter(|line| line.starts_with('|')).filter_map(|line| line.split(" | ").next());
    let documented: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    let lacks: Vec<_> = MARKERS
        .split_whitespace()
        .filter(|marker| {
            let named =
                |documented: &&str| documented.strip_prefix('+').is_some_and(|documented| documented == *marker);
            let with_arguments = |documented: &&str| documented.starts_with(&format!("+{marker}:"));
            !documented.iter().any(|documented| named(documented) || with_arguments(documented))
        })
        .collect();
    assert!(lacks.is_empty(), "no row for {lacks:?}");
}
