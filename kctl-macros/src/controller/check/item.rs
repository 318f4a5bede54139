//! The item below `#[controller]`: the signature of a reconcile function, or a struct with `of = Kind`.
//!
//! | code | mistake |
//! |---|---|
//! | K0001 | a method, or an `unsafe` function |
//! | K0002, K0009 | `of` on a function; none on a struct, or one that is not a type |
//! | K0003, K0004, K0005 | not `async`, generic, without a result |
//! | K0006, K0007, K0008 | the parameters, their order and their types |
//! | K0030 | a spec or an `Arc` in place of the kind |
//!
//! rustc checks the types behind the names: that the kind is a Kubernetes kind, and that the result is a `Result<Action>`.

use quote::ToTokens;
use syn::{FnArg, Ident, ItemStruct, ReturnType, Type, spanned::Spanned};

use super::{
    super::{
        model::Signature,
        parse::{Entry, Value},
    },
    relation::{kinds_in_list, report_pointer},
    spellings::last_segment,
};
use crate::{
    codes,
    diagnostics::Errors,
    function::{Function, compact_text, generic_argument, strip_any_pointer, strip_pointers},
    source_file,
};

/// Returns the spans of the context and the result. `None` for a function that lacks either: such a function gets no model
/// to use them.
pub(super) fn signature(function: &Function) -> Option<Signature> {
    let (Some(FnArg::Typed(cx)), ReturnType::Type(_, result)) =
        (function.sig.inputs.iter().nth(1), &function.sig.output)
    else {
        return None;
    };
    Some(Signature { context: cx.ty.span(), result: result.span() })
}

/// Checks the signature of a reconcile function, and returns its kind. `None` if the first parameter is not an `Arc`
/// of a kind.
pub(super) fn function_form(function: &Function, of: Option<&Entry>, errors: &mut Errors) -> Option<Type> {
    if let Some(of) = of {
        errors.push(
            &of.name,
            codes::OF_ON_A_FUNCTION,
            "the kind of a function is the type of its first parameter",
            "remove `of = …`",
        );
    }
    check_head(function, errors);
    let (primary, context) = parameters(function, errors)?;
    check_context(&function.sig.ident, context, errors);
    let kind = generic_argument(primary, "Arc");
    if kind.is_none() {
        let written = strip_any_pointer(primary);
        let inner = compact_text(kind_of_alias(written).as_ref().unwrap_or(written));
        let what = format!("the first parameter must be `Arc<{inner}>`: objects are shared with the cache");
        errors.push(primary, codes::NOT_AN_ARC, &what, &format!("write `Arc<{inner}>`"));
    }
    kind.inspect(|kind| report_spec_as_kind(kind, errors)).cloned()
}

/// Reports a function that is not `async`, is `unsafe` or generic, or returns nothing.
fn check_head(function: &Function, errors: &mut Errors) {
    let signature = &function.sig;
    let name = &signature.ident;
    if signature.asyncness.is_none() {
        let help = format!("write `async fn {name}`");
        errors.push(signature.fn_token, codes::NOT_ASYNC, "a reconcile function must be `async`", &help);
    }
    function.check_safe("#[controller]", codes::NOT_ON_A_CONTROLLER, errors);
    if let Some(generic) = function.generic_part() {
        let help = "name the kind, and move shared code into a generic helper function";
        errors.push(
            generic,
            codes::GENERIC_CONTROLLER_OR_KIND,
            "a reconcile function can't be generic: it is one controller of one kind",
            help,
        );
    }
    if matches!(signature.output, ReturnType::Default) {
        let help = "write `-> Result<Action>` and end with `Ok(Action::await_change())`";
        errors.push(name, codes::NOT_A_RESULT_OF_ACTION, "a reconcile function returns `Result<Action>`", help);
    }
}

