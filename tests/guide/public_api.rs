//! The public items of the published crates are those recorded in `tests/api`.
//!
//! The items are parsed from the source, so that neither a nightly compiler nor a build is needed. Recorded is what is
//! reachable from `lib.rs` by public modules and re-exports: signatures, derives, public fields, variants, public
//! methods and trait implementations. Macros with `#[macro_export]` are at the root. Items with `#[doc(hidden)]` are left out.

mod facade;
mod implementations;
mod reader;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use self::{
    implementations::{is_implementation, without_attributes},
    reader::{Crate, Definition},
};

const CRATES: [&str; 9] = [
    "kctl",
    "kctl-apimachinery",
    "kctl-apiserver",
    "kctl-cel",
    "kctl-interpreter",
    "kctl-macros",
    "kctl-runtime",
    "kctl-webhook",
    "kctl-workloads",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The public interface of a crate.
struct Public {
    /// One line per public item, sorted. In a macro crate, the functions are the macros.
    lines: BTreeSet<String>,
    definitions: BTreeMap<String, Definition>,
    foreign: BTreeMap<String, BTreeSet<String>>,
    links: BTreeMap<String, BTreeSet<String>>,
    exhaustive: BTreeSet<String>,
}

/// All published crates, in the order of [`CRATES`]. Parsing them takes most of the time of these tests.
static PUBLIC: LazyLock<BTreeMap<&str, Public>> = LazyLock::new(|| {
    let read = |name: &'static str| (name, Public::of(Crate::read(&root().join(name)), &name.replace('-', "_")));
    CRATES.into_iter().map(read).collect()
});

impl Public {
    /// Returns the interface of a crate that programs call `name`.
    fn of(krate: Crate, name: &str) -> Self {
        let mut lines = BTreeSet::new();
        krate.write_module(&Vec::new(), name, &mut BTreeSet::new(), &mut lines);
        krate.write_macros(name, &mut lines);
        krate.write_implementations(&mut lines);
        Self {
            lines,
            definitions: krate.definitions.into_inner(),
            foreign: krate.foreign.into_inner(),
            links: krate.links.into_inner(),
            exhaustive: krate.exhaustive.into_inner(),
        }
    }

    /// Counts the items, each one once even if it has several paths. Methods and variants are counted with their type, and
    /// preludes repeat items.
    fn n_items(&self) -> usize {
        let definition = |line: &String| {
            let (path, what) = line.split_once(": ").unwrap();
            let names: Vec<_> = path.split("::").collect();
            let modules = &names[1..names.len() - 1];
            let is_below_type = modules.iter().any(|name| name.starts_with(char::is_uppercase));
            let is_counted = !is_below_type && !path.contains('.') && !modules.contains(&"prelude");
            if !is_counted || what.ends_with("mod") || is_implementation(what) {
                return None;
            }
            if let Some(of_another_crate) = without_attributes(what).strip_prefix("use ") {
                return Some(of_another_crate.to_owned());
            }
            let own = self.definitions.get(path).map(|(module, name)| format!("{}::{name}", module.join("::")));
            Some(own.unwrap_or_else(|| path.to_owned()))
        };
        self.lines.iter().filter_map(definition).collect::<BTreeSet<_>>().len()
    }
}

/// Returns the current record of a crate.
fn format_record(name: &str) -> String {
    PUBLIC[name].lines.iter().map(|line| line.clone() + "\n").collect()
}

#[test]
fn public_items_match_the_record() {
    let mut different = String::new();
    for name in CRATES {
        let (file, now) = (root().join(format!("tests/api/{name}.txt")), format_record(name));
        let before = fs::read_to_string(&file).unwrap_or_default();
        if now == before {
            continue;
        }
        if std::env::var_os("UPDATE_API").is_some() {
            fs::write(&file, &now).unwrap();
            continue;
        }
        let (before, now): (BTreeSet<_>, BTreeSet<_>) = (before.lines().collect(), now.lines().collect());
        let lines =
            before.difference(&now).map(|line| ("-", line)).chain(now.difference(&before).map(|line| ("+", line)));
        for (sign, line) in lines {
            writeln!(different, "{sign} {line}").unwrap();
        }
    }
    assert!(
        different.is_empty(),
        "public items differ from tests/api; if that is on purpose, run `UPDATE_API=1 cargo test -p kctl-guide public_items`:\n{different}"
    );
}

/// Maximum number of public items of the facade, in all modules, because users have to read all of them. An increase needs
/// a reason in the commit. The low-level crates have items that no page and no example needs, such as errors that programs
/// only pass on.
const ITEMS_MAX: usize = 198;

/// Greatest number of public items of the low-level crate, in all modules. An item that only `kctl` and expansions need is hidden
/// or in the private module, and does not count.
const RUNTIME_ITEMS_MAX: usize = 265;

/// Crates with the greatest number of their public items.
const BOUNDED: [(&str, usize); 5] = [
    ("kctl", ITEMS_MAX),
    ("kctl-apiserver", 26),
    ("kctl-interpreter", 95),
    ("kctl-runtime", RUNTIME_ITEMS_MAX),
    ("kctl-webhook", 48),
];

#[test]
fn crates_have_few_public_items() {
    for (name, max) in BOUNDED {
        let n = PUBLIC[name].n_items();
        assert!(n <= max, "{name} has {n} public items, and {max} are allowed");
        assert!(n + 20 >= max, "{name} has {n} public items: lower the bound of {max}");
    }
}

#[test]
fn item_with_several_paths_counts_once() {
    let krate = Crate::of_source(
        "
        pub use inner::Point;
        pub use other::Line;
        pub mod shapes { pub use crate::inner::Point; #[cfg(a)] pub use other::Line; pub struct Area; }
        mod inner { pub struct Point; pub struct Area; }
        ",
    );
    assert_eq!(Public::of(krate, "shapes").n_items(), 3);
}

#[test]
fn exported_macros_of_private_modules_are_recorded() {
    let krate = Crate::of_source(
        "
        mod inner {
            #[cfg(a)]
            mod below { #[macro_export] macro_rules! check { () => {} } }
            #[macro_export] #[doc(hidden)] macro_rules! hidden { () => {} }
            #[cfg(test)]
            mod tests { #[macro_export] macro_rules! tested { () => {} } }
            macro_rules! local { () => {} }
            check!();
        }
        ",
    );
    let lines: Vec<_> = Public::of(krate, "shapes").lines.into_iter().collect();
    assert_eq!(lines, ["shapes::check!: #[cfg(a)] macro"]);
}

/// The module that macro expansions use has the minor version in its name, so that no other code relies on it.
#[test]
fn private_module_is_named_after_the_minor_version() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = \"")).unwrap();
    let [major, minor] = version.splitn(3, '.').take(2).collect::<Vec<_>>()[..] else { panic!("{version}") };
    let file = root().join(format!("kctl-runtime/src/__private_{major}_{minor}.rs"));
    assert!(file.exists(), "rename `__private_…` in all crates and tests: {} does not exist", file.display());
}

/// Crates whose items may occur in public signatures, with the published crates that may name them and the reason. A
/// breaking version of such a crate is a breaking version of kctl, so `guide/versions.md` lists the facade's.
///
/// Implementations of foreign traits are not checked here, but count for that list of the guide.
const FOREIGN: [(&str, &[&str], &str); 22] = [
    ("axum", &["kctl-webhook"], "routes of webhooks are merged into a server of the user"),
    ("bytes", &["kctl-apiserver", "kctl-webhook"], "bodies of requests and responses, as http and hyper have them"),
    ("futures", &["kctl"], "a trigger is a stream, and std has no such trait"),
    ("http", &["kctl-apiserver", "kctl-runtime", "kctl-webhook"], "requests and responses, as kube's client has them"),
    ("http_body_util", &["kctl-apiserver"], "the body of a response in the process"),
    ("jiff", &["kctl-apimachinery", "kctl-apiserver"], "the time type of k8s-openapi"),
    ("k8s_openapi", &["kctl", "kctl-runtime"], "the built-in kinds"),
    ("kctl_apimachinery", &["kctl-interpreter"], "one version with it"),
    ("kctl_apiserver", &["kctl", "kctl-workloads"], "one version with the facade"),
    ("kctl_interpreter", &["kctl"], "one version with the facade"),
    ("kctl_macros", &["kctl"], "one version with the facade"),
    ("kctl_runtime", &["kctl"], "one version with the facade"),
    ("kctl_webhook", &["kctl", "kctl-interpreter"], "one version with the facade"),
    ("kctl_workloads", &["kctl"], "one version with the facade"),
    ("kube", &["kctl", "kctl-runtime", "kctl-webhook", "kctl-workloads"], "clients, kinds and errors"),
    ("kube_cel", &["kctl-cel"], "the syntax tree that its evaluator takes"),
    (
        "prometheus_client",
        &["kctl-interpreter", "kctl-runtime", "kctl-webhook"],
        "metrics of users and ours are in one registry",
    ),
    ("schemars", &["kctl", "kctl-runtime"], "kube derives the schema of a kind by it"),
    ("serde", &["kctl", "kctl-interpreter", "kctl-runtime", "kctl-webhook"], "users derive its traits for their kinds"),
    (
        "serde_json",
        &["kctl", "kctl-apiserver", "kctl-cel", "kctl-interpreter", "kctl-runtime", "kctl-webhook"],
        "objects of any kind, as kube has them",
    ),
    ("serde_saphyr", &["kctl", "kctl-runtime"], "`from_yaml`, and the error of writing YAML"),
    (
        "tokio",
        &["kctl-interpreter", "kctl-runtime", "kctl-webhook"],
        "listeners, instants under a paused clock, and watch channels",
    ),
];

/// Crates that only a single item may name.
const FOREIGN_ITEMS: [(&str, &str, &str); 3] = [
    ("regex", "kctl_cel::pattern", "the compiled form of a pattern, which RE2's limits have judged"),
    ("regex", "kctl_cel::pattern_within", "the same, within a size"),
    ("tower", "kctl_runtime::connection::Connected", "kube's client is built from a service"),
];

#[test]
fn foreign_types_in_signatures_have_a_reason() {
    let mut wrong = String::new();
    for (name, public) in PUBLIC.iter() {
        for (foreign, items) in &public.foreign {
            if ["std", "proc_macro"].contains(&foreign.as_str())
                || FOREIGN.iter().any(|(known, by, _)| known == foreign && by.contains(name))
            {
                continue;
            }
            let is_known = |item: &&String| FOREIGN_ITEMS.iter().any(|(known, of, _)| known == foreign && of == item);
            for item in items.iter().filter(|item| !is_known(item)) {
                writeln!(wrong, "{item}: names `{foreign}`; use another type, or give the reason in `FOREIGN`")
                    .unwrap();
            }
        }
    }
    for (foreign, by, _) in FOREIGN {
        for name in by.iter().filter(|name| !PUBLIC[*name].foreign.contains_key(foreign)) {
            writeln!(wrong, "{name}: nothing names `{foreign}`: remove it from `FOREIGN`").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Returns `true` if a recorded item is the one at this path, is below it, or re-exports a module that contains it.
fn is_part_of(item: &str, path: &str) -> bool {
    let is_below = |of: &str, at: &str| of.strip_prefix(at).is_some_and(|rest| rest.starts_with(['.', ':']));
    item == path || is_below(item, path.trim_end_matches("::*")) || is_below(path, item)
}

/// Returns the crates that the public items of a crate name. Follows items of the other published crates that they
/// re-export or name, so that a user of the facade finds the crates of `kctl_apiserver::ApiServer` too.
fn named_crates(name: &str) -> BTreeSet<&'static str> {
    let mut open: Vec<&'static str> = PUBLIC[name].links.values().flatten().map(String::as_str).collect();
    let (mut seen, mut crates) = (BTreeSet::new(), BTreeSet::new());
    while let Some(path) = open.pop() {
        if !seen.insert(path) {
            continue;
        }
        let root = path.split("::").next().unwrap();
        if let Some(public) = PUBLIC.get(root.replace('_', "-").as_str()) {
            let named = public.links.iter().filter(|(item, _)| is_part_of(item, path));
            open.extend(named.flat_map(|(_, links)| links).map(String::as_str));
        } else if !["std", "proc_macro"].contains(&root) {
            crates.insert(root);
        }
    }
    crates
}

#[test]
fn foreign_crates_are_found_through_re_exports() {
    let found = named_crates("kctl");
    for name in ["bytes", "http", "http_body", "jiff", "tokio", "tower"] {
        assert!(found.contains(name), "{name} is missing in {found:?}");
    }
}

#[test]
fn guide_lists_foreign_crates_in_public_api() {
    let book = fs::read_to_string(root().join("guide/versions.md")).unwrap();
    let (_, section) = book.split_once("## Types of other crates").unwrap();
    let section = section.split("\n## ").next().unwrap();
    for foreign in named_crates("kctl") {
        let name = format!("`{}`", foreign.replace('_', "-"));
        assert!(section.contains(&name) || section.contains(&format!("`{foreign}`")), "{name} is missing in {section}");
    }
}

/// Public enums, structs with only public fields, and variants of errors (`*`), that are complete: another variant or
/// field is a breaking change on purpose. All others need `#[non_exhaustive]`, and a constructor if users build them.
const EXHAUSTIVE: [(&str, &str); 51] = [
    ("kctl_apimachinery::labels::Operator", "the operators of label selectors"),
    ("kctl_apimachinery::quantity::Format", "the formats of quantities"),
    ("kctl_apiserver::faults::Moment", "a request fails before or after it takes effect"),
    ("kctl_apiserver::faults::StaleState", "each fault that reads it has to know all of them"),
    ("kctl_cel::CallStyle", "a global function or a method, as the syntax has it"),
    ("kctl_cel::OldSelf", "available or not"),
    ("kctl_cel::SchemaOf", "a whole object or a part of one"),
    ("kctl_cel::Type", "the server and the checks at compile time handle each type of CEL"),
    ("kctl_interpreter::chain::LayerKind", "the layers of Karmada's chain; their order is a promise"),
    ("kctl_interpreter::division::Candidate", "the inputs of a pure function"),
    ("kctl_interpreter::division::Mode", "the inputs of a pure function"),
    ("kctl_interpreter::division::StaticWeight", "the inputs of a pure function"),
    (
        "kctl_interpreter::division::TargetCluster",
        "Karmada's type, built by literals with `..Default::default()`, like the types of k8s-openapi",
    ),
    ("kctl_interpreter::function::ClusterStatus", "users build it to call their functions in tests"),
    ("kctl_interpreter::function::InProcess", "a type without values, for bounds"),
    ("kctl_interpreter::function::OnTheWire", "a type without values, for bounds"),
    ("kctl_interpreter::kind::Gvk", "group, version and kind are all there is"),
    ("kctl_interpreter::lua::ScriptInputs", "the inputs of Karmada's scripts"),
    (
        "kctl_interpreter::operation::AggregatedStatusItem",
        "Karmada's type, built by literals with `..Default::default()`, like the types of k8s-openapi",
    ),
    ("kctl_interpreter::operation::Aggregation", "the inputs of an operation"),
    (
        "kctl_interpreter::operation::Component",
        "Karmada's type, built by literals with `..Default::default()`, like the types of k8s-openapi",
    ),
    (
        "kctl_interpreter::operation::DependentReference",
        "Karmada's type, built by literals with `..Default::default()`, like the types of k8s-openapi",
    ),
    ("kctl_interpreter::operation::Inputs", "the inputs of an operation, built with `..Inputs::default()`"),
    (
        "kctl_interpreter::operation::NodeClaim",
        "Karmada's type, built by literals with `..Default::default()`, like the types of k8s-openapi",
    ),
    ("kctl_interpreter::operation::Object", "the inputs of an operation"),
    (
        "kctl_interpreter::operation::ReplicaRequirements",
        "Karmada's type, built by literals with `..Default::default()`, like the types of k8s-openapi",
    ),
    (
        "kctl_interpreter::operation::Replicas",
        "Karmada's type, built by literals with `..Default::default()`, like the types of k8s-openapi",
    ),
    ("kctl_interpreter::operation::Retention", "the inputs of an operation"),
    ("kctl_interpreter::operation::Revision", "the inputs of an operation"),
    ("kctl_interpreter::webhook::Configuration", "the fields that a configuration must have"),
    ("kctl_runtime::key::ObjectKey", "namespace and name are all there is"),
    ("kctl_runtime::manager::lease::Effect", "a driver has to carry out each effect"),
    ("kctl_runtime::manager::lease::Input", "a driver has to send each input"),
    ("kctl_runtime::manager::lease::LeaseRequest", "a driver has to send each request"),
    ("kctl_runtime::manifest::Permission", "a permission that a reader ignores is a wrong role"),
    ("kctl_runtime::manifest::PermissionScope", "a permission that a reader ignores is a wrong role"),
    ("kctl_runtime::manifest::PermissionTarget", "a permission that a reader ignores is a wrong role"),
    ("kctl_runtime::object::Kind", "group, version, kind and plural are all there is"),
    ("kctl_runtime::queue::Backoff", "the first and the longest wait are all there is"),
    ("kctl_runtime::source::Effect", "a driver has to carry out each effect"),
    ("kctl_runtime::source::Input", "a driver has to send each input"),
    ("kctl_runtime::source::Request", "a driver has to send each request"),
    ("kctl_runtime::store::Change", "an object appears, changes or disappears, as in client-go's handlers"),
    ("kctl_runtime::worker::Attempts", "the inputs of a pure function"),
    ("kctl_runtime::writer::EventType", "the two types of the Events API"),
    ("kctl_webhook::admission::Action", "an admission webhook validates or mutates"),
    ("kctl_webhook::admission::ClientConfig", "a Service or a URL, as in the API"),
    ("kctl_webhook::admission::Configurations", "the fields that configurations must have"),
    ("kctl_webhook::server::ClientConfig", "a Service or a URL, as in the API"),
    ("kctl_webhook::server::Pair", "a certificate and its key are all there is"),
    ("kctl_webhook::server::Routes", "users build it from their own router"),
];

#[test]
fn public_data_may_grow_or_has_a_reason() {
    let found: BTreeSet<&str> = PUBLIC.values().flat_map(|public| &public.exhaustive).map(String::as_str).collect();
    let known: BTreeSet<&str> = EXHAUSTIVE.iter().map(|(name, _)| *name).collect();
    let undecided: Vec<_> = found.difference(&known).collect();
    assert!(undecided.is_empty(), "add `#[non_exhaustive]`, or a reason in `EXHAUSTIVE`: {undecided:#?}");
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(gone.is_empty(), "remove these from `EXHAUSTIVE`: {gone:#?}");
}
