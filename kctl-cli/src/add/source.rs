//! Places in the source of a project, found by its syntax: the kinds it declares, and where lines are to be inserted.

use std::ops::Range;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{
    Attribute, Expr, ExprCall, ExprLit, ExprMethodCall, Fields, File, Item, ItemStruct, Lit, LitStr, Meta, Path, Token,
    Type, UseTree, Visibility,
    punctuated::Punctuated,
    visit::{self, Visit},
};

use super::test_code::is_test;
use crate::new::plural;

/// Text to insert at an offset in bytes.
pub(super) struct Insertion {
    /// The offset in bytes, on a boundary between tokens.
    at: usize,
    /// The inserted text with its own line breaks and indentation.
    text: String,
}

impl Insertion {
    /// Returns the source with the insertion, with the line breaks of the source's first line.
    pub(super) fn apply(&self, text: &str) -> String {
        let is_crlf = text.split_inclusive('\n').next().is_some_and(|line| line.ends_with("\r\n"));
        let (before, after) = text.split_at(self.at);
        let inserted = if is_crlf { self.text.replace('\n', "\r\n") } else { self.text.clone() };
        format!("{before}{inserted}{after}")
    }
}

/// A version of a kind that `#[resource]` declares.
pub(super) struct Kind {
    /// The kind, such as `TeaRoom`.
    pub(super) name: String,
    /// The struct of objects: the kind, unless the attribute has `root`.
    pub(super) root: String,
    /// The struct with `#[resource]`, such as `TeaRoomSpec`.
    pub(super) spec: String,
    /// The API group, such as `apps.example.com`.
    pub(super) group: String,
    /// The declared version, such as `v1alpha1`.
    pub(super) version: String,
    /// `true` if the attribute has `namespaced`; a kind is cluster-scoped otherwise.
    pub(super) is_namespaced: bool,
    /// `false` if the attribute has `storage = false`: API servers store objects in another version.
    pub(super) is_stored: bool,
    /// Plural, singular and short names, with kube's defaults: no other kind of the group can have one of them.
    pub(super) resource_names: Vec<String>,
    /// The module, such as `crate::tea_room`.
    pub(super) path: String,
    /// The options of the attribute, each as it is written.
    pub(super) options: Vec<(String, String)>,
    /// Documentation and other attributes of the struct, as they are written.
    pub(super) attributes: String,
    /// The fields of the spec with their attributes, as they are written; `None` for another form of struct.
    pub(super) fields: Option<Vec<(String, String)>>,
    /// Names that a copy of the fields in another module needs.
    pub(super) needs: Names,
    /// `true` if a path in the types of the fields, or of the status, leads elsewhere from a module of the app.
    pub(super) has_relative_types: bool,
}

/// Names of a file that the fields of a kind use, or its status or attributes.
#[derive(Default)]
pub(super) struct Names {
    /// Items that another module imports from the file's module.
    pub(super) items: Vec<String>,
    /// Names that a `use` of the file imports, each with its path for another module.
    pub(super) uses: Vec<(String, String)>,
    /// Private functions and constants, each with its text. Other modules cannot import them.
    pub(super) private: Vec<(String, String)>,
    /// Private types and fields, and imports from private modules. They can be neither imported nor copied.
    pub(super) hidden: Vec<String>,
}

/// Returns `true` if the source has the syntax of a Rust file.
pub(super) fn parses(text: &str) -> bool {
    syn::parse_file(text).is_ok()
}

/// Returns the bytes that tokens take.
fn range(tokens: impl ToTokens) -> Option<Range<usize>> {
    let mut tokens = tokens.to_token_stream().into_iter();
    let first = tokens.next()?;
    let end = tokens.last().map_or_else(|| first.span().byte_range().end, |last| last.span().byte_range().end);
    Some(first.span().byte_range().start..end)
}

/// Returns tokens as the user wrote them, with comments and spacing, which printing tokens would lose.
fn source_text(text: &str, tokens: impl ToTokens) -> String {
    range(tokens).and_then(|range| text.get(range)).unwrap_or_default().to_owned()
}

