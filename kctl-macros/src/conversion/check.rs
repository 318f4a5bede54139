//! The function → `Model`: the rules, each a function of its name; all mistakes are reported at once.

use proc_macro2::{Span, TokenStream};
use syn::{
    Attribute, Error, FnArg, Ident, Path, Result, Token, Type, Visibility,
    parse::{ParseStream, Parser},
    spanned::Spanned,
};

use crate::{
    codes,
    crate_path::CratePath,
    diagnostics::Errors,
    function::{Function, argument_of, first_word, is_result, returned, text_of},
};

/// A conversion that is right.
pub(super) struct Model {
    pub(super) name: Ident,
    pub(super) vis: Visibility,
    pub(super) docs: Vec<Attribute>,
    pub(super) krate: CratePath,
    pub(super) from: Type,
    pub(super) to: Type,
    pub(super) is_async: bool,
    pub(super) is_fallible: bool,
    /// Where the type of the result stands: mistakes in it are shown there.
    pub(super) result: Span,
}

/// `crate = path`, the only option.
pub(super) fn krate(options: TokenStream) -> Result<CratePath> {
    let path = |input: ParseStream<'_>| {
        if input.is_empty() {
            return Ok(CratePath::default());
        }
        input.parse::<Token![crate]>()?;
        input.parse::<Token![=]>()?;
        Ok(CratePath::from(input.parse::<Path>()?))
    };
    path.parse2(options)
}

pub(super) fn check(krate: Result<CratePath>, function: Option<&Function>, item: &TokenStream) -> Result<Model> {
    let mut errors = Errors::default();
    let krate = krate.unwrap_or_else(|error| {
        let what = "`#[conversion]` has no options: the versions are those in the function's head";
        errors.push_at(error.span(), codes::NOT_ON_A_CONVERSION, what, "write `#[conversion]`");
        CratePath::default()
    });
    let Some(function) = function else {
        let help = "put it on `fn name(old: v1alpha1::Kind) -> Result<v1::Kind>`";
        errors.push(first_word(item), codes::NOT_ON_A_CONVERSION, "`#[conversion]` goes on a function", help);
        return errors.into_result(()).and(Err(Error::new(Span::call_site(), "not a function")));
    };
    if !function.is_free("#[conversion]", codes::NOT_ON_A_CONVERSION, &mut errors) {
        return errors.into_result(()).and(Err(Error::new(Span::call_site(), "a method")));
    }
    let sig = &function.sig;
    if !sig.generics.params.is_empty() {
        errors.push(
            &sig.generics,
            codes::GENERIC_FUNCTION,
            "a conversion can't be generic: it is between two versions",
            "name both",
        );
    }
    let from = it_takes_the_object(function, &mut errors);
    let to = it_returns_another_version(function, from, &mut errors);
    let nothing: Type = syn::parse_quote!(());
    errors.into_result(Model {
        name: sig.ident.clone(),
        vis: function.vis.clone(),
        docs: function.docs(),
        krate,
        from: from.unwrap_or(&nothing).clone(),
        to: to.unwrap_or(&nothing).clone(),
        is_async: sig.asyncness.is_some(),
        is_fallible: is_result(&sig.output),
        result: returned(&sig.output).map_or_else(|| sig.ident.span(), Spanned::span),
    })
}

fn it_takes_the_object<'a>(function: &'a Function, errors: &mut Errors) -> Option<&'a Type> {
    let sig = &function.sig;
    let help = format!("write `fn {}(old: v1alpha1::Kind) -> Result<v1::Kind>`", sig.ident);
    let (Some(FnArg::Typed(typed)), 1) = (sig.inputs.first(), sig.inputs.len()) else {
        errors.push(&sig.ident, codes::CONVERSION_SIGNATURE, "a conversion takes the object, and nothing else", &help);
        return None;
    };
    let only = &*typed.ty;
    if let Type::Reference(reference) = only {
        let help = format!("write `{}`", text_of(&reference.elem));
        errors.push(only, codes::CONVERSION_SIGNATURE, "a conversion takes the object by value", &help);
        return None;
    }
    Some(only)
}

fn it_returns_another_version<'a>(
    function: &'a Function,
    from: Option<&Type>,
    errors: &mut Errors,
) -> Option<&'a Type> {
    let sig = &function.sig;
    let to = returned(&sig.output).map(|ty| argument_of(ty, "Result").unwrap_or(ty));
    let is_nothing = |ty: &Type| matches!(ty, Type::Tuple(tuple) if tuple.elems.is_empty());
    let shown = from.map_or_else(|| "v1alpha1::Kind".to_owned(), text_of);
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
        Some(to) if from.is_some_and(|from| text_of(from) == text_of(to)) => {
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
