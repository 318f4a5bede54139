//! `Input` → `Model`: the rules, each a function of its name; all mistakes are reported at once.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Error, Expr, FnArg, GenericArgument, Ident, ItemStruct, PathArguments, ReturnType, Type, spanned::Spanned};

use super::{
    parse::{Annotated, Argument, Entry, Function, Input, Value},
    relation::{primary, relation},
    values::{backoff, duration, entry_value, namespaces, number, text},
};
use crate::mistake::{Errors, nearest};

/// A declaration that is right.
pub(super) struct Model {
    pub(super) form: Form,
    pub(super) name: Ident,
    pub(super) vis: syn::Visibility,
    pub(super) docs: Vec<syn::Attribute>,
    pub(super) krate: TokenStream,
    pub(super) primary: Type,
    pub(super) primary_verbs: Vec<Ident>,
    /// `primary(read_only)`.
    pub(super) read_only: bool,
    /// Calls on the builder, in order.
    pub(super) calls: Vec<TokenStream>,
    pub(super) relations: Vec<Relation>,
    /// The word `finalizer`, where one is declared.
    pub(super) finalizer: Option<Ident>,
    /// The types of a function's context and result: mistakes in them are shown there.
    pub(super) signature: Option<(Span, Span)>,
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
pub(super) fn check(input: &Input) -> syn::Result<Model> {
    let mut errors = Errors::default();
    for mistake in &input.mistakes {
        errors.syntax(mistake, "options are written `name = value`, `name(…)` or `name = Kind(verb, option = value)`");
    }
    let of = input.options.iter().find(|entry| entry.name == "of");
    let item = match &input.item {
        Annotated::Function(function) => function_form(function, of, &mut errors),
        Annotated::Struct(item) => struct_form(item, of, &mut errors),
        Annotated::Other(tokens) => {
            let help =
                "put it on `async fn name(object: Arc<Kind>, cx: Context<name>) -> Result<Action>` or on a struct";
            let word = keyword(tokens);
            errors.push(word, 1, "`#[controller]` goes on a function or a struct", help);
            None
        }
    };
    let (form, name) = match &input.item {
        Annotated::Struct(item) => (Form::Struct, item.ident.clone()),
        Annotated::Function(function) => (Form::Function, function.sig.ident.clone()),
        Annotated::Other(_) => (Form::Function, Ident::new("controller", Span::call_site())),
    };
    let (vis, docs, signature) = match &input.item {
        Annotated::Function(function) => (function.vis.clone(), docs(&function.attrs), spans(function)),
        _ => (syn::Visibility::Inherited, Vec::new(), None),
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
        read_only: false,
        calls: Vec::new(),
        relations: Vec::new(),
        finalizer: None,
        signature,
    };
    for entry in &input.options {
        option(entry, &mut model, &mut errors);
    }
    kinds_are_named_once(&model, &mut errors);
    options_are_named_once(&input.options, &mut errors);
    finalizer_needs_the_struct_form(&model, &input.options, &mut errors);
    errors.into_result(model)
}

fn docs(attributes: &[syn::Attribute]) -> Vec<syn::Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect()
}

/// The word that says what an item is.
fn keyword(item: &TokenStream) -> Option<Ident> {
    item.clone().into_iter().find_map(|token| match token {
        TokenTree::Ident(word) if word != "pub" => Some(word),
        _ => None,
    })
}

/// Where the types of the context and of the result stand.
fn spans(function: &Function) -> Option<(Span, Span)> {
    let (Some(FnArg::Typed(cx)), ReturnType::Type(_, result)) =
        (function.sig.inputs.iter().nth(1), &function.sig.output)
    else {
        return None;
    };
    Some((cx.ty.span(), result.span()))
}

fn function_form(function: &Function, of: Option<&Entry>, errors: &mut Errors) -> Option<Type> {
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
    let help = format!("write `cx: Context<{name}>`");
    match argument_of(&cx.ty, "Context") {
        Some(Type::Path(of)) if of.path.get_ident().is_some_and(|of| of != name) => {
            errors.push(of, 7, &format!("the context of `{name}` is `Context<{name}>`"), &help);
        }
        Some(_) => {}
        // The compiler says better what `Context` alone lacks.
        None if is_bare(&cx.ty, "Context") => {}
        None => errors.push(&cx.ty, 7, "the second parameter must be the controller's `Context`", &help),
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
pub(super) fn argument_of(ty: &Type, name: &str) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(ty)) => Some(ty.clone()),
        _ => None,
    }
}

/// Whether a type is the name without its arguments.
fn is_bare(ty: &Type, name: &str) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == name && last.arguments.is_empty())
}

fn option(entry: &Entry, model: &mut Model, errors: &mut Errors) {
    let name = entry.name.to_string();
    match name.as_str() {
        "owns" | "watches" | "reads" => relation(entry, model, errors),
        "primary" => primary(entry, model, errors),
        "of" => no_parentheses(entry, "write `primary(…)` for what may be done with it", errors),
        "krate" => match &entry.value {
            Some(Value::Expr(Expr::Path(path))) => model.krate = path.to_token_stream(),
            Some(Value::Expr(other)) => errors.push(other, 10, "`crate` names a path", "write `crate = path`"),
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
        "namespaces" => namespaces(entry, model, errors),
        "rbac" if entry.value.is_some() => {
            errors.push(&entry.name, 25, "`rbac` takes its rules in parentheses", "write `rbac(rule, …)`");
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

/// The option has no parentheses: what stands there would be lost.
pub(super) fn no_parentheses(entry: &Entry, help: &str, errors: &mut Errors) {
    if let Some(parentheses) = &entry.parentheses {
        let what = format!("`{}` takes no parentheses", entry.name);
        errors.add(Error::new(parentheses.span.join(), format!("{what}\nhelp: {help}\ncode: K0025")));
    }
}

fn kinds_are_named_once(model: &Model, errors: &mut Errors) {
    let text = |kind: &Type| kind.to_token_stream().to_string();
    let mut seen: Vec<String> = Vec::new();
    for relation in &model.relations {
        let kind = text(&relation.kind);
        if kind == text(&model.primary) {
            let what = format!("`{kind}` is the primary: it is cached and triggers already");
            errors.push(&relation.kind, 21, &what, "remove it, or write `primary(…)` for what may be done with it");
        } else if seen.contains(&kind) {
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