/// Returns the kinds that a file declares. `path` is its module.
///
/// # Errors
/// The file does not parse as Rust.
pub(super) fn kinds(text: &str, path: &str) -> Result<Vec<Kind>, String> {
    let file = syn::parse_file(text).map_err(|error| error.to_string())?;
    let names = Names::of(text, &file, path);
    let structs = file.items.iter().filter_map(|item| match item {
        Item::Struct(item) => Some(item),
        _ => None,
    });
    Ok(structs.filter_map(|item| kind(text, item, path, &names)).collect())
}

impl Names {
    /// Returns the names that a file declares or imports. Code of tests has none.
    fn of(text: &str, file: &File, path: &str) -> Self {
        let mut names = Self::default();
        let (mut uses, mut hidden_modules) = (Vec::new(), Vec::new());
        for item in &file.items {
            let (name, attributes, visibility) = match item {
                Item::Struct(item) => (&item.ident, &item.attrs, &item.vis),
                Item::Enum(item) => (&item.ident, &item.attrs, &item.vis),
                Item::Type(item) => (&item.ident, &item.attrs, &item.vis),
                Item::Mod(item) => (&item.ident, &item.attrs, &item.vis),
                Item::Fn(item) => (&item.sig.ident, &item.attrs, &item.vis),
                Item::Const(item) => (&item.ident, &item.attrs, &item.vis),
                Item::Use(item) => {
                    let start = if item.leading_colon.is_some() { "::" } else { "" };
                    collect_imports(&item.tree, start, &mut uses);
                    continue;
                }
                _ => continue,
            };
            if is_test(attributes) {
                continue;
            }
            let name = name.to_string();
            match item {
                _ if !is_hidden(path, visibility) => names.items.push(name),
                Item::Fn(_) | Item::Const(_) => names.private.push((name, source_text(text, item))),
                Item::Mod(_) => {
                    hidden_modules.push(format!("{path}::{name}::"));
                    names.hidden.push(name);
                }
                _ => names.hidden.push(name),
            }
        }
        let modules: Vec<String> = file.items.iter().filter_map(module_name).collect();
        for (name, used) in uses {
            let used = absolute(&used, path, &modules);
            if hidden_modules.iter().any(|module| used.starts_with(module)) {
                names.hidden.push(name);
            } else {
                names.uses.push((name, used));
            }
        }
        names
    }

    /// Returns those that are among these words, or in the text of private items that are.
    fn filter_by_words(&self, words: &[String]) -> Self {
        let mut words = words.to_vec();
        words.sort();
        words.dedup();
        let mut n_before = 0;
        while n_before < words.len() {
            n_before = words.len();
            let named: Vec<_> = self.private.iter().filter(|(name, _)| words.contains(name)).collect();
            let mut found = Vec::new();
            for text in named.into_iter().filter_map(|(_, text)| text.parse().ok()) {
                idents(text, &mut found);
            }
            words.extend(found);
            words.sort();
            words.dedup();
        }
        let has = |name: &String| words.binary_search(name).is_ok();
        Self {
            items: self.items.iter().filter(|name| has(name)).cloned().collect(),
            uses: self.uses.iter().filter(|(name, _)| has(name)).cloned().collect(),
            private: self.private.iter().filter(|(name, _)| has(name)).cloned().collect(),
            hidden: self.hidden.iter().filter(|name| has(name)).cloned().collect(),
        }
    }
}

/// Returns `true` for an item or a field that the app's modules can't name. They can name all items of their crate's root, and
/// only public ones of the package's library.
fn is_hidden(path: &str, visibility: &Visibility) -> bool {
    match visibility {
        Visibility::Public(_) => false,
        Visibility::Restricted(_) => root_of(path) != "crate",
        Visibility::Inherited => path != "crate",
    }
}

/// Returns the first part of a path: `crate`, or the name of the package's library.
fn root_of(path: &str) -> &str {
    path.split("::").next().unwrap_or(path)
}

/// Returns the names of the modules that a file declares. A file that does not parse declares none.
pub(super) fn modules(text: &str) -> Vec<String> {
    let file = syn::parse_file(text).ok();
    file.iter().flat_map(|file| &file.items).filter_map(module_name).collect()
}

