//! The public items of the published crates are those that `tests/api` records.
//!
//! The items are read from the source by their syntax, so that the record needs neither a nightly compiler nor a build: what is
//! reachable from `lib.rs` through public modules and re-exports, with signatures, public fields, variants, and public methods.
//! Items behind `#[doc(hidden)]` are left out, and implementations of traits are not recorded.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, TraitItem, UseTree, Visibility};

const CRATES: [&str; 8] = [
    "kctl",
    "kctl-apimachinery",
    "kctl-apiserver",
    "kctl-cel",
    "kctl-interpreter",
    "kctl-macros",
    "kctl-runtime",
    "kctl-webhook",
];

type ModulePath = Vec<String>;

/// The items of a module, in the order of the file.
#[derive(Default)]
struct Module {
    items: Vec<Item>,
}

/// The modules of a crate by their paths.
struct Crate {
    modules: BTreeMap<ModulePath, Module>,
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn text(tokens: impl ToTokens) -> String {
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

/// Returns what an attribute decides: whether the item is hidden, for tests alone, or behind features.
fn attributes(attributes: &[Attribute]) -> Option<String> {
    let mut prefix = String::new();
    for attribute in attributes {
        let meta = text(&attribute.meta);
        if meta == "doc(hidden)" || meta == "cfg(test)" || meta.starts_with("cfg(all(test") {
            return None;
        }
        if meta.starts_with("cfg(") || meta == "non_exhaustive" || meta == "must_use" || meta == "macro_export" {
            write!(prefix, "#[{meta}] ").unwrap();
        }
    }
    Some(prefix)
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
    fn read(folder: &Path) -> Self {
        let mut modules = BTreeMap::new();
        read_file(&folder.join("src/lib.rs"), &folder.join("src"), Vec::new(), &mut modules);
        Self { modules }
    }

    /// Returns the public item of this name in a module, with the module that defines it.
    fn find(&self, module: &ModulePath, name: &str) -> Option<(ModulePath, &Item)> {
        self.modules
            .get(module)?
            .items
            .iter()
            .find(|item| named(item).is_some_and(|found| found == name))
            .map(|item| (module.clone(), item))
    }

    /// Resolves the path of a re-export in this crate; `None` for one that leads to another crate.
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

    /// Writes the public items below a path that is public under the name `shown`.
    fn write_module(
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
                Item::Macro(inner) if prefix.contains("macro_export") => {
                    let name = inner.ident.as_ref().unwrap();
                    let root = shown.split("::").next().unwrap();
                    out.insert(format!("{root}::{name}!: macro"));
                }
                item => self.write_item(
                    module,
                    item,
                    &format!("{shown}::{}", named(item).unwrap_or_default()),
                    &prefix,
                    out,
                ),
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
        // A re-export of a re-export.
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
        match item {
            Item::Const(item) if is_public(&item.vis) => {
                out.insert(format!("{shown}: {prefix}const {}", text(&item.ty)));
            }
            Item::Static(item) if is_public(&item.vis) => {
                out.insert(format!("{shown}: {prefix}static {}", text(&item.ty)));
            }
            Item::Fn(item) if is_public(&item.vis) => {
                out.insert(format!("{shown}: {prefix}{}", text(&item.sig)));
            }
            Item::Type(item) if is_public(&item.vis) => {
                out.insert(format!("{shown}: {prefix}type{} = {}", text(&item.generics), text(&item.ty)));
            }
            Item::Struct(item) if is_public(&item.vis) => {
                out.insert(format!("{shown}: {prefix}struct{}{}", text(&item.generics), positions(&item.fields)));
                fields(&item.fields, shown, out);
                self.methods(module, &item.ident.to_string(), shown, out);
            }
            Item::Enum(item) if is_public(&item.vis) => {
                out.insert(format!("{shown}: {prefix}enum{}", text(&item.generics)));
                for variant in &item.variants {
                    let Some(prefix) = attributes(&variant.attrs) else { continue };
                    out.insert(format!("{shown}::{}: {prefix}variant{}", variant.ident, text(&variant.fields)));
                }
                self.methods(module, &item.ident.to_string(), shown, out);
            }
            Item::Trait(item) if is_public(&item.vis) => {
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

    /// Writes the public methods of a type, whose `impl` blocks are in its module or below its parent.
    fn methods(&self, module: &ModulePath, name: &str, shown: &str, out: &mut BTreeSet<String>) {
        let near = &module[..module.len().saturating_sub(1)];
        for (_, module) in self.modules.iter().filter(|(path, _)| path.starts_with(near)) {
            for item in &module.items {
                let Item::Impl(block) = item else { continue };
                let syn::Type::Path(of) = &*block.self_ty else { continue };
                if block.trait_.is_some() || of.path.segments.last().is_none_or(|last| last.ident != name) {
                    continue;
                }
                let Some(prefix) = attributes(&block.attrs) else { continue };
                for inner in &block.items {
                    match inner {
                        ImplItem::Fn(method) if is_public(&method.vis) => {
                            let Some(own) = attributes(&method.attrs) else { continue };
                            out.insert(format!("{shown}::{}: {prefix}{own}{}", method.sig.ident, text(&method.sig)));
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

/// Returns `(…)` with the public positions of a tuple struct.
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

fn named(item: &Item) -> Option<String> {
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

/// Returns the paths of a `use` with the names that it gives.
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

/// Reads a file and the files of its modules. `folder` has the files of the modules inside it.
fn read_file(file: &Path, folder: &Path, path: ModulePath, modules: &mut BTreeMap<ModulePath, Module>) {
    let source = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&source).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    read_items(parsed.items, folder, path, modules);
}

fn read_items(items: Vec<Item>, folder: &Path, path: ModulePath, modules: &mut BTreeMap<ModulePath, Module>) {
    for item in &items {
        let Item::Mod(inner) = item else { continue };
        if attributes(&inner.attrs).is_none() {
            continue;
        }
        let name = inner.ident.to_string();
        let below = folder.join(&name);
        let inner_path = [path.clone(), vec![name.clone()]].concat();
        if let Some((_, items)) = &inner.content {
            read_items(items.clone(), &below, inner_path, modules);
        } else {
            let candidates = [folder.join(format!("{name}.rs")), below.join("mod.rs")];
            let file = candidates.iter().find(|file| file.exists());
            read_file(file.unwrap_or_else(|| panic!("no file of the module {name}")), &below, inner_path, modules);
        }
    }
    modules.insert(path, Module { items });
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns one line per public item, sorted. The functions of a crate of macros are the macros.
fn listed(name: &str) -> String {
    let krate = Crate::read(&root().join(name));
    let mut lines = BTreeSet::new();
    krate.write_module(&Vec::new(), &name.replace('-', "_"), &mut BTreeSet::new(), &mut lines);
    lines.into_iter().map(|line| line + "\n").collect()
}

#[test]
fn public_items_are_those_of_the_record() {
    let mut different = String::new();
    for name in CRATES {
        let (file, now) = (root().join(format!("tests/api/{name}.txt")), listed(name));
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

/// The number of items of the facade, which may only go down without a reason in the commit: users read all of them.
const ITEMS_MAX: usize = 191;

#[test]
fn facade_has_few_public_items() {
    let listed = listed("kctl");
    // Methods and variants count with their type, and the prelude repeats items.
    let is_item = |line: &&str| {
        let (path, what) = line.split_once(": ").unwrap();
        let names: Vec<_> = path.split("::").collect();
        let is_below_type = names.len() > 2 && names[1].starts_with(char::is_uppercase);
        names.len() <= 3 && !is_below_type && !path.contains('.') && !what.ends_with("mod") && names[1] != "prelude"
    };
    let n = listed.lines().filter(is_item).count();
    assert!(n <= ITEMS_MAX, "{n} public items, and {ITEMS_MAX} are allowed");
}

/// The module that expansions name has the minor version in its name, so that nothing else relies on it.
#[test]
fn private_module_is_named_after_the_minor_version() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = \"")).unwrap();
    let [major, minor] = version.splitn(3, '.').take(2).collect::<Vec<_>>()[..] else { panic!("{version}") };
    let file = root().join(format!("kctl-runtime/src/__private_{major}_{minor}.rs"));
    assert!(file.exists(), "rename `__private_…` in all crates and tests: {} does not exist", file.display());
}
