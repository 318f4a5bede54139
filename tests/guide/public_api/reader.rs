//! Reads the sources of a crate, and writes its public items: those that `lib.rs` reaches by modules and re-exports, and the
//! macros that any module exports.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::Path,
};

use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, TraitItem, UseTree, Visibility, visit::Visit};

pub(super) type ModulePath = Vec<String>;

/// The module and the name of an item where it is defined.
pub(super) type Definition = (ModulePath, String);

/// Maximum number of imports and re-exports between a name and its definition.
pub(super) const DEFINITION_DEPTH: usize = 5;

/// The items of a module, in source order.
#[derive(Default)]
pub(super) struct Module {
    pub(super) items: Vec<Item>,
    /// Paths of imported names, by name.
    imports: BTreeMap<String, Vec<String>>,
    /// The `#[cfg(…)]` of the module and of those around it.
    pub(super) cfgs: Vec<String>,
}

/// The modules of a crate, by path.
pub(super) struct Crate {
    pub(super) modules: BTreeMap<ModulePath, Module>,
    /// Crates that public signatures name, with the items that name them.
    pub(super) foreign: RefCell<BTreeMap<String, BTreeSet<String>>>,
    /// Paths of other crates that public items name, by item: in signatures, re-exports and trait implementations.
    pub(super) links: RefCell<BTreeMap<String, BTreeSet<String>>>,
    /// Public enums, structs with only public fields, and variants of errors, that lack `#[non_exhaustive]`.
    pub(super) exhaustive: RefCell<BTreeSet<String>>,
    /// The shortest public path of each public type and trait.
    pub(super) public: RefCell<BTreeMap<Definition, String>>,
    /// The definition of each recorded item, by path.
    pub(super) definitions: RefCell<BTreeMap<String, Definition>>,
}

/// The paths in a signature.
#[derive(Default)]
pub(super) struct Paths(pub(super) BTreeSet<Vec<String>>);

