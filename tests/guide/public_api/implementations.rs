//! The trait implementations in the record: of public types, and of public traits for types of other crates.
//!
//! Derived traits are in the line of their type. Implementations that a macro writes are not seen.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::Regex;
use syn::{ImplItem, Item, ItemImpl, Path, Type, visit::Visit};

use super::reader::{Crate, DEFINITION_DEPTH, Definition, ModulePath, Paths, attributes, text};

/// The modules before a name. They are left out of the record, which a changed import would change otherwise.
static MODULES: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?::: ?)?\b(?:[a-z_][a-z0-9_]*::)+").unwrap());

/// Returns `true` for the right side of a line of the record that is an implementation.
pub(super) fn is_implementation(line: &str) -> bool {
    let rest = without_attributes(line);
    rest.starts_with("impl ") || rest.starts_with("impl<")
}

/// Returns the right side of a line of the record without its attributes.
pub(super) fn without_attributes(line: &str) -> &str {
    let mut rest = line;
    while let Some((_, after)) = rest.strip_prefix("#[").and_then(|attribute| attribute.split_once("] ")) {
        rest = after;
    }
    rest
}

impl Crate {
    /// Writes the implementations, each at the shortest public path of its type, and records the crates that they name.
    pub(super) fn write_implementations(&self, out: &mut BTreeSet<String>) {
        for (module, found) in &self.modules {
            for item in &found.items {
                let Item::Impl(block) = item else { continue };
                let (Some((implemented, _)), Some(own)) = (&block.trait_, attributes(&block.attrs)) else { continue };
                let Some(at) = self.recorded_at(module, block, implemented) else { continue };
                let public = self.public.borrow();
                let (shown, of_type) = (&public[&at], &self.modules[&at.0].cfgs);
                let module_cfgs: String =
                    found.cfgs.iter().filter(|cfg| !of_type.contains(cfg)).map(String::as_str).collect();
                self.record_links(module, shown, &paths_of(block, implemented));
                let written = implementation_head(block, implemented);
                out.insert(format!("{shown}: {module_cfgs}{own}{written}"));
            }
        }
    }

    /// Returns the public item at whose path an implementation is recorded: its type, else its trait, else a type among the
    /// arguments of the trait, as in `impl From<Point> for String`.
    ///
    /// Returns `None` if none of them is of this crate, or if one of them is private: users cannot name such an implementation.
    fn recorded_at(&self, module: &ModulePath, block: &ItemImpl, implemented: &Path) -> Option<Definition> {
        let mut paths = Paths::default();
        paths.visit_type(&block.self_ty);
        paths.visit_path(implemented);
        let defined = |path: &[String]| self.definition(module, path, DEFINITION_DEPTH);
        let named: Vec<_> = paths.0.iter().filter_map(|path| defined(path)).collect();
        let public = self.public.borrow();
        if !named.iter().all(|item| public.contains_key(item)) {
            return None;
        }
        let type_definition = subject(&block.self_ty).and_then(|path| defined(&segments(path)));
        type_definition.or_else(|| defined(&segments(implemented))).or_else(|| named.into_iter().next())
    }
}

/// Returns the paths in the head of an implementation and in its associated types.
fn paths_of(block: &ItemImpl, implemented: &Path) -> Paths {
    let mut paths = Paths::default();
    paths.visit_path(implemented);
    paths.visit_type(&block.self_ty);
    paths.visit_generics(&block.generics);
    for item in &block.items {
        if let ImplItem::Type(item) = item {
            paths.visit_type(&item.ty);
        }
    }
    paths
}