/// Returns the private modules of a file, which other crates can't name.
pub(super) fn private_modules(text: &str) -> Vec<String> {
    let file = syn::parse_file(text).ok();
    let is_private = |item: &&Item| matches!(item, Item::Mod(module) if !matches!(module.vis, Visibility::Public(_)));
    file.iter().flat_map(|file| &file.items).filter(is_private).filter_map(module_name).collect()
}

/// Returns the name of the library in a `Cargo.toml`: `name` in `[lib]`, or the package's name with underscores.
pub(super) fn library_name(manifest: &str) -> Option<String> {
    let (mut section, mut package, mut library) = ("", None, None);
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        }
        let value = line.strip_prefix("name").and_then(|rest| rest.trim_start().strip_prefix('='));
        let name = value.and_then(|value| value.split(['"', '\'']).nth(1));
        match section {
            "[package]" => package = package.or(name),
            "[lib]" => library = library.or(name),
            _ => {}
        }
    }
    Some(library.or(package)?.replace('-', "_"))
}

/// Returns the name of a `mod` item, `None` for other items.
fn module_name(item: &Item) -> Option<String> {
    match item {
        Item::Mod(module) => Some(module.ident.to_string()),
        _ => None,
    }
}

/// Collects the names that a `use` imports, each with its path. A `*` names nothing.
fn collect_imports(tree: &UseTree, before: &str, found: &mut Vec<(String, String)>) {
    match tree {
        UseTree::Path(path) => collect_imports(&path.tree, &format!("{before}{}::", path.ident), found),
        UseTree::Group(group) => group.items.iter().for_each(|tree| collect_imports(tree, before, found)),
        UseTree::Name(name) if name.ident == "self" => {
            let path = before.trim_end_matches("::");
            found.push((path.rsplit("::").next().unwrap_or_default().to_owned(), path.to_owned()));
        }
        UseTree::Name(name) => found.push((name.ident.to_string(), format!("{before}{}", name.ident))),
        UseTree::Rename(rename) if rename.ident == "self" => {
            let path = before.trim_end_matches("::");
            found.push((rename.rename.to_string(), format!("{path} as {}", rename.rename)));
        }
        UseTree::Rename(rename) => {
            found.push((rename.rename.to_string(), format!("{before}{} as {}", rename.ident, rename.rename)));
        }
        UseTree::Glob(_) => {}
    }
}

/// Returns the path of a `use` as another module has to write it.
fn absolute(used: &str, path: &str, modules: &[String]) -> String {
    let (first, rest) = used.split_once("::").unwrap_or((used, ""));
    match first {
        "crate" if !rest.is_empty() => format!("{}::{rest}", root_of(path)),
        "self" => format!("{path}::{rest}"),
        "super" => format!("{}::{rest}", path.rsplit_once("::").map_or("crate", |(above, _)| above)),
        first if modules.iter().any(|module| module == first) => format!("{path}::{used}"),
        _ => used.to_owned(),
    }
}

/// Returns `true` if a file has an item or an import of this name, so that no module of the name can be declared.
///
/// A function counts only with an attribute of kctl, which makes a type of its name.
pub(super) fn has_module(text: &str, name: &str) -> bool {
    let Ok(file) = syn::parse_file(text) else { return false };
    file.items.iter().any(|item| match item {
        Item::Mod(item) => item.ident == name,
        Item::Struct(item) => item.ident == name,
        Item::Enum(item) => item.ident == name,
        Item::Type(item) => item.ident == name,
        Item::Trait(item) => item.ident == name,
        Item::Union(item) => item.ident == name,
        Item::ExternCrate(item) => item.rename.as_ref().map_or(&item.ident, |(_as, name)| name) == name,
        Item::Fn(item) => item.sig.ident == name && item.attrs.iter().any(makes_type),
        Item::Use(item) => {
            let mut found = Vec::new();
            collect_imports(&item.tree, "", &mut found);
            found.iter().any(|(used, _)| used == name)
        }
        _ => false,
    })
}

/// Returns `true` for attributes of kctl that declare a type with the name of their function.
fn makes_type(attribute: &Attribute) -> bool {
    let name = attribute.path().segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
    ["controller", "admission", "conversion", "interpreter"].contains(&name.as_str())
}

/// Returns `true` for `#[resource]`, also by a path such as `#[kctl::resource]`.
fn is_resource(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "resource")
}