impl<'ast> Visit<'ast> for Paths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_attribute(&mut self, _attribute: &'ast Attribute) {}

    /// A function body is not part of the signature.
    fn visit_block(&mut self, _block: &'ast syn::Block) {}
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

pub(super) fn text(tokens: impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    let tight = [
        (" :: ", "::"),
        ("& ", "&"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
    ];
    tight.iter().fold(text, |text, (from, to)| text.replace(from, to)).replace(" :", ":").replace(" ;", ";")
}

/// Returns the attributes to record; `None` if the item is hidden or only compiled in tests.
pub(super) fn attributes(attributes: &[Attribute]) -> Option<String> {
    let mut prefix = String::new();
    for attribute in attributes {
        let meta = text(&attribute.meta);
        if meta == "doc(hidden)" || meta == "cfg(test)" || meta.starts_with("cfg(all(test") {
            return None;
        }
        if meta.starts_with("cfg(") || meta == "non_exhaustive" || meta == "must_use" {
            write!(prefix, "#[{meta}] ").unwrap();
        }
    }
    Some(prefix)
}

/// Returns the `#[cfg(…)]` among attributes.
fn cfgs(attributes: &[Attribute]) -> impl Iterator<Item = String> {
    let cfgs = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    cfgs.map(|attribute| format!("#[{}] ", text(&attribute.meta)))
}

/// Returns the derived traits of a type as ` derive(…)`, sorted. Removing one breaks users as removing a method does.
fn derives(attributes: &[Attribute]) -> String {
    let mut names = BTreeSet::new();
    for attribute in attributes {
        if attribute.path().is_ident("derive") {
            attribute
                .parse_nested_meta(|meta| {
                    names.extend(meta.path.segments.last().map(|last| last.ident.to_string()));
                    Ok(())
                })
                .unwrap();
        } else if attribute.path().is_ident("cfg_attr") && text(&attribute.meta).contains("derive(") {
            names.insert(text(&attribute.meta));
        }
    }
    let names: Vec<_> = names.into_iter().collect();
    if names.is_empty() { String::new() } else { format!(" derive({})", names.join(", ")) }
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

impl Crate {
    pub(super) fn read(folder: &Path) -> Self {
        let mut modules = BTreeMap::new();
        read_file(&folder.join("src/lib.rs"), &folder.join("src"), (Vec::new(), Vec::new()), &mut modules);
        Self::of_modules(modules)
    }

    /// Reads a crate of one file.
    pub(super) fn of_source(source: &str) -> Self {
        let mut modules = BTreeMap::new();
        let items = syn::parse_file(source).unwrap().items;
        read_items(items, Path::new(""), (Vec::new(), Vec::new()), &mut modules);
        Self::of_modules(modules)
    }

    fn of_modules(modules: BTreeMap<ModulePath, Module>) -> Self {
        Self {
            modules,
            foreign: RefCell::default(),
            links: RefCell::default(),
            exhaustive: RefCell::default(),
            public: RefCell::default(),
            definitions: RefCell::default(),
        }
    }

    /// Records the path of a public type or trait, if it is shorter than those that were found before.
    fn record_public(&self, module: &ModulePath, name: &syn::Ident, shown: &str) {
        let mut public = self.public.borrow_mut();
        let shortest = public.entry((module.clone(), name.to_string())).or_insert_with(|| shown.to_owned());
        if shown.len() < shortest.len() {
            shown.clone_into(shortest);
        }
    }

    /// Records the crates that a part of a public item names, resolved by the imports of its module.
    fn record_foreign(&self, module: &ModulePath, shown: &str, visit: impl FnOnce(&mut Paths)) {
        let mut paths = Paths::default();
        visit(&mut paths);
        for path in paths.0.iter().filter_map(|path| self.foreign_path(module, path)) {
            self.foreign.borrow_mut().entry(path[0].clone()).or_default().insert(shown.to_owned());
            self.record_link(shown, &path);
        }
    }

    /// Records that a public item names a path of another crate.
    fn record_link(&self, shown: &str, path: &[String]) {
        self.links.borrow_mut().entry(shown.to_owned()).or_default().insert(path.join("::"));
    }

    /// Records the paths of other crates that a trait implementation of a public item names.
    pub(super) fn record_links(&self, module: &ModulePath, shown: &str, paths: &Paths) {
        for path in paths.0.iter().filter_map(|path| self.foreign_path(module, path)) {
            self.record_link(shown, &path);
        }
    }

    /// Returns the full path of a name in a module if it is of another crate than this one and the standard library.
    fn foreign_path(&self, module: &ModulePath, path: &[String]) -> Option<Vec<String>> {
        let is_module = |name: &String| self.modules.contains_key(&[module.clone(), vec![name.clone()]].concat());
        let full = match self.modules[module].imports.get(&path[0]) {
            Some(imported) => [&imported[..], &path[1..]].concat(),
            // A name of this module or of the prelude, or an associated type of a generic parameter.
            None if path.len() == 1 || path[0].starts_with(char::is_uppercase) => return None,
            None => path.to_vec(),
        };
        let is_known = ["crate", "self", "super", "std", "core", "alloc"].contains(&full[0].as_str());
        (!is_known && !is_module(&full[0])).then_some(full)
    }

    fn record_exhaustive(&self, shown: &str, prefix: &str) {
        if !prefix.contains("non_exhaustive") {
            self.exhaustive.borrow_mut().insert(shown.to_owned());
        }
    }

    /// Records an error as `path::*` if one of its variants with named fields lacks `#[non_exhaustive]`. Errors gain fields
    /// as messages get more precise.
    fn record_exhaustive_variants(&self, shown: &str, item: &syn::ItemEnum) {
        let has_fields = |variant: &&syn::Variant| matches!(variant.fields, syn::Fields::Named(_));
        let may_grow =
            |variant: &syn::Variant| attributes(&variant.attrs).is_none_or(|text| text.contains("non_exhaustive"));
        if derives(&item.attrs).contains("Error") && !item.variants.iter().filter(has_fields).all(may_grow) {
            self.exhaustive.borrow_mut().insert(format!("{shown}::*"));
        }
    }

    /// Returns the item of this name in a module, with the path of the module.
    fn find(&self, module: &ModulePath, name: &str) -> Option<(ModulePath, &Item)> {
        self.modules
            .get(module)?
            .items
            .iter()
            .find(|item| item_name(item).is_some_and(|found| found == name))
            .map(|item| (module.clone(), item))
    }

    /// Resolves the path of a re-export within this crate; `None` if it leads to another crate.
    fn resolve(&self, from: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => from.clone(),
            "super" => from[..from.len().checked_sub(1)?].to_vec(),
            name => {
                let mut inner = from.clone();
                inner.push(name.to_owned());
                if !self.modules.contains_key(&inner) && self.find(from, name).is_none() {
                    return None;
                }
                inner
            }
        };
        for name in rest {
            if name == "super" {
                at.pop();
            } else {
                at.push(name.clone());
            }
        }
        Some(at)
    }

    /// Returns the module and the name under which a type is defined that a module calls `path`. Follows imports, at most
    /// `depth` of them.
    pub(super) fn definition(&self, from: &ModulePath, path: &[String], depth: usize) -> Option<Definition> {
        let target = match path {
            [name] => [&from[..], std::slice::from_ref(name)].concat(),
            path => self.resolve(from, path)?,
        };
        let (name, module) = target.split_last()?;
        let module = module.to_vec();
        if self.find(&module, name).is_some() {
            return Some((module, name.clone()));
        }
        let depth = depth.checked_sub(1)?;
        let items = self.modules.get(&module).into_iter().flat_map(|module| &module.items);
        let uses = items.filter_map(|item| if let Item::Use(inner) = item { Some(flatten(&inner.tree)) } else { None });
        uses.flatten().find_map(|(mut path, found)| {
            if found == "*" {
                path.push(name.clone());
            } else if found != *name {
                return None;
            }
            self.definition(&module, &path, depth)
        })
    }

    /// Writes the public items of a module whose public path is `shown`.
    pub(super) fn write_module(
        &self,
        module: &ModulePath,
        shown: &str,
        seen: &mut BTreeSet<(ModulePath, String)>,
        out: &mut BTreeSet<String>,
    ) {
        if !seen.insert((module.clone(), shown.to_owned())) {
            return;
        }
        let Some(found) = self.modules.get(module) else { return };
        for item in &found.items {
            let Some(prefix) = attributes(attributes_of(item)) else { continue };
            match item {
                Item::Mod(inner) if is_public(&inner.vis) => {
                    let name = inner.ident.to_string();
                    if name.starts_with("__private") {
                        continue;
                    }
                    let mut path = module.clone();
                    path.push(name.clone());
                    out.insert(format!("{shown}::{name}: {prefix}mod"));
                    self.write_module(&path, &format!("{shown}::{name}"), seen, out);
                }
                Item::Use(inner) if is_public(&inner.vis) => {
                    for (path, name) in flatten(&inner.tree) {
                        if name.starts_with("__private") {
                            continue;
                        }
                        self.write_use(module, &path, &name, (shown, &prefix), seen, out);
                    }
                }
                item => self.write_item(
                    module,
                    item,
                    &format!("{shown}::{}", item_name(item).unwrap_or_default()),
                    &prefix,
                    out,
                ),
            }
        }
    }

    /// Writes the macros that a crate called `name` exports. `#[macro_export]` puts a macro at the root of its crate, also if
    /// its module is private.
    pub(super) fn write_macros(&self, name: &str, out: &mut BTreeSet<String>) {
        for module in self.modules.values() {
            for item in &module.items {
                let Item::Macro(item) = item else { continue };
                let is_exported = item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"));
                let (true, Some(macro_name), Some(prefix)) = (is_exported, &item.ident, attributes(&item.attrs)) else {
                    continue;
                };
                out.insert(format!("{name}::{macro_name}!: {}{prefix}macro", module.cfgs.concat()));
            }
        }
    }

    fn write_use(
        &self,
        from: &ModulePath,
        path: &[String],
        name: &str,
        (shown, prefix): (&str, &str),
        seen: &mut BTreeSet<(ModulePath, String)>,
        out: &mut BTreeSet<String>,
    ) {
        if name == "_" {
            return;
        }
        let Some(target) = self.resolve(from, path) else {
            self.foreign.borrow_mut().entry(path[0].clone()).or_default().insert(format!("{shown}::{name}"));
            self.record_link(&format!("{shown}::{name}"), path);
            out.insert(format!("{shown}::{name}: {prefix}use {}", path.join("::")));
            return;
        };
        if name == "*" {
            return self.write_module(&target, shown, seen, out);
        }
        if self.modules.contains_key(&target) {
            out.insert(format!("{shown}::{name}: {prefix}mod"));
            return self.write_module(&target, &format!("{shown}::{name}"), seen, out);
        }
        let Some((last, module)) = target.split_last() else { return };
        let module = module.to_vec();
        if let Some((module, item)) = self.find(&module, last) {
            let Some(inner) = attributes(attributes_of(item)) else { return };
            return self.write_item(&module, item, &format!("{shown}::{name}"), &format!("{prefix}{inner}"), out);
        }
        // The re-export of a re-export.
        for item in self.modules.get(&module).into_iter().flat_map(|module| &module.items) {
            let Item::Use(inner) = item else { continue };
            for (path, found) in flatten(&inner.tree) {
                if found == *last {
                    return self.write_use(&module, &path, name, (shown, prefix), seen, out);
                }
            }
        }
        out.insert(format!("{shown}::{name}: {prefix}use {}", path.join("::")));
    }

    fn write_item(&self, module: &ModulePath, item: &Item, shown: &str, prefix: &str, out: &mut BTreeSet<String>) {
        if let Some(name) = public_type(item) {
            self.record_public(module, name, shown);
        }
        if let Some(name) = item_name(item) {
            self.definitions.borrow_mut().insert(shown.to_owned(), (module.clone(), name));
        }
        match item {
            Item::Const(item) if is_public(&item.vis) => {
                self.record_foreign(module, shown, |paths| paths.visit_type(&item.ty));
                out.insert(format!("{shown}: {prefix}const {}", text(&item.ty)));
            }
            Item::Static(item) if is_public(&item.vis) => {
                out.insert(format!("{shown}: {prefix}static {}", text(&item.ty)));
            }
            Item::Fn(item) if is_public(&item.vis) => {
                self.record_foreign(module, shown, |paths| paths.visit_signature(&item.sig));
                out.insert(format!("{shown}: {prefix}{}", text(&item.sig)));
            }
            Item::Type(item) if is_public(&item.vis) => {
                self.record_foreign(module, shown, |paths| paths.visit_type(&item.ty));
                out.insert(format!("{shown}: {prefix}type{} = {}", text(&item.generics), text(&item.ty)));
            }
            Item::Struct(item) if is_public(&item.vis) => {
                let (generics, positions) = (text(&item.generics), positions(&item.fields));
                out.insert(format!("{shown}: {prefix}struct{generics}{positions}{}", derives(&item.attrs)));
                fields(&item.fields, shown, out);
                for field in item.fields.iter().filter(|field| is_public(&field.vis)) {
                    self.record_foreign(module, shown, |paths| paths.visit_type(&field.ty));
                }
                if !item.fields.is_empty() && item.fields.iter().all(|field| is_public(&field.vis)) {
                    self.record_exhaustive(shown, prefix);
                }
                self.methods(module, &item.ident.to_string(), shown, out);
            }
            Item::Enum(item) if is_public(&item.vis) => {
                out.insert(format!("{shown}: {prefix}enum{}{}", text(&item.generics), derives(&item.attrs)));
                self.record_exhaustive(shown, prefix);
                self.record_exhaustive_variants(shown, item);
                self.record_foreign(module, shown, |paths| {
                    item.variants.iter().for_each(|variant| paths.visit_variant(variant));
                });
                for variant in &item.variants {
                    let Some(prefix) = attributes(&variant.attrs) else { continue };
                    out.insert(format!("{shown}::{}: {prefix}variant{}", variant.ident, without_docs(&variant.fields)));
                }
                self.methods(module, &item.ident.to_string(), shown, out);
            }
            Item::Trait(item) if is_public(&item.vis) => {
                self.record_foreign(module, shown, |paths| paths.visit_item_trait(item));
                let bounds = text(&item.supertraits);
                out.insert(format!("{shown}: {prefix}trait{}: {bounds}", text(&item.generics)));
                for inner in &item.items {
                    let (attrs, text) = match inner {
                        TraitItem::Fn(inner) => (&inner.attrs, format!("{}: {}", inner.sig.ident, text(&inner.sig))),
                        TraitItem::Type(inner) => {
                            (&inner.attrs, format!("{}: type: {}", inner.ident, text(&inner.bounds)))
                        }
                        TraitItem::Const(inner) => {
                            (&inner.attrs, format!("{}: const {}", inner.ident, text(&inner.ty)))
                        }
                        _ => continue,
                    };
                    if let Some(prefix) = attributes(attrs) {
                        out.insert(format!("{shown}::{prefix}{text}"));
                    }
                }
            }
            _ => {}
        }
    }

    /// Writes the public methods of a type. Its `impl` blocks are in its module, or in a module below its parent. A method
    /// has the `#[cfg(…)]` of each of these modules that the type is not in.
    fn methods(&self, module: &ModulePath, name: &str, shown: &str, out: &mut BTreeSet<String>) {
        let near = &module[..module.len().saturating_sub(1)];
        let (of_type, defined) = (&self.modules[module].cfgs, (module.clone(), name.to_owned()));
        for (module, found) in self.modules.iter().filter(|(path, _)| path.starts_with(near)) {
            let module_cfgs: String =
                found.cfgs.iter().filter(|cfg| !of_type.contains(cfg)).map(String::as_str).collect();
            for item in &found.items {
                let Item::Impl(block) = item else { continue };
                let syn::Type::Path(of) = &*block.self_ty else { continue };
                let path: Vec<String> = of.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
                let implements_type = || self.definition(module, &path, DEFINITION_DEPTH).as_ref() == Some(&defined);
                if block.trait_.is_some() || path.last().is_none_or(|last| last != name) || !implements_type() {
                    continue;
                }
                let Some(prefix) = attributes(&block.attrs) else { continue };
                let prefix = module_cfgs.clone() + &prefix;
                for inner in &block.items {
                    match inner {
                        ImplItem::Fn(method) if is_public(&method.vis) => {
                            let Some(own) = attributes(&method.attrs) else { continue };
                            let shown = format!("{shown}::{}", method.sig.ident);
                            self.record_foreign(module, &shown, |paths| paths.visit_signature(&method.sig));
                            out.insert(format!("{shown}: {prefix}{own}{}", text(&method.sig)));
                        }
                        ImplItem::Const(value) if is_public(&value.vis) => {
                            out.insert(format!("{shown}::{}: {prefix}const {}", value.ident, text(&value.ty)));
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}

/// Returns the name of a public type or trait.
fn public_type(item: &Item) -> Option<&syn::Ident> {
    let (name, visibility) = match item {
        Item::Enum(item) => (&item.ident, &item.vis),
        Item::Struct(item) => (&item.ident, &item.vis),
        Item::Trait(item) => (&item.ident, &item.vis),
        Item::Type(item) => (&item.ident, &item.vis),
        _ => return None,
    };
    is_public(visibility).then_some(name)
}

/// Returns the fields of a variant without their docs, so that a reworded doc leaves the record as it is.
fn without_docs(of: &Fields) -> String {
    let mut fields = of.clone();
    for field in &mut fields {
        field.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
    }
    text(fields)
}

/// Returns the fields of a tuple struct as `(…)`, with `_` for private ones.
fn positions(of: &Fields) -> String {
    let Fields::Unnamed(fields) = of else { return String::new() };
    let shown = |field: &syn::Field| if is_public(&field.vis) { text(&field.ty) } else { "_".to_owned() };
    format!("({})", fields.unnamed.iter().map(shown).collect::<Vec<_>>().join(", "))
}

fn fields(of: &Fields, shown: &str, out: &mut BTreeSet<String>) {
    let Fields::Named(fields) = of else { return };
    for field in fields.named.iter().filter(|field| is_public(&field.vis)) {
        let Some(prefix) = attributes(&field.attrs) else { continue };
        out.insert(format!("{shown}.{}: {prefix}{}", field.ident.as_ref().unwrap(), text(&field.ty)));
    }
}

fn item_name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        _ => return None,
    })
}

/// Returns the paths of a `use` declaration, with the names that it imports.
fn flatten(tree: &UseTree) -> Vec<(Vec<String>, String)> {
    fn walk(tree: &UseTree, path: &[String], found: &mut Vec<(Vec<String>, String)>) {
        let with = |name: String| [path, &[name]].concat();
        match tree {
            UseTree::Path(inner) => walk(&inner.tree, &with(inner.ident.to_string()), found),
            UseTree::Name(inner) if inner.ident == "self" => found.push((path.to_vec(), path.last().unwrap().clone())),
            UseTree::Name(inner) => found.push((with(inner.ident.to_string()), inner.ident.to_string())),
            UseTree::Rename(inner) if inner.ident == "self" => found.push((path.to_vec(), inner.rename.to_string())),
            UseTree::Rename(inner) => found.push((with(inner.ident.to_string()), inner.rename.to_string())),
            UseTree::Glob(_) => found.push((path.to_vec(), "*".to_owned())),
            UseTree::Group(inner) => inner.items.iter().for_each(|tree| walk(tree, path, found)),
        }
    }
    let mut found = Vec::new();
    walk(tree, &[], &mut found);
    found
}

/// A module's path, and the `#[cfg(…)]` of the module and of those around it.
type ModuleScope = (ModulePath, Vec<String>);

/// Reads a file and the files of its submodules, which are in `folder`.
fn read_file(file: &Path, folder: &Path, (path, mut around): ModuleScope, modules: &mut BTreeMap<ModulePath, Module>) {
    let source = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&source).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    around.extend(cfgs(&parsed.attrs));
    read_items(parsed.items, folder, (path, around), modules);
}

fn read_items(
    items: Vec<Item>,
    folder: &Path,
    (path, around): ModuleScope,
    modules: &mut BTreeMap<ModulePath, Module>,
) {
    for item in &items {
        let Item::Mod(inner) = item else { continue };
        if attributes(&inner.attrs).is_none() {
            continue;
        }
        let name = inner.ident.to_string();
        let below = folder.join(&name);
        let inner_path = [path.clone(), vec![name.clone()]].concat();
        let inner_scope = (inner_path, around.iter().cloned().chain(cfgs(&inner.attrs)).collect());
        if let Some((_, items)) = &inner.content {
            read_items(items.clone(), &below, inner_scope, modules);
        } else {
            let candidates = [folder.join(format!("{name}.rs")), below.join("mod.rs")];
            let file = candidates.iter().find(|file| file.exists());
            read_file(file.unwrap_or_else(|| panic!("no file of the module {name}")), &below, inner_scope, modules);
        }
    }
    let imported = items.iter().filter_map(|item| if let Item::Use(inner) = item { Some(&inner.tree) } else { None });
    let imports = imported.flat_map(flatten).map(|(path, name)| (name, path)).collect();
    modules.insert(path, Module { items, imports, cfgs: around });
}