fn segments(path: &Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Returns the path of a type, also of a reference to it.
fn subject(of: &Type) -> Option<&Path> {
    match of {
        Type::Path(of) => Some(&of.path),
        Type::Reference(of) => subject(&of.elem),
        _ => None,
    }
}

/// Returns the head of an implementation with its associated types, which users rely on too.
fn implementation_head(block: &ItemImpl, implemented: &Path) -> String {
    let bounds = block.generics.where_clause.as_ref().map(|bounds| format!(" {}", text(bounds))).unwrap_or_default();
    let types = block.items.iter().filter_map(|item| match item {
        ImplItem::Type(item) => Some(format!(" type {}{} = {};", item.ident, text(&item.generics), text(&item.ty))),
        _ => None,
    });
    let types: String = types.collect();
    let types = if types.is_empty() { types } else { format!(" {{{types} }}") };
    let (generics, implemented, of) = (text(&block.generics), text(implemented), text(&block.self_ty));
    let bounds = bounds.trim_end_matches(',');
    MODULES.replace_all(&format!("impl{generics} {implemented} for {of}{bounds}{types}"), "").into_owned()
}

/// Returns the implementations in the record of a crate `shapes` that has this source.
fn record_implementations(source: &str) -> Vec<String> {
    let krate = Crate::of_source(source);
    let mut lines = BTreeSet::new();
    krate.write_module(&Vec::new(), "shapes", &mut BTreeSet::new(), &mut lines);
    krate.write_implementations(&mut lines);
    lines.into_iter().filter(|line| is_implementation(line.split_once(": ").unwrap().1)).collect()
}

const SOURCE: &str = "
    pub use inner::{Area, Point};
    pub mod prelude { pub use super::inner::Point; }
    mod inner {
        use std::fmt;
        pub struct Point;
        pub struct Hidden;
        pub trait Area { type Unit; }
        trait Secret {}
        impl fmt::Display for Point {}
        impl From<&'static str> for Point {}
        #[cfg(feature = \"dev\")]
        impl ::std::clone::Clone for Point {}
        impl<'a> IntoIterator for &'a Point { type Item = u8; type IntoIter = std::vec::IntoIter<u8>; }
        impl From<Point> for String {}
        impl<T: super::Area> Area for Vec<T> where T: Clone, { type Unit = T::Unit; }
        impl Point { pub fn new() -> Self { Self } }
        impl From<Hidden> for Point {}
        impl From<Point> for Hidden {}
        impl Secret for Point {}
        #[cfg(test)]
        impl Default for Point {}
    }
";

#[test]
fn implementations_of_public_items_are_recorded() {
    let expected = [
        "shapes::Area: impl<T: Area> Area for Vec<T> where T: Clone { type Unit = T::Unit; }",
        "shapes::Point: #[cfg(feature = \"dev\")] impl Clone for Point",
        "shapes::Point: impl Display for Point",
        "shapes::Point: impl From<&'static str> for Point",
        "shapes::Point: impl From<Point> for String",
        "shapes::Point: impl<'a> IntoIterator for &'a Point { type Item = u8; type IntoIter = IntoIter<u8>; }",
    ];
    assert_eq!(record_implementations(SOURCE), expected);
}

#[test]
fn foreign_traits_of_implementations_are_recorded() {
    let krate = Crate::of_source(
        "
        use http_body::Body;
        pub struct Point;
        impl<B: Body> tower::Service<B> for Point where B::Error: std::error::Error { type Response = jiff::Timestamp; }
        ",
    );
    krate.write_module(&Vec::new(), "shapes", &mut BTreeSet::new(), &mut BTreeSet::new());
    krate.write_implementations(&mut BTreeSet::new());
    let links = krate.links.into_inner();
    let found: Vec<_> = links["shapes::Point"].iter().map(String::as_str).collect();
    assert_eq!(found, ["http_body::Body", "jiff::Timestamp", "tower::Service"]);
}

#[test]
fn removed_conversion_changes_the_record() {
    let without = record_implementations(&SOURCE.replace("impl From<&'static str> for Point {}", ""));
    let mut expected = record_implementations(SOURCE);
    expected.retain(|line| !line.contains("From<&'static str>"));
    assert_eq!((without.len(), &without), (5, &expected));
}

#[test]
fn implementation_lines_differ_from_items() {
    for line in ["impl Debug for A", "impl<T> Debug for A<T>", "#[cfg(a)] #[cfg(b)] impl Debug for A"] {
        assert!(is_implementation(line), "{line}");
    }
    for line in ["struct", "#[cfg(a)] fn f(of: impl Debug)", "#[must_use] enum", "implied"] {
        assert!(!is_implementation(line), "{line}");
    }
}