/// Returns `true` for the option `storage = false`.
fn is_unstored(option: &Meta) -> bool {
    let is_false = |value: &Expr| matches!(value, Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }) if !value.value());
    option.path().is_ident("storage") && option.require_name_value().is_ok_and(|pair| is_false(&pair.value))
}

/// Returns the string values of all options of a name.
fn strings(options: &Punctuated<Meta, Token![,]>, name: &str) -> impl Iterator<Item = String> {
    options.iter().filter(move |option| option.path().is_ident(name)).filter_map(|option| match option {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(value), .. }) => Some(value.value()),
            _ => None,
        },
        _ => None,
    })
}

/// Returns the names that API servers accept for the resource of a kind: plural, singular, and short names.
fn resource_names(kind: &str, options: &Punctuated<Meta, Token![,]>) -> Vec<String> {
    let lower = kind.to_ascii_lowercase();
    let plural = strings(options, "plural").next().unwrap_or_else(|| plural(&lower));
    let singular = strings(options, "singular").next().unwrap_or(lower);
    [plural, singular].into_iter().chain(strings(options, "shortname")).collect()
}

/// Reads a struct with `#[resource]`; `None` without the attribute or without a literal kind, group or version.
fn kind(text: &str, item: &ItemStruct, path: &str, names: &Names) -> Option<Kind> {
    let resource = item.attrs.iter().find(|attribute| is_resource(attribute))?;
    let metas = resource.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
    let option =
        |meta: &Meta| (meta.path().get_ident().map(ToString::to_string).unwrap_or_default(), source_text(text, meta));
    let string = |name: &str| strings(&metas, name).next();
    let fields = match &item.fields {
        Fields::Named(fields) => Some(
            fields
                .named
                .iter()
                .filter_map(|field| Some((field.ident.as_ref()?.to_string(), source_text(text, field))))
                .collect(),
        ),
        _ => None,
    };
    let mut words: Vec<String> = status(&metas).into_iter().collect();
    item.fields.iter().for_each(|field| idents(field.ty.to_token_stream(), &mut words));
    let has_relative_types = words.iter().any(|word| is_relative(word, path));
    let attributes = item.attrs.iter().filter(|attribute| !is_resource(attribute));
    for attribute in attributes.chain(item.fields.iter().flat_map(|field| &field.attrs)) {
        idents(attribute.to_token_stream(), &mut words);
    }
    words.retain(|word| item.ident != *word);
    let mut needs = names.filter_by_words(&words);
    let fields_named = item.fields.iter().filter_map(|field| Some((field.ident.as_ref()?, &field.vis)));
    let named = std::iter::once((&item.ident, &item.vis)).chain(fields_named);
    needs.hidden.extend(named.filter(|(_, visibility)| is_hidden(path, visibility)).map(|(name, _)| name.to_string()));
    let others: Vec<String> = item
        .attrs
        .iter()
        .filter(|attribute| !is_resource(attribute))
        .map(|attribute| source_text(text, attribute))
        .collect();
    Some(Kind {
        name: string("kind")?,
        root: string("root").or_else(|| string("kind"))?,
        spec: item.ident.to_string(),
        group: string("group")?,
        version: string("version")?,
        is_namespaced: metas.iter().any(|meta| meta.path().is_ident("namespaced")),
        is_stored: !metas.iter().any(is_unstored),
        resource_names: resource_names(&string("kind")?, &metas),
        path: path.into(),
        options: metas.iter().map(option).collect(),
        attributes: others.join("\n"),
        fields,
        needs,
        has_relative_types,
    })
}

/// Returns the first name in the path of the status, for example `inner` for `status = "inner::ShopStatus"`.
fn status(options: &Punctuated<Meta, Token![,]>) -> Option<String> {
    let value = options.iter().find(|option| option.path().is_ident("status"))?.require_name_value().ok()?;
    let path = match &value.value {
        Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => path.parse::<Path>().ok()?,
        Expr::Path(path) => path.path.clone(),
        _ => return None,
    };
    Some(path.segments.first()?.ident.to_string())
}

/// Returns `true` if a path that begins with this name has another meaning in the app's new modules, which are in `src`.
fn is_relative(first: &str, path: &str) -> bool {
    first == "self" || (["crate", "super"].contains(&first) && root_of(path) != "crate")
}

