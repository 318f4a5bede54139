//! `Input` → `Model`: the rules, each a function of its name; all mistakes are reported at once.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Error, Expr, FnArg, GenericArgument, Ident, Item, ItemFn, ItemStruct, Lit, PathArguments, ReturnType, Type};

use super::parse::{Argument, Entry, Input, Value};

/// A declaration that is right.
pub(super) struct Model {
    pub(super) form: Form,
    pub(super) name: Ident,
    pub(super) vis: syn::Visibility,
    pub(super) docs: Vec<syn::Attribute>,
    pub(super) krate: TokenStream,
    pub(super) primary: Type,
    pub(super) primary_verbs: Vec<Ident>,
    /// Calls on the builder, in order.
    pub(super) calls: Vec<TokenStream>,
    pub(super) relations: Vec<Relation>,
    pub(super) finalizer: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Function,
    Struct,
}

pub(super) struct Relation {
    pub(super) role: Ident,
    pub(super) kind: Type,
    pub(super) text: String,
    pub(super) verbs: Vec<Ident>,
    pub(super) calls: Vec<TokenStream>,
}

const VERBS: [&str; 14] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "apply",
    "delete",
    "deletecollection",
    "status",
    "scale",
    "eviction",
    "binding",
    "token",
];
const OPTIONS: [&str; 14] = [
    "owns",
    "watches",
    "reads",
    "primary",
    "of",
    "name",
    "finalizer",
    "concurrency",
    "backoff",
    "retries",
    "namespaces",
    "resync",
    "timeout",
    "rbac",
];
const RELATION_OPTIONS: [&str; 6] = ["map", "when", "index", "selector", "fields", "on"];

/// Mistakes found so far.
#[derive(Default)]
struct Errors(Option<Error>);

impl Errors {
    fn push(&mut self, span: impl ToTokens, code: u16, what: &str, help: &str) {
        self.add(Error::new_spanned(span, format!("{what}\nhelp: {help}\ncode: K{code:04}")));
    }

    fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            none => *none = Some(error),
        }
    }
}

pub(super) fn check(input: &Input) -> syn::Result<Model> {
    let mut errors = Errors::default();
    let of = input.options.iter().find(|entry| entry.name == "of");
    let item = match &input.item {
        Item::Fn(function) => function_form(function, of, &mut errors),
        Item::Struct(item) => struct_form(item, of, &mut errors),
        other => {
            let help =
                "put it on `async fn name(object: Arc<Kind>, cx: Context<name>) -> Result<Action>` or on a struct";
            errors.push(other, 1, "`#[controller]` goes on a function or a struct", help);
            None
        }
    };
    let (form, name) = match &input.item {
        Item::Struct(item) => (Form::Struct, item.ident.clone()),
        Item::Fn(function) => (Form::Function, function.sig.ident.clone()),
        _ => (Form::Function, Ident::new("controller", Span::call_site())),
    };
    let (vis, docs) = match &input.item {
        Item::Fn(function) => (function.vis.clone(), docs(&function.attrs)),
        _ => (syn::Visibility::Inherited, Vec::new()),
    };
    let primary = item.unwrap_or_else(|| syn::parse_quote!(()));
    let krate = quote!(::kctl);
    let mut model = Model {
        form,
        name,
        vis,
        docs,
        krate,
        primary,
        primary_verbs: Vec::new(),
        calls: Vec::new(),
        relations: Vec::new(),
        finalizer: false,
    };
    for entry in &input.options {
        option(entry, &mut model, &mut errors);
    }
    kinds_are_named_once(&model, &mut errors);
    options_are_named_once(&input.options, &mut errors);
    finalizer_needs_the_struct_form(&model, &input.options, &mut errors);
    errors.0.map_or(Ok(model), Err)
}

fn docs(attributes: &[syn::Attribute]) -> Vec<syn::Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect()
}

