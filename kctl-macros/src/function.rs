//! Functions as attributes see them: the head, and how its types are written.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Attribute, FnArg, GenericArgument, Ident, PathArguments, Result, ReturnType, Signature, Type, Visibility,
    parse::{Parse, ParseStream},
};

use crate::{codes::Code, diagnostics::Errors};

/// A function. Its body is not parsed: a function that is half typed still has a name.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let function = Self { attrs: input.call(Attribute::parse_outer)?, vis: input.parse()?, sig: input.parse()? };
        let _body = input.parse::<TokenStream>()?;
        Ok(function)
    }
}

impl Function {
    /// Whether it is a free one. An attribute can put nothing beside a method.
    pub(crate) fn is_free(&self, attribute: &str, code: Code, errors: &mut Errors) -> bool {
        let Some(FnArg::Receiver(receiver)) = self.sig.inputs.first() else { return true };
        let what = format!("`{attribute}` goes on a function, not on a method");
        errors.push(receiver, code, &what, "move the function out of the `impl`");
        false
    }

    pub(crate) fn docs(&self) -> Vec<Attribute> {
        self.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect()
    }
}

/// The first word of an item that says what it is.
pub(crate) fn first_word(item: &TokenStream) -> Option<Ident> {
    item.clone().into_iter().find_map(|token| match token {
        TokenTree::Ident(word) if word != "pub" => Some(word),
        _ => None,
    })
}

/// The kind, as the user may have meant it: behind a reference, or in an `Arc`.
pub(crate) fn referenced(ty: &Type) -> &Type {
    match ty {
        Type::Reference(reference) => referenced(&reference.elem),
        _ => argument_of(ty, "Arc").map_or(ty, referenced),
    }
}

/// `T` of `Name<T>`.
pub(crate) fn argument_of<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}

pub(crate) fn text_of(ty: &Type) -> String {
    ty.to_token_stream().to_string().replace(' ', "")
}

/// The last word of a path, for a type that is not looked into.
pub(crate) fn returned(output: &ReturnType) -> Option<&Type> {
    match output {
        ReturnType::Type(_, ty) => Some(ty),
        ReturnType::Default => None,
    }
}

pub(crate) fn is_result(output: &ReturnType) -> bool {
    let Some(Type::Path(path)) = returned(output) else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Result")
}

/// As the user wrote it, nearly: tokens know nothing of spaces. Those within texts are part of them.
pub(crate) fn written(tokens: &TokenStream) -> String {
    let words = tokens.clone().into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let (open, close) = match group.delimiter() {
                Delimiter::Parenthesis => ("(", ")"),
                Delimiter::Brace => ("{", "}"),
                Delimiter::Bracket => ("[", "]"),
                Delimiter::None => ("", ""),
            };
            format!("{open}{}{close}", written(&group.stream()))
        }
        TokenTree::Punct(punct) if punct.as_char() == ',' => ", ".to_owned(),
        other => other.to_string(),
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::written;

    #[test]
    fn rules_are_told_as_they_were_written() {
        let check = |tokens, text: &str| assert_eq!(written(&tokens), text);
        check(quote!(rules::of("a b, c", &["x  y"], 1)), r#"rules::of("a b, c", &["x  y"], 1)"#);
        check(quote!(rule()), "rule()");
        check(quote!(RULE), "RULE");
    }
}