/// Options of attributes whose strings name nothing in Rust.
const TEXTS: [&str; 3] = ["doc", "rename", "alias"];

/// Collects the identifiers of tokens, including identifiers in strings with paths and types, such as
/// `#[serde(default = "port")]`.
fn idents(tokens: TokenStream, words: &mut Vec<String>) {
    let mut option = String::new();
    for token in tokens {
        match token {
            proc_macro2::TokenTree::Ident(ident) => {
                option = ident.to_string();
                words.push(option.clone());
            }
            proc_macro2::TokenTree::Group(group) => idents(group.stream(), words),
            proc_macro2::TokenTree::Literal(literal) if !TEXTS.contains(&option.as_str()) => {
                let text = syn::parse_str::<LitStr>(&literal.to_string()).map(|text| text.value());
                if let Ok(named) = syn::parse_str::<Type>(&text.unwrap_or_default()) {
                    idents(named.to_token_stream(), words);
                }
            }
            _ => {}
        }
    }
}

/// Returns where `mod name;` belongs: among the declarations of modules by its name, or before the first item.
pub(super) fn module(text: &str, name: &str) -> Option<Insertion> {
    let file = syn::parse_file(text).ok()?;
    let declared = file.items.iter().filter_map(|item| match item {
        Item::Mod(module) if module.content.is_none() => Some((module, item)),
        _ => None,
    });
    let declared: Vec<_> = declared.collect();
    if let Some((_, next)) = declared.iter().find(|(module, _)| module.ident.to_string().as_str() > name) {
        return Some(Insertion { at: range(next)?.start, text: format!("mod {name};\n") });
    }
    if let Some((_, last)) = declared.last() {
        return Some(Insertion { at: range(last)?.end, text: format!("\nmod {name};") });
    }
    let first = range(file.items.first()?)?;
    Some(Insertion { at: first.start, text: format!("mod {name};\n\n") })
}

/// The calls of `App::new` in a file, and the methods called on them.
///
/// Methods are recorded only if they are called in the same expression as `App::new`.
#[derive(Default)]
struct Apps {
    /// The bytes of each `App::new(…)`.
    apps: Vec<Range<usize>>,
    /// The app by its range, the offset of the dot, and the end of a call that adds something to it.
    calls: Vec<(Range<usize>, usize, usize)>,
}

/// Methods of `App` that add something; a new call belongs after the last of them.
const ADDING: [&str; 6] = ["controller", "controller_with", "kind", "admission", "conversion", "interpreter"];

/// Returns `true` for a call of `App::new`, also by a longer path.
fn is_app(call: &ExprCall) -> bool {
    let Expr::Path(path) = &*call.func else { return false };
    let segments: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    segments.ends_with(&["App".to_owned(), "new".to_owned()])
}

impl<'ast> Visit<'ast> for Apps {
    /// Skips modules and functions behind `#[cfg(test)]` with everything in them.
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    /// Records a call of `App::new`, and continues with its arguments.
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if is_app(call) {
            self.apps.extend(range(call));
        }
        visit::visit_expr_call(self, call);
    }

    /// Records a method in [`ADDING`] if the chain of calls that it ends begins with `App::new`.
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let mut receiver = &*call.receiver;
        while let Expr::MethodCall(inner) = receiver {
            receiver = &inner.receiver;
        }
        if let Expr::Call(app) = receiver
            && is_app(app)
            && ADDING.iter().any(|name| call.method == name)
            && let (Some(app), Some(whole)) = (range(app), range(call))
        {
            self.calls.push((app, call.dot_token.span.byte_range().start, whole.end));
        }
        visit::visit_expr_method_call(self, call);
    }
}

/// Finds the apps of a file. A file that does not parse has no apps.
///
/// Apps behind `#[cfg(test)]` are not counted.
fn apps(text: &str) -> Apps {
    let mut apps = Apps::default();
    if let Ok(file) = syn::parse_file(text) {
        apps.visit_file(&file);
    }
    apps
}

/// Returns `true` if a file creates an app outside of its tests.
///
/// # Errors
/// The file does not parse as Rust.
pub(super) fn has_app(text: &str) -> Result<bool, String> {
    syn::parse_file(text).map_err(|error| error.to_string())?;
    Ok(!apps(text).apps.is_empty())
}

