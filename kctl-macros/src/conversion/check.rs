//! The function → `ConversionFn`: each rule is a function; all mistakes are reported at once.
//!
//! | code | mistake |
//! |---|---|
//! | K0010 | the value of `crate` is not a path |
//! | K0107 | the function is generic |
//! | K0111 | the attribute has another option, or is not on a free function |
//! | K0112 | not one parameter by value, or no other version as the result |
//!
//! That both types are versions of one kind is checked when the app starts, because only the runtime knows groups and
//! kinds.

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Error, FnArg, Path, Result, Token, Type,
    parse::{ParseStream, Parser},
};

use super::ATTRIBUTE;
use crate::{
    codes,
    crate_path::CratePath,
    diagnostics::Errors,
    function::{Function, Head, compact_text, generic_argument, is_result, return_type},
};

/// A valid conversion function.
pub(super) struct ConversionFn {
    /// The function without its parameters.
    pub(super) head: Head,
    /// The path of the framework.
    pub(super) krate: CratePath,
    /// The version that the function takes.
    pub(super) from: Type,
    /// The version that it returns, without the `Result`.
    pub(super) to: Type,
    /// `true` if the function returns a `Result`, as far as its signature shows.
    pub(super) is_fallible: bool,
}

/// Reads `crate = path`, the only option. Reports K0010 for another value, and K0111 for another option.
pub(super) fn krate(options: TokenStream, errors: &mut Errors) -> CratePath {
    let first = options.clone().into_iter().next();
    let is_crate = matches!(&first, Some(TokenTree::Ident(word)) if word == "crate");
    let path = |input: ParseStream<'_>| {
        if input.is_empty() {
            return Ok(CratePath::default());
        }
        input.parse::<Token![crate]>()?;
        input.parse::<Token![=]>()?;
        Ok(CratePath::from(input.parse::<Path>()?))
    };
    path.parse2(options).unwrap_or_else(|error: Error| {
        let at = error.span();
        if is_crate {
            errors.push_at(at, codes::MISSING_VALUE, "`crate` must be a path", "write `crate = path`");
        } else {
            let what = "`#[conversion]` has no option but `crate`: the versions are those in the function's head";
            errors.push_at(at, codes::NOT_ON_A_CONVERSION, what, "write `#[conversion]`");
        }
        CratePath::default()
    })
}

/// Checks the attribute and the function. Without a free function there is nothing that could be checked further.
pub(super) fn check(options: TokenStream, function: Option<&Function>, item: &TokenStream) -> Result<ConversionFn> {
    let mut errors = Errors::default();
    let krate = krate(options, &mut errors);
    let function = ATTRIBUTE.check_function(function, item, &mut errors)?;
    let from = check_parameter(function, &mut errors);
    let to = check_return_type(function, from, &mut errors);
    let nothing: Type = syn::parse_quote!(());
    errors.into_result(ConversionFn {
        head: function.head(),
        krate,
        from: from.unwrap_or(&nothing).clone(),
        to: to.unwrap_or(&nothing).clone(),
        is_fallible: is_result(&function.sig.output),
    })
}

/// Returns the type of the parameter. The object is taken by value, because a conversion moves its fields into the
/// other version.
fn check_parameter<'a>(function: &'a Function, errors: &mut Errors) -> Option<&'a Type> {
    let sig = &function.sig;
    let help = format!("write `fn {}(old: v1alpha1::Kind) -> Result<v1::Kind>`", sig.ident);
    let (Some(FnArg::Typed(typed)), 1) = (sig.inputs.first(), sig.inputs.len()) else {
        errors.push(&sig.ident, codes::CONVERSION_SIGNATURE, "a conversion takes the object, and nothing else", &help);
        return None;
    };
    let only = &*typed.ty;
    if let Type::Reference(reference) = only {
        let help = format!("write `{}`", compact_text(&reference.elem));
        errors.push(only, codes::CONVERSION_SIGNATURE, "a conversion takes the object by value", &help);
        return None;
    }
    Some(only)
}

/// Returns the version that the function returns, with or without a `Result` around it. A function that returns its
/// own input type is rejected here; two aliases of one type are found when the app starts.
fn check_return_type<'a>(function: &'a Function, from: Option<&Type>, errors: &mut Errors) -> Option<&'a Type> {
    let sig = &function.sig;
    let to = return_type(&sig.output).map(|ty| generic_argument(ty, "Result").unwrap_or(ty));
    let is_nothing = |ty: &Type| matches!(ty, Type::Tuple(tuple) if tuple.elems.is_empty());
    let shown = from.map_or_else(|| "v1alpha1::Kind".to_owned(), compact_text);
    let help = format!("write `fn {}(old: {shown}) -> Result<v1::Kind>`", sig.ident);
    match to {
        Some(to) if is_nothing(to) => {
            errors.push(to, codes::CONVERSION_SIGNATURE, "a conversion returns the object in the other version", &help);
        }
        None => errors.push(
            &sig.ident,
            codes::CONVERSION_SIGNATURE,
            "a conversion returns the object in the other version",
            &help,
        ),
        Some(to) if from.is_some_and(|from| compact_text(from) == compact_text(to)) => {
            errors.push(
                to,
                codes::CONVERSION_SIGNATURE,
                "a conversion is between two versions: these are the same",
                &help,
            );
        }
        Some(to) => return Some(to),
    }
    None
}