fn function_form(function: &ItemFn, of: Option<&Entry>, errors: &mut Errors) -> Option<Type> {
    let signature = &function.sig;
    let name = &signature.ident;
    if let Some(of) = of {
        errors.push(&of.name, 2, "a function names its kind in its first parameter", "remove `of = …`");
    }
    if signature.asyncness.is_none() {
        let help = format!("write `async fn {name}`");
        errors.push(signature.fn_token, 3, "a reconcile function must be `async`", &help);
    }
    if !signature.generics.params.is_empty() {
        errors.push(&signature.generics, 4, "a reconcile function can't be generic", "name the kind");
    }
    if matches!(signature.output, ReturnType::Default) {
        let help = "write `-> Result<Action>` and end with `Ok(Action::await_change())`";
        errors.push(name, 5, "a reconcile function returns `Result<Action>`", help);
    }
    let inputs: Vec<_> = signature.inputs.iter().collect();
    let [FnArg::Typed(primary), FnArg::Typed(cx)] = inputs.as_slice() else {
        let help = format!("write `async fn {name}(object: Arc<Kind>, cx: Context<{name}>) -> Result<Action>`");
        errors.push(name, 6, "a reconcile function has two parameters: its object and its context", &help);
        return None;
    };
    if argument_of(&cx.ty, "Context").is_none() {
        let help = format!("write `cx: Context<{name}>`");
        errors.push(&cx.ty, 7, "the second parameter must be the controller's `Context`", &help);
    }
    let kind = argument_of(&primary.ty, "Arc");
    if kind.is_none() {
        let inner = match &*primary.ty {
            Type::Reference(reference) => reference.elem.to_token_stream(),
            other => other.to_token_stream(),
        };
        let what = format!("the first parameter must be `Arc<{inner}>`: objects are shared with the cache");
        errors.push(&primary.ty, 8, &what, &format!("write `Arc<{inner}>`"));
    }
    kind
}

fn struct_form(item: &ItemStruct, of: Option<&Entry>, errors: &mut Errors) -> Option<Type> {
    if !item.generics.params.is_empty() {
        errors.push(&item.generics, 4, "a controller can't be generic", "name the types");
    }
    if let Some(Value::Kind(kind)) = of.and_then(|entry| entry.value.as_ref()) {
        return Some(kind.clone());
    }
    let what = "a struct does not say which kind it reconciles";
    errors.push(&item.ident, 9, what, "write `#[controller(of = Kind, …)]`");
    None
}

/// `T` of `Name<T>`.
fn argument_of(ty: &Type, name: &str) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(ty)) => Some(ty.clone()),
        _ => None,
    }
}