/// Returns where a call on the app belongs; `None` unless the file creates exactly one app outside of its tests.
///
/// The call goes after the last one that adds something, and takes the indentation of its line.
pub(super) fn find_call_site(text: &str, call: &str) -> Option<Insertion> {
    let apps = apps(text);
    let [app] = apps.apps.as_slice() else { return None };
    let last = apps.calls.iter().filter(|(of, ..)| of == app).max_by_key(|(.., end)| *end);
    let (dot, at) = if let Some((_, dot, end)) = last {
        (Some(*dot), *end)
    } else {
        // The first method after the app, if it is on a separate line.
        let rest = &text[app.end..];
        let dot = rest.len() - rest.trim_start().len();
        (rest[dot..].starts_with('.').then_some(app.end + dot), app.end)
    };
    let indentation = dot.and_then(|dot| {
        let line = text[..dot].rfind('\n')? + 1;
        text[line..dot].trim().is_empty().then(|| &text[line..dot])
    });
    let text = indentation.map_or_else(|| call.to_owned(), |indentation| format!("\n{indentation}{call}"));
    Some(Insertion { at, text })
}

/// A feature of kctl in a `Cargo.toml`.
pub(super) enum Feature {
    /// The feature is listed; nothing changes.
    Present,
    /// The feature is to be inserted into the list.
    Missing(Insertion),
    /// The dependency was `kctl = "VERSION"`; this manifest has it as a table with the feature.
    Tabled(String),
    /// The dependency has another form than `kctl = { …, features = [ … ] }` or `kctl = "VERSION"` in one line.
    Unknown,
}

/// Finds the features of the dependency on kctl, and returns the change that adds one.
///
/// The first line that starts with `kctl =` counts, except for dependencies of tests and build scripts. It is read as a string
/// instead of as TOML, so that comments, order and spaces of the manifest are unchanged.
///
/// | line | result |
/// |---|---|
/// | `kctl = { version = "0.1", features = ["webhook"] }` | [`Feature::Present`] if the feature is listed, else [`Feature::Missing`] |
/// | `kctl = "0.1"` | [`Feature::Tabled`] |
/// | `kctl.workspace = true`, `[dependencies.kctl]` | [`Feature::Unknown`]: a person has to add the feature |
pub(super) fn feature(manifest: &str, feature: &str) -> Feature {
    let (mut start, mut is_of_program) = (0, true);
    for line in manifest.split_inclusive('\n') {
        if line.starts_with('[') {
            is_of_program = !["dev-dependencies]", "build-dependencies]"].iter().any(|table| line.contains(table));
        }
        let is_kctl = is_of_program && line.strip_prefix("kctl").is_some_and(|rest| rest.trim_start().starts_with('='));
        if is_kctl
            && let Some(list) = line.find("features = [").map(|at| at + "features = [".len())
            && let Some(len) = line[list..].find(']')
        {
            let features = &line[list..list + len];
            if features.split(',').any(|known| known.trim().trim_matches('"') == feature) {
                return Feature::Present;
            }
            let separator = match features.trim_end() {
                "" => "",
                listed if listed.ends_with(',') => " ",
                _ => ", ",
            };
            return Feature::Missing(Insertion { at: start + list + len, text: format!("{separator}\"{feature}\"") });
        }
        if is_kctl && let Some(version) = lone_version(line) {
            let table = format!("{{ version = {version}, features = [\"{feature}\"] }}");
            let (before, after) = (&manifest[..start], &manifest[start + line.len()..]);
            return Feature::Tabled(format!("{before}{}{after}", line.replacen(version, &table, 1)));
        }
        start += line.len();
    }
    Feature::Unknown
}