/// Returns the types of the object and of the context. Reports a method, another number of parameters, and the reverse
/// order.
fn parameters<'a>(function: &'a Function, errors: &mut Errors) -> Option<(&'a Type, &'a Type)> {
    let name = &function.sig.ident;
    let inputs: Vec<_> = function.sig.inputs.iter().collect();
    if function.is_method() {
        let help = "move the function out of the `impl`; for state, put `#[controller(of = Kind)]` on the struct and write `impl Reconcile`";
        let what = "`#[controller]` must be applied to a function, not to a method";
        errors.push(function.receiver_or_name(), codes::NOT_ON_A_CONTROLLER, what, help);
        return None;
    }
    let [FnArg::Typed(primary), FnArg::Typed(context)] = inputs.as_slice() else {
        let help = format!("write `async fn {name}(object: Arc<Kind>, cx: Context<{name}>) -> Result<Action>`");
        errors.push(
            name,
            codes::NOT_TWO_PARAMETERS,
            "a reconcile function has two parameters: its object and its context",
            &help,
        );
        return None;
    };
    if generic_argument(&primary.ty, "Context").is_some() && generic_argument(&context.ty, "Context").is_none() {
        let kind = compact_text(strip_pointers(&context.ty));
        let help = format!("write `async fn {name}(object: Arc<{kind}>, cx: Context<{name}>) -> Result<Action>`");
        errors.push(&primary.ty, codes::NOT_TWO_PARAMETERS, "the object comes first, then the context", &help);
        return None;
    }
    Some((&primary.ty, &context.ty))
}

/// Reports a second parameter that is not the `Context` of this function.
fn check_context(name: &Ident, context: &Type, errors: &mut Errors) {
    let help = format!("write `cx: Context<{name}>`");
    match generic_argument(context, "Context") {
        Some(Type::Path(of)) if of.path.get_ident().is_some_and(|of| of != name) => {
            errors.push(of, codes::NOT_A_CONTEXT, &format!("the context of `{name}` is `Context<{name}>`"), &help);
        }
        Some(_) => {}
        // rustc reports the missing argument of `Context`, and an alias with a different one.
        None if has_no_arguments(context, "Context") || is_alias_of_context(context) => {}
        None => {
            errors.push(
                context,
                codes::NOT_A_CONTEXT,
                "the second parameter must be the controller's `Context`",
                &help,
            );
        }
    }
}

/// Reports K0030 for a spec in place of its kind. `#[resource]` is on the spec, and the kind appears nowhere in the
/// source, so people name what they wrote.
fn report_spec_as_kind(kind: &Type, errors: &mut Errors) {
    if let Some((spec, kind)) = kind_of_spec(kind) {
        let what = format!("`{spec}` is not a Kubernetes kind: it is the spec of `{kind}`");
        errors.push(spec, codes::NOT_A_KIND, &what, &format!("write `{kind}`"));
    }
}

/// Returns a spec with the kind that it belongs to, if the file defines it.
pub(in crate::controller) fn kind_of_spec(ty: &Type) -> Option<(&Ident, Ident)> {
    let Type::Path(path) = ty else { return None };
    let spec = path.path.get_ident().filter(|name| name.to_string().ends_with("Spec"))?;
    let kind = source_file::kind_of_spec(&source_file::read()?, spec)?;
    // `kind_of_spec` returns names that `Ident::new` accepts.
    Some((spec, Ident::new(&kind, spec.span())))
}

/// Returns the kind of an alias in the same file: `Web` for `Shared` of `type Shared = Arc<Web>`. Generated code needs the
/// kind, which an alias of its `Arc` hides.
pub(in crate::controller) fn kind_of_alias(ty: &Type) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let alias = source_file::unique_alias(&source_file::read()?, path.path.get_ident()?)?;
    generic_argument(&alias, "Arc").cloned()
}

/// Returns `true` for `Cx` of `type Cx = Context<sites>` in the same file.
fn is_alias_of_context(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    let Some((text, name)) = source_file::read().zip(path.path.get_ident()) else { return false };
    let alias = source_file::unique_alias(&text, name);
    alias.is_some_and(|alias| generic_argument(&alias, "Context").is_some())
}

