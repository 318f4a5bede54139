//! Two spellings of one kind, such as `Pod` and `k8s_openapi::api::core::v1::Pod`.
//!
//! A macro can't resolve paths. It compares them only as far as the file of the attribute is unambiguous. It follows
//! `use` items at the top of the file, and the prelude if that is the only glob there. Other pairs are left in the
//! generated code, where rustc compares the types.

use std::collections::{BTreeMap, btree_map::Entry};

use proc_macro2::Ident;
use syn::{Item, ItemUse, Path, Type, UseTree};

use super::super::model::Model;
use crate::{
    function::compact_text,
    source_file::{self, items_of},
};

/// Kinds of the prelude, by their module in `k8s_openapi::api`.
const PRELUDE: [(&str, &str); 3] = [
    ("apps", "DaemonSet Deployment ReplicaSet StatefulSet"),
    ("batch", "CronJob Job"),
    ("core", "ConfigMap Namespace Node Pod Secret Service ServiceAccount"),
];
/// Number of imports in a chain of names: `use kctl::k8s; use k8s::api::core::v1; v1::Pod`.
const STEPS_MAX: usize = 4;

/// The names at the top of a file, as far as paths of kinds need them.
#[derive(Debug, Default)]
pub(super) struct Imports {
    /// Imported names with their paths, and types and modules of the file as `self::Name`. `None` for an ambiguous name.
    names: BTreeMap<String, Option<Vec<String>>>,
    /// The paths before `::*`.
    globs: Vec<String>,
    /// The file: `kind = "Pod"` of an attribute defines a kind that hides the one of a glob.
    text: String,
    /// `true` if a macro call may define such a kind.
    has_macros: bool,
}

impl Imports {
    /// Reads the file of the attribute if two kinds of the declaration may be one: they differ, and end in one name.
    pub(super) fn for_model(model: &Model) -> Option<Self> {
        let kinds: Vec<&Type> = model.relations.iter().map(|relation| &relation.kind).chain([&model.primary]).collect();
        let may_be_one = |one: &Type, other: &Type| {
            last_segment(one).is_some_and(|name| Some(name) == last_segment(other))
                && compact_text(one) != compact_text(other)
        };
        let has_pair = kinds.iter().any(|one| kinds.iter().any(|other| may_be_one(one, other)));
        has_pair.then(source_file::read).flatten().and_then(|text| Self::of(text, &model.name))
    }

    /// Reads a file. `None` unless the controller is at its top level, once: in a module or a function, other imports
    /// apply.
    fn of(text: String, controller: &Ident) -> Option<Self> {
        let file = syn::parse_file(&text).ok()?;
        let is_controller = |item: &&Item| match item {
            Item::Fn(item) => item.sig.ident == *controller,
            Item::Struct(item) => item.ident == *controller,
            _ => false,
        };
        let n_at_the_top = file.items.iter().filter(is_controller).count();
        if n_at_the_top != 1 || items_of(&file).into_iter().filter(is_controller).count() != 1 {
            return None;
        }
        let mut imports = Self { text, ..Self::default() };
        for item in &file.items {
            let defined = match item {
                Item::Use(item) => {
                    imports.add(item);
                    continue;
                }
                Item::Macro(item) => {
                    imports.has_macros |= item.ident.is_none();
                    continue;
                }
                Item::Struct(item) => &item.ident,
                Item::Enum(item) => &item.ident,
                Item::Type(item) => &item.ident,
                Item::Mod(item) => &item.ident,
                _ => continue,
            };
            imports.bind(defined.to_string(), Some(vec!["self".to_owned(), defined.to_string()]));
        }
        Some(imports)
    }

    /// Adds the names of a `use` item. Under `cfg`, they are ambiguous.
    fn add(&mut self, item: &ItemUse) {
        let is_certain = !item.attrs.iter().any(|attribute| attribute.path().is_ident("cfg"));
        let mut trees = vec![(Vec::<String>::new(), &item.tree)];
        while let Some((prefix, tree)) = trees.pop() {
            let below = |name: &Ident| -> Vec<String> {
                let name = Some(name.to_string()).filter(|name| name != "self");
                prefix.iter().cloned().chain(name).collect()
            };
            match tree {
                UseTree::Path(path) => trees.push((below(&path.ident), &*path.tree)),
                UseTree::Group(group) => trees.extend(group.items.iter().map(|tree| (prefix.clone(), tree))),
                UseTree::Name(name) => {
                    let path = below(&name.ident);
                    let bound = path.last().cloned().unwrap_or_default();
                    self.bind(bound, is_certain.then_some(path));
                }
                UseTree::Rename(name) => {
                    let path = below(&name.ident);
                    self.bind(name.rename.to_string(), is_certain.then_some(path));
                }
                UseTree::Glob(_) => self.globs.push(prefix.join("::")),
            }
        }
    }

    /// Binds a name to a path. A second path makes it ambiguous.
    fn bind(&mut self, name: String, path: Option<Vec<String>>) {
        match self.names.entry(name) {
            Entry::Vacant(entry) => _ = entry.insert(path),
            Entry::Occupied(mut entry) if *entry.get() != path => _ = entry.insert(None),
            Entry::Occupied(_) => {}
        }
    }