fn option(entry: &Entry, model: &mut Model, errors: &mut Errors) {
    let name = entry.name.to_string();
    match name.as_str() {
        "owns" | "watches" | "reads" => relation(entry, model, errors),
        "primary" => primary(entry, model, errors),
        "of" => {}
        "krate" => match &entry.value {
            Some(Value::Expr(path)) => model.krate = path.to_token_stream(),
            _ => errors.push(&entry.name, 10, "`crate` names a path", "write `crate = path`"),
        },
        "name" | "finalizer" => text(entry, &name, model, errors),
        "concurrency" | "retries" => number(entry, &name, model, errors),
        "resync" | "timeout" => {
            if let Some(duration) = entry_value(entry, errors).and_then(|value| duration(value, errors)) {
                let call = &entry.name;
                model.calls.push(quote!(.#call(#duration)));
            }
        }
        "backoff" => backoff(entry, model, errors),
        "namespaces" => {
            if let Some(value) = entry_value(entry, errors) {
                model.calls.push(quote!(.namespaces(#value)));
            }
        }
        "rbac" => {
            let rules = entry.arguments.iter().filter_map(|argument| match argument {
                Argument::Expr(rule) => Some(rule.to_token_stream()),
                Argument::Word(rule) => Some(rule.to_token_stream()),
                _ => None,
            });
            model.calls.push(quote!(.rbac([#(#rules),*])));
        }
        unknown => {
            let help = nearest(unknown, &OPTIONS).map_or_else(
                || format!("the options are {}", OPTIONS.join(", ")),
                |known| format!("did you mean `{known}`?"),
            );
            errors.push(&entry.name, 11, &format!("`#[controller]` has no option `{unknown}`"), &help);
        }
    }
}

fn entry_value<'a>(entry: &'a Entry, errors: &mut Errors) -> Option<&'a Expr> {
    if let Some(Value::Expr(value)) = &entry.value {
        return Some(value);
    }
    let name = &entry.name;
    errors.push(name, 10, &format!("`{name}` needs a value"), &format!("write `{name} = …`"));
    None
}

fn relation(entry: &Entry, model: &mut Model, errors: &mut Errors) {
    let name = entry.name.to_string();
    let Some(Value::Kind(kind)) = &entry.value else {
        errors.push(&entry.name, 12, &format!("`{name}` names a kind"), &format!("write `{name} = Kind`"));
        return;
    };
    let mut relation = Relation {
        role: entry.name.clone(),
        kind: kind.clone(),
        text: format!("{name} = {}", kind.to_token_stream()),
        verbs: Vec::new(),
        calls: Vec::new(),
    };
    let mut mapped = false;
    for argument in &entry.arguments {
        match argument {
            Argument::Word(word) if word == "live" && name == "reads" => relation.role = word.clone(),
            Argument::Nested(word, scope) if word == "live" && scope == "cluster" && name == "reads" => {
                relation.role = Ident::new("live_cluster", word.span());
            }
            Argument::Word(word) => verb(word, &mut relation.verbs, errors),
            Argument::Option(option, value) => {
                mapped |= option == "map";
                relation.calls.extend(relation_option(option, value, "", errors));
            }
            Argument::Nested(word, _) => {
                errors.push(word, 13, &format!("`{word}` takes no parentheses"), "write `live` or `live(cluster)`");
            }
            Argument::Expr(expr) => errors.push(expr, 13, "neither a verb nor an option", "write for example `create`"),
        }
    }
    if name == "watches" && !mapped {
        let help = format!(
            "write `watches = {}(map = f)` with a function that says which primaries an object concerns",
            kind.to_token_stream()
        );
        errors.push(kind, 14, "a watched kind needs a mapper: nothing else says whom a change concerns", &help);
    }
    if !relation.verbs.is_empty() {
        let verbs: Vec<_> = relation.verbs.iter().map(ToString::to_string).collect();
        relation.text += &format!("({})", verbs.join(", "));
        relation.calls.insert(0, quote!(.verbs(&[#(#verbs),*])));
    }
    model.relations.push(relation);
}

fn primary(entry: &Entry, model: &mut Model, errors: &mut Errors) {
    for argument in &entry.arguments {
        match argument {
            Argument::Word(word) => verb(word, &mut model.primary_verbs, errors),
            Argument::Option(option, value) => {
                model.calls.extend(relation_option(option, value, "primary_", errors));
            }
            Argument::Nested(word, _) => errors.push(word, 13, "not a verb", "write for example `patch`"),
            Argument::Expr(expr) => errors.push(expr, 13, "neither a verb nor an option", "write for example `patch`"),
        }
    }
    let verbs: Vec<_> = model.primary_verbs.iter().map(ToString::to_string).collect();
    model.calls.push(quote!(.primary(&[#(#verbs),*])));
}

fn verb(word: &Ident, verbs: &mut Vec<Ident>, errors: &mut Errors) {
    let text = word.to_string();
    if VERBS.contains(&text.as_str()) {
        verbs.push(word.clone());
        return;
    }
    let help = nearest(&text, &VERBS)
        .map_or_else(|| format!("the verbs are {}", VERBS.join(", ")), |known| format!("did you mean `{known}`?"));
    errors.push(word, 15, &format!("`{text}` is not a verb"), &help);
}

fn relation_option(option: &Ident, value: &Expr, prefix: &str, errors: &mut Errors) -> Option<TokenStream> {
    let text = option.to_string();
    if !RELATION_OPTIONS.contains(&text.as_str()) {
        let help = nearest(&text, &RELATION_OPTIONS).map_or_else(
            || format!("the options are {}", RELATION_OPTIONS.join(", ")),
            |known| format!("did you mean `{known}`?"),
        );
        errors.push(option, 16, &format!("a relation has no option `{text}`"), &help);
        return None;
    }
    let call = Ident::new(&format!("{prefix}{text}"), option.span());
    let path = value.to_token_stream().to_string();
    Some(if text == "index" { quote!(.#call(#value, #path)) } else { quote!(.#call(#value)) })
}

fn text(entry: &Entry, name: &str, model: &mut Model, errors: &mut Errors) {
    let Some(value) = entry_value(entry, errors) else { return };
    if let Expr::Lit(literal) = value
        && let Lit::Str(text) = &literal.lit
        && name == "finalizer"
        && !text.value().split_once('/').is_some_and(|(domain, rest)| domain.contains('.') && !rest.is_empty())
    {
        let what = format!("the finalizer `{}` has no domain", text.value());
        errors.push(text, 17, &what, "write `finalizer = \"example.com/name\"`");
        return;
    }
    if name == "finalizer" {
        model.finalizer = true;
        model.calls.push(quote!(.finalizer(#value)));
    } else {
        model.calls.push(quote!(.named(#value)));
    }
}

fn number(entry: &Entry, name: &str, model: &mut Model, errors: &mut Errors) {
    let Some(value) = entry_value(entry, errors) else { return };
    if let Expr::Lit(literal) = value {
        match &literal.lit {
            Lit::Int(number) if name == "concurrency" && number.base10_digits() == "0" => {
                errors.push(
                    number,
                    18,
                    "`concurrency` is at least 1: nothing would be reconciled",
                    "write `concurrency = 1`",
                );
            }
            Lit::Int(_) => {}
            other => errors.push(other, 18, &format!("`{name}` is a number"), &format!("write `{name} = 4`")),
        }
    }
    let call = &entry.name;
    model.calls.push(quote!(.#call(#value)));
}

fn backoff(entry: &Entry, model: &mut Model, errors: &mut Errors) {
    let (mut base, mut max) = (None, quote!(__p::Duration::from_secs(1000)));
    for argument in &entry.arguments {
        match argument {
            Argument::Expr(expr) => base = duration(expr, errors),
            Argument::Option(name, value) if name == "max" => max = duration(value, errors).unwrap_or(max),
            Argument::Option(name, _) | Argument::Word(name) | Argument::Nested(name, _) => {
                errors.push(name, 19, "not an option of `backoff`", "write `backoff(\"5ms\", max = \"1000s\")`");
            }
        }
    }
    match base {
        Some(base) => model.calls.push(quote!(.backoff(#base, #max))),
        None if errors.0.is_none() => {
            errors.push(&entry.name, 19, "`backoff` needs its first wait", "write `backoff(\"5ms\", max = \"1000s\")`");
        }
        None => {}
    }
}

/// A literal like `"1m30s"` as a number of milliseconds; any other expression is a `Duration` as it stands.
fn duration(value: &Expr, errors: &mut Errors) -> Option<TokenStream> {
    let Expr::Lit(literal) = value else { return Some(value.to_token_stream()) };
    let Lit::Str(text) = &literal.lit else {
        errors.push(value, 20, "a duration is a text with units", "write for example `\"30s\"`");
        return None;
    };
    if let Some(millis) = milliseconds(&text.value()) {
        return Some(quote!(__p::Duration::from_millis(#millis)));
    }
    errors.push(
        text,
        20,
        &format!("`{}` is not a duration", text.value()),
        "write for example `\"500ms\"`, `\"30s\"`, `\"1h30m\"`",
    );
    None
}

fn milliseconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|character: char| character.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = &rest[end..];
    }
    (!text.is_empty()).then_some(total)
}

fn kinds_are_named_once(model: &Model, errors: &mut Errors) {
    let mut seen: Vec<String> = Vec::new();
    for relation in &model.relations {
        let kind = relation.kind.to_token_stream().to_string();
        if seen.contains(&kind) {
            let what = format!("`{kind}` is declared twice");
            errors.push(&relation.kind, 21, &what, "name it once: `owns = K(map = f)` has both triggers");
        }
        seen.push(kind);
    }
}

fn options_are_named_once(options: &[Entry], errors: &mut Errors) {
    let single = |name: &Ident| !["owns", "watches", "reads"].iter().any(|many| name == many);
    for (index, entry) in options.iter().enumerate().filter(|(_, entry)| single(&entry.name)) {
        if options[..index].iter().any(|before| before.name == entry.name) {
            errors.push(&entry.name, 22, &format!("`{}` is given twice", entry.name), "remove one of them");
        }
    }
}

fn finalizer_needs_the_struct_form(model: &Model, options: &[Entry], errors: &mut Errors) {
    let entry = options.iter().find(|entry| entry.name == "finalizer");
    if let Some(entry) = entry.filter(|_| model.form == Form::Function) {
        let help =
            "write `#[controller(of = Kind, finalizer = …)] struct Name;` with `impl Reconcile` and `impl Finalize`";
        errors.push(&entry.name, 23, "a function can't clean up: a finalizer needs `impl Finalize`", help);
    }
}

/// The known word that is one or two keystrokes away.
fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let close = known.iter().map(|candidate| (distance(word, candidate), *candidate)).min()?;
    (close.0 <= 2).then_some(close.1)
}

/// Levenshtein.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