/// Returns the version of a line `kctl = "VERSION"`, with its quotes. `None` for a line with a comment, a table or single
/// quotes.
fn lone_version(line: &str) -> Option<&str> {
    let (_, value) = line.split_once('=')?;
    let value = value.trim();
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    (!inner.contains(['"', '\\'])).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(text: &str) -> Option<String> {
        Some(find_call_site(text, ".controller::<b>()")?.apply(text))
    }

    #[test]
    fn call_follows_the_last_one_of_its_sort() {
        for (before, after) in [
            ("fn f() { App::new(\"a\"); }", "fn f() { App::new(\"a\").controller::<b>(); }"),
            (
                "fn f() { kctl::App::new(\"a\").controller::<a>().main() }",
                "fn f() { kctl::App::new(\"a\").controller::<a>().controller::<b>().main() }",
            ),
            (
                "fn f() {\n    App::new(\"a\")\n        .version(\"1\")\n}",
                "fn f() {\n    App::new(\"a\")\n        .controller::<b>()\n        .version(\"1\")\n}",
            ),
            (
                "fn f() {\n  App::new(\"a\")\n    .kind::<K>() // kept\n    .version(\"1\")\n}",
                "fn f() {\n  App::new(\"a\")\n    .kind::<K>()\n    .controller::<b>() // kept\n    .version(\"1\")\n}",
            ),
        ] {
            assert_eq!(called(before).as_deref(), Some(after));
        }
        let tested = "fn f() { App::new(\"a\"); }\n#[cfg(test)]\nmod tests { fn g() { App::new(\"b\"); } }";
        assert!(called(tested).unwrap().starts_with("fn f() { App::new(\"a\").controller::<b>();"));
        let program = "#[cfg(not(test))]\nfn main() { App::new(\"a\"); }";
        assert_eq!(called(program), Some(program.replace(';', ".controller::<b>();")));
        assert!(called("fn f() { App::new(\"a\"); App::new(\"b\"); }").is_none());
    }

    #[test]
    fn module_follows_others_or_comes_first() {
        let declared = |text: &str| module(text, "b").unwrap().apply(text);
        assert_eq!(declared("//! A.\n\n/// B.\nuse a::b;\n"), "//! A.\n\nmod b;\n\n/// B.\nuse a::b;\n");
        assert_eq!(declared("mod a; // é\nfn f() {}\n"), "mod a;\nmod b; // é\nfn f() {}\n");
        assert_eq!(declared("mod a;\n\n/// C.\nmod c;\n"), "mod a;\n\nmod b;\n/// C.\nmod c;\n");
        assert_eq!(declared("mod a { fn f() {} }\n"), "mod b;\n\nmod a { fn f() {} }\n");
        assert_eq!(declared("mod a;\r\nfn f() {}\r\n"), "mod a;\r\nmod b;\r\nfn f() {}\r\n");
        assert_eq!(declared("fn f() {}\r\n"), "mod b;\r\n\r\nfn f() {}\r\n");
    }

    #[test]
    fn feature_is_added_once() {
        let added = |text: &str| match feature(text, "webhook") {
            Feature::Missing(insertion) => insertion.apply(text),
            Feature::Tabled(text) => text,
            Feature::Present => "present".into(),
            Feature::Unknown => "unknown".into(),
        };
        let line = "[dependencies]\nkctl = { path = \"a\", features = [\"v1_37\"] }\n";
        assert_eq!(added(line), line.replace("\"v1_37\"", "\"v1_37\", \"webhook\""));
        assert_eq!(added(&added(line)), "present");
        assert_eq!(
            added("kctl = { version = \"1\", features = [] }"),
            "kctl = { version = \"1\", features = [\"webhook\"] }"
        );
        assert_eq!(added("kctl = { features = [\"a\",] }"), "kctl = { features = [\"a\", \"webhook\"] }");
        let table = "[dependencies]\nkctl = { version = \"0.1\", features = [\"webhook\"] }\nserde = \"1\"\n";
        assert_eq!(added("[dependencies]\nkctl = \"0.1\"\nserde = \"1\"\n"), table);
        assert_eq!(added(table), "present");
        let tested = "[dev-dependencies]\nkctl = { workspace = true, features = [\"testing\"] }\n";
        assert_eq!(added(&format!("[dependencies]\nkctl.workspace = true\n\n{tested}")), "unknown");
        assert_eq!(added(&format!("{tested}{line}")), format!("{tested}{}", added(line)));
        for line in ["kctl = '1'\n", "kctl.workspace = true\n", "[dependencies.kctl]\nversion = \"1\"\n"] {
            assert_eq!(added(line), "unknown", "{line}");
        }
    }
}