    /// Returns the whole path of a kind, with `k8s_openapi` for `kctl::k8s`. `None` if it is ambiguous.
    pub(super) fn path_of(&self, kind: &Type) -> Option<String> {
        let Type::Path(kind) = kind else { return None };
        if kind.qself.is_some() || kind.path.segments.iter().any(|segment| !segment.arguments.is_none()) {
            return None;
        }
        let segments = self.resolve(&kind.path)?;
        let path = match segments.as_slice() {
            [kctl, k8s, rest @ ..] if kctl == "kctl" && k8s == "k8s" => format!("k8s_openapi::{}", rest.join("::")),
            all => all.join("::"),
        };
        Some(path)
    }

    /// Follows imports from the first name of a path.
    fn resolve(&self, path: &Path) -> Option<Vec<String>> {
        let mut segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if path.leading_colon.is_some() {
            return Some(segments);
        }
        let mut is_imported = false;
        for _ in 0..STEPS_MAX {
            let Some(bound) = self.names.get(segments.first()?) else { break };
            let bound = bound.as_ref()?;
            if bound.first() == segments.first() {
                break;
            }
            segments = [bound.as_slice(), &segments[1..]].concat();
            is_imported = true;
        }
        let is_prelude_alone = self.globs.iter().all(|glob| glob == "kctl::prelude");
        match segments.as_slice() {
            [name] => {
                let is_hidden = self.has_macros || self.text.contains(&format!("\"{name}\""));
                let modules = PRELUDE.iter().filter(|(_, kinds)| kinds.split(' ').any(|kind| kind == name));
                let module = modules.map(|(module, _)| *module).next()?;
                let is_certain = is_prelude_alone && !self.globs.is_empty() && !is_hidden;
                is_certain.then(|| ["k8s_openapi", "api", module, "v1", name.as_str()].map(ToOwned::to_owned).to_vec())
            }
            [first, ..] => {
                let is_relative = ["crate", "self", "super"].contains(&first.as_str());
                (is_relative || is_prelude_alone || is_imported).then_some(segments)
            }
            [] => None,
        }
    }
}

/// Returns the last name of a path.
pub(in crate::controller) fn last_segment(kind: &Type) -> Option<&Ident> {
    match kind {
        Type::Path(path) => path.path.segments.last().map(|last| &last.ident),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the path of a kind in a file with the controller `pods`.
    fn path_in(uses: &str, kind: &str) -> Option<String> {
        let text = format!("{uses}\n#[controller]\nasync fn pods() {{}}\n");
        let name = syn::parse_str("pods").unwrap();
        Imports::of(text, &name)?.path_of(&syn::parse_str(kind).unwrap())
    }

    #[test]
    fn spellings_of_one_kind_have_one_path() {
        let pod = "k8s_openapi::api::core::v1::Pod";
        for (uses, kind) in [
            ("use kctl::prelude::*;", "Pod"),
            ("use kctl::prelude::*;", "kctl::k8s::api::core::v1::Pod"),
            ("", "::kctl::k8s::api::core::v1::Pod"),
            ("", pod),
            ("use k8s_openapi::api::core::v1::{Node, Pod};", "Pod"),
            ("use k8s_openapi::api::core::v1::{self, Pod as Unit};", "Unit"),
            ("use k8s_openapi::api::core::v1::{self, Pod as Unit};", "v1::Pod"),
            ("use kctl::k8s; use k8s::api::core; #[allow(unused)] use kctl::prelude::*;", "core::v1::Pod"),
            ("use mine::*; use kctl::k8s::api::core::v1::Pod;", "Pod"),
        ] {
            assert_eq!(path_in(uses, kind).as_deref(), Some(pod), "{uses} {kind}");
        }
    }

    #[test]
    fn other_kinds_and_ambiguous_names_differ() {
        for (uses, kind, expected) in [
            ("use kctl::prelude::*; struct Pod;", "Pod", Some("self::Pod")),
            ("use kctl::prelude::*; use mine::Pod;", "Pod", Some("mine::Pod")),
            ("use kctl::prelude::*;", "crate::Pod", Some("crate::Pod")),
            ("mod apps;", "apps::Pod", Some("self::apps::Pod")),
            ("use kctl::prelude::*; use mine::*;", "Pod", None),
            ("use kctl::prelude::*; use mine::*;", "v1::Pod", None),
            ("use kctl::prelude::*; kinds!(Pod);", "Pod", None),
            ("use kctl::prelude::*; #[resource(kind = \"Pod\")] struct PodSpec;", "Pod", None),
            ("#[cfg(unix)] use k8s_openapi::api::core::v1::Pod;", "Pod", None),
            ("use a::Pod; use b::Pod;", "Pod", None),
            ("use kctl::prelude::*; mod other { fn pods() {} }", "Pod", None),
            ("use kctl::prelude::*;", "Kind<Pod>", None),
        ] {
            assert_eq!(path_in(uses, kind).as_deref(), expected, "{uses} {kind}");
        }
    }

    #[test]
    fn prelude_has_the_listed_kinds() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../kctl/src/prelude.rs");
        let text = std::fs::read_to_string(path).unwrap() + "\nasync fn pods() {}\n";
        let imports = Imports::of(text, &syn::parse_str("pods").unwrap()).unwrap();
        for (module, kinds) in PRELUDE {
            for kind in kinds.split(' ') {
                let found = imports.path_of(&syn::parse_str(kind).unwrap());
                assert_eq!(found, Some(format!("k8s_openapi::api::{module}::v1::{kind}")));
            }
        }
    }
}