/// Options that name the kind of a struct. All but the first are mistakes, which have their own errors.
const KIND_OPTIONS: [&str; 5] = ["of", "for", "kind", "resource", "primary"];

/// Returns the kind that the options of a struct name, also if it is written in a wrong form: `of = "Kind"`, `kind = Kind`.
pub(in crate::controller) fn kind_of_struct(options: &[Entry]) -> Option<Type> {
    let named = KIND_OPTIONS.iter().filter_map(|option| options.iter().find(|entry| entry.name == option));
    named.filter_map(|entry| entry.value.as_ref()).find_map(|value| match value {
        Value::Kind(kind) => Some(strip_pointers(kind).clone()),
        Value::Expr(value) => {
            let kind = syn::parse_str::<Type>(kinds_in_list(value).first()?).ok()?;
            // `primary = patch` names a verb.
            last_segment(&kind)?.to_string().starts_with(char::is_uppercase).then_some(kind)
        }
    })
}

/// Checks a controller struct, and returns the kind of `of`.
pub(super) fn struct_form(item: &ItemStruct, options: &[Entry], errors: &mut Errors) -> Option<Type> {
    if !item.generics.params.is_empty() {
        let what = "a controller can't be generic: it is one type with one role";
        errors.push(&item.generics, codes::GENERIC_CONTROLLER_OR_KIND, what, &trait_object_help(item));
    }
    let of = options.iter().find(|entry| entry.name == "of");
    match of.and_then(|entry| Some((&entry.name, entry.value.as_ref()?))) {
        Some((of, Value::Kind(kind))) => {
            if !report_pointer(of, kind, errors) {
                report_spec_as_kind(kind, errors);
            }
            return Some(strip_pointers(kind).clone());
        }
        Some((_, Value::Expr(value))) => {
            let kinds = kinds_in_list(value);
            let kind = kinds.first().filter(|_| kinds.len() == 1).map_or("Kind", |kind| kind.as_str());
            errors.push(value, codes::MISSING_OF, "`of` names a kind", &format!("write `of = {kind}`"));
        }
        // `kind = Kind` and `primary = Kind` have their own errors.
        None if kind_of_struct(options).is_some() => {}
        None => {
            let what = "a controller struct needs `of = Kind`";
            errors.push(&item.ident, codes::MISSING_OF, what, "write `#[controller(of = Kind, …)]`");
        }
    }
    None
}

/// Returns the help for a generic struct: a field with a trait object of the first bound of its type parameter, or a
/// concrete type. A controller is one type, because its role and its name are static.
fn trait_object_help(item: &ItemStruct) -> String {
    let name = &item.ident;
    let Some(parameter) = item.generics.type_params().next() else {
        return format!("write `struct {name}`, with owned fields in the place of borrowed ones");
    };
    let is_auto = |path: &syn::Path| ["Send", "Sync", "Sized", "Unpin"].iter().any(|auto| path.is_ident(auto));
    let mut bounds = parameter.bounds.iter().chain(item.generics.where_clause.iter().flat_map(|clause| {
        clause
            .predicates
            .iter()
            .filter_map(|predicate| match predicate {
                syn::WherePredicate::Type(of) if parameter.ident == compact_text(&of.bounded_ty) => Some(&of.bounds),
                _ => None,
            })
            .flatten()
    }));
    let bound = bounds.find_map(|bound| match bound {
        syn::TypeParamBound::Trait(bound) if !is_auto(&bound.path) => Some(bound.path.to_token_stream().to_string()),
        _ => None,
    });
    let parameter = &parameter.ident;
    match bound {
        Some(bound) => format!(
            "write `struct {name}` with a field of the type `Arc<dyn {bound} + Send + Sync>` in the place of `{parameter}`"
        ),
        None => format!("write `struct {name}`, with a type in the place of `{parameter}`"),
    }
}

/// Returns `true` for a type that has this name and no arguments. rustc reports `Context` without its argument better
/// than a macro could.
fn has_no_arguments(ty: &Type, name: &str) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == name && last.arguments.is_empty())
}
