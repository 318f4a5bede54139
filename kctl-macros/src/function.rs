//! Functions below an attribute: the signature, and types as text.
//!
//! Macros can't resolve types. `Arc<Pod>`, `std::sync::Arc<v1::Pod>` and an alias of either are one type to rustc and
//! three to a macro. So helpers here compare the last segment of a path. Callers use them only to word a help, or to
//! reject what can't be right under any import.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::{
    Attribute, FnArg, GenericArgument, GenericParam, Ident, PathArguments, Result, ReturnType, Safety, Signature, Type,
    TypeGroup, TypeParen, Visibility,
    ext::IdentExt,
    parse::{Parse, ParseStream},
    spanned::Spanned,
};

use crate::{codes::Code, diagnostics::Errors, source_file};

/// A function without its body. The body is not parsed, because a function that is half typed still has a name and a
/// signature. The compiler parses it anyway.
#[derive(Clone)]
pub(crate) struct Function {
    /// Attributes below the one that is expanded.
    pub(crate) attrs: Vec<Attribute>,
    /// The visibility, which the type of the function's name gets, too.
    pub(crate) vis: Visibility,
    /// The signature with generics and `where` clause.
    pub(crate) sig: Signature,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (attrs, vis) = (input.call(Attribute::parse_outer)?, input.parse()?);
        let mut function = Self { attrs, vis, sig: input.parse()? };
        function.remove_groups();
        let _body = input.parse::<TokenStream>()?;
        Ok(function)
    }
}

impl Function {
    /// Removes the groups around types of the signature that are fragments of `macro_rules!`.
    fn remove_groups(&mut self) {
        for input in &mut self.sig.inputs {
            if let FnArg::Typed(typed) = input {
                remove_groups(&mut typed.ty);
            }
        }
        if let ReturnType::Type(_, ty) = &mut self.sig.output {
            remove_groups(ty);
        }
    }

    /// Returns `true` for a function that is not a method, and reports a method with `code`. An attribute on a method
    /// can emit nothing but methods, so it could not add the type of the function's name.
    pub(crate) fn check_free(&self, attribute: &str, code: Code, errors: &mut Errors) -> bool {
        let is_method = self.is_method();
        if is_method {
            let what = format!("`{attribute}` must be applied to a function, not to a method");
            errors.push(self.receiver_or_name(), code, &what, "move the function out of the `impl`");
        }
        !is_method
    }

    /// Reports an `unsafe` function with `code`. The generated code calls the function, and rustc would report that call at
    /// the return type.
    pub(crate) fn check_safe(&self, attribute: &str, code: Code, errors: &mut Errors) {
        if let Safety::Unsafe(word) = &self.sig.safety {
            let what = format!("`{attribute}` must be applied to a function that is safe to call");
            errors.push(word, code, &what, "remove `unsafe`, and write it around the unsafe code of the body");
        }
    }

    /// Returns the part of the signature that makes the function generic: its type parameters, or the type of a
    /// parameter with `impl Trait`. The lifetime of a borrowed parameter is not one; the kind itself has no lifetime.
    pub(crate) fn generic_part(&self) -> Option<TokenStream> {
        let generics = &self.sig.generics;
        let is_lifetime = |parameter: &GenericParam| matches!(parameter, GenericParam::Lifetime(_));
        let in_kind = || self.parameter_types().any(|ty| has_lifetime(&strip_reference(ty).to_token_stream()));
        if !generics.params.iter().all(is_lifetime) || (!generics.params.is_empty() && in_kind()) {
            return Some(generics.to_token_stream());
        }
        self.parameter_types().map(ToTokens::to_token_stream).find(|ty| has_word(ty, "impl"))
    }

    /// Returns `true` for a function of an `impl` or a `trait`. Without a `self`, the type `Self` shows that, or the file
    /// of the attribute. `Context<Self>` does not: people write it in a free function, too.
    pub(crate) fn is_method(&self) -> bool {
        let names_self = |ty: &Type| {
            generic_argument(strip_pointers(ty), "Context").is_none() && has_word(&ty.to_token_stream(), "Self")
        };
        matches!(self.sig.inputs.first(), Some(FnArg::Receiver(_)))
            || self.parameter_types().chain(return_type(&self.sig.output)).any(names_self)
            || source_file::read().is_some_and(|text| source_file::is_associated(&text, &self.sig.ident))
    }

    /// Returns the smallest tokens that show a method: its `self`, or else its name.
    pub(crate) fn receiver_or_name(&self) -> TokenStream {
        match self.sig.inputs.first() {
            Some(FnArg::Receiver(receiver)) => receiver.to_token_stream(),
            _ => self.sig.ident.to_token_stream(),
        }
    }

    /// Returns the types of the parameters, without a `self`.
    pub(crate) fn parameter_types(&self) -> impl Iterator<Item = &Type> {
        self.sig.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(typed) => Some(&*typed.ty),
            FnArg::Receiver(_) => None,
        })
    }

    /// Returns the parts of the signature that `emit` needs.
    pub(crate) fn head(&self) -> Head {
        let Signature { ident, asyncness, output, .. } = &self.sig;
        Head {
            name: ident.clone(),
            vis: self.vis.clone(),
            docs: self.docs(),
            is_async: asyncness.is_some(),
            result: return_type(output).map_or_else(|| ident.span(), Spanned::span),
        }
    }

    /// Returns the doc comments, which the type of the function's name shows, too.
    pub(crate) fn docs(&self) -> Vec<Attribute> {
        self.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect()
    }
}

/// The parts of a function that `emit` needs in addition to its parameters. The attributes of functions emit a type of
/// the same name next to it.
pub(crate) struct Head {
    /// The function's name, which its type gets, too.
    pub(crate) name: Ident,
    /// The visibility of function and type.
    pub(crate) vis: Visibility,
    /// The function's doc comments, for the type.
    pub(crate) docs: Vec<Attribute>,
    /// `true` if the call needs `.await`.
    pub(crate) is_async: bool,
    /// The span of the return type, or of the name without one: mistakes in the result are shown there.
    pub(crate) result: Span,
}

impl Head {
    /// Returns the name in its call. It has the span of the return type, where rustc shows an error about the result.
    pub(crate) fn callee(&self) -> Ident {
        with_span(&self.name, self.result)
    }

    /// Returns the name in messages, logs and metrics: `type` for `fn r#type`.
    pub(crate) fn text(&self) -> String {
        self.name.unraw().to_string()
    }
}

/// Returns an identifier with another span. A raw one remains raw: `Ident::new` panics on `r#type`.
pub(crate) fn with_span(name: &Ident, span: Span) -> Ident {
    let mut name = name.clone();
    name.set_span(span);
    name
}

/// Returns the name of a local variable in generated code. It is never the function's name: the variable would shadow
/// the function.
pub(crate) fn local_name(name: &str, function: &Ident, span: Span) -> Ident {
    if function == name { format_ident!("{name}_", span = span) } else { Ident::new(name, span) }
}

/// Returns the type behind a reference.
fn strip_reference(ty: &Type) -> &Type {
    match ty {
        Type::Reference(reference) => &reference.elem,
        _ => ty,
    }
}

/// Returns `true` for a type with a lifetime at any depth.
fn has_lifetime(ty: &TokenStream) -> bool {
    ty.clone().into_iter().any(|token| match token {
        TokenTree::Punct(punct) => punct.as_char() == '\'',
        TokenTree::Group(group) => has_lifetime(&group.stream()),
        _ => false,
    })
}

/// Returns `true` for a type with a word at any depth, such as the keyword of `impl Trait`.
fn has_word(ty: &TokenStream, word: &str) -> bool {
    ty.clone().into_iter().any(|token| match token {
        TokenTree::Ident(found) => found == word,
        TokenTree::Group(group) => has_word(&group.stream(), word),
        _ => false,
    })
}

/// Returns the keyword of an item, such as `struct` or `impl`: the smallest token for an error about an item of the
/// wrong sort.
pub(crate) fn item_keyword(item: &TokenStream) -> Option<Ident> {
    item.clone().into_iter().find_map(|token| match token {
        TokenTree::Ident(word) if word != "pub" => Some(word),
        _ => None,
    })
}

/// Removes what surrounds a type without giving it another meaning, at any depth: the invisible groups of fragments of
/// `macro_rules!`, such as `$kind:ty`, and parentheses. Around `dyn A + B` they are kept, because rustc rejects
/// `&dyn A + B`.
pub(crate) fn remove_groups(ty: &mut Type) {
    while let Type::Group(TypeGroup { elem, .. }) | Type::Paren(TypeParen { elem, .. }) = ty {
        if matches!(**elem, Type::TraitObject(_) | Type::ImplTrait(_)) {
            return;
        }
        let inner = (**elem).clone();
        *ty = inner;
    }
    match ty {
        Type::Reference(reference) => remove_groups(&mut reference.elem),
        Type::Slice(slice) => remove_groups(&mut slice.elem),
        Type::Path(path) => {
            for segment in &mut path.path.segments {
                let PathArguments::AngleBracketed(arguments) = &mut segment.arguments else { continue };
                for argument in &mut arguments.args {
                    if let GenericArgument::Type(inner) = argument {
                        remove_groups(inner);
                    }
                }
            }
        }
        _ => {}
    }
}

/// Returns the type behind references and `Arc`s: the kind that the user meant with `&Pod` or `Arc<Pod>`.
pub(crate) fn strip_pointers(ty: &Type) -> &Type {
    match ty {
        Type::Reference(reference) => strip_pointers(&reference.elem),
        _ => generic_argument(ty, "Arc").map_or(ty, strip_pointers),
    }
}

/// Returns the kind that the user meant with the type of an object: the type behind references and `Arc`s. Otherwise it
/// is behind a type with one argument, such as `Rc<Pod>` or `A<Pod>` after `use std::sync::Arc as A`. The metadata of a
/// kind is a kind.
pub(crate) fn strip_any_pointer(ty: &Type) -> &Type {
    let stripped = strip_pointers(ty);
    if !std::ptr::eq(stripped, ty) {
        return stripped;
    }
    only_argument(ty).map_or(ty, strip_pointers)
}

/// Returns `T` of `Name<T>` for any name but `PartialObjectMeta`. `None` for another number of arguments.
fn only_argument(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident != "PartialObjectMeta")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) if arguments.args.len() == 1 => Some(inner),
        _ => None,
    }
}

/// Returns `T` of `Name<T>`, whatever path leads to `Name`.
pub(crate) fn generic_argument<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}

/// Returns the last name of a path: `Pod` of `v1::Pod`.
pub(crate) fn last_name(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| &last.ident),
        _ => None,
    }
}

/// Returns a type as text without spaces, for comparisons and for help. `&mut T` loses its space as well; callers
/// show kinds, not references.
pub(crate) fn compact_text(ty: &Type) -> String {
    ty.to_token_stream().to_string().replace(' ', "")
}

/// Returns a type with the spaces that people write: `&Store<v1::Pod>`.
pub(crate) fn type_text(ty: &Type) -> String {
    let text = ty.to_token_stream().to_string();
    let text = text.replace(" :: ", "::").replace("& ", "&").replace(" < ", "<").replace(" >", ">").replace(" <", "<");
    text.replace("< ", "<").replace(" ,", ",")
}

/// Returns the type after `->`. `None` for a function that returns nothing.
pub(crate) fn return_type(output: &ReturnType) -> Option<&Type> {
    match output {
        ReturnType::Type(_, ty) => Some(ty),
        ReturnType::Default => None,
    }
}

/// Returns `true` if the return type is called `Result`, with any error type. An alias of another name counts as
/// infallible; then rustc reports the type that is not an answer.
pub(crate) fn is_result(output: &ReturnType) -> bool {
    let Some(Type::Path(path)) = return_type(output) else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Result")
}

/// Returns tokens as the user wrote them, apart from spaces, which tokens don't have. Strings keep theirs.
///
/// The result is shown in comments of a generated role and in help.
pub(crate) fn source_text(tokens: &TokenStream) -> String {
    let words = tokens.clone().into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let (open, close) = match group.delimiter() {
                Delimiter::Parenthesis => ("(", ")"),
                Delimiter::Brace => ("{", "}"),
                Delimiter::Bracket => ("[", "]"),
                Delimiter::None => ("", ""),
            };
            format!("{open}{}{close}", source_text(&group.stream()))
        }
        TokenTree::Punct(punct) if punct.as_char() == ',' => ", ".to_owned(),
        other => other.to_string(),
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::{Function, compact_text, remove_groups, return_type, source_text, strip_any_pointer};

    #[test]
    fn functions_with_raw_names_are_called_by_them() {
        let admission = quote!(
            fn r#try(web: &Web) -> Result<()> {}
        );
        let conversion = quote!(
            fn r#try(old: v1::Web) -> Result<v2::Web> {}
        );
        let interpreter = quote!(
            fn r#try(web: &Web) -> Result<bool> {}
        );
        let controller = quote!(
            async fn r#try(web: Arc<Web>, cx: Context<r#try>) -> Result<Action> {}
        );
        let simulated = quote!(
            fn r#try() -> Scenario {}
        );
        for expanded in [
            crate::admission::expand(quote!(validate), &admission),
            crate::conversion::expand(quote!(), &conversion),
            crate::interpreter::expand(quote!(op = InterpretHealth), &interpreter),
            crate::controller::expand(quote!(), &controller),
        ] {
            let text = expanded.to_string();
            assert!(text.contains("r#try (") && text.contains("\"try\""), "{text}");
            assert!(!text.contains("\"r#try\"") && !text.contains("compile_error"), "{text}");
        }
        let text = crate::simulated_test::expand(quote!(), &simulated).to_string();
        assert!(text.contains("fn r#try") && !text.contains("compile_error"), "{text}");
    }

    #[test]
    fn kinds_are_found_behind_any_pointer() {
        for (written, expected) in [
            ("Pod", "Pod"),
            ("&Pod", "Pod"),
            ("&Arc<Pod>", "Pod"),
            ("Arc<Pod>", "Pod"),
            ("Rc<Pod>", "Pod"),
            ("A<v1::Pod>", "v1::Pod"),
            ("Rc<Arc<Pod>>", "Pod"),
            ("Arc<PartialObjectMeta<Pod>>", "PartialObjectMeta<Pod>"),
            ("PartialObjectMeta<Pod>", "PartialObjectMeta<Pod>"),
            ("Object<Spec, Status>", "Object<Spec,Status>"),
            ("Borrowed<'a>", "Borrowed<'a>"),
        ] {
            let ty = syn::parse_str(written).unwrap();
            assert_eq!(compact_text(strip_any_pointer(&ty)), expected, "{written}");
        }
    }

    /// Returns tokens as a fragment of `macro_rules!` contains them.
    fn fragment(tokens: &str) -> proc_macro2::Group {
        proc_macro2::Group::new(proc_macro2::Delimiter::None, tokens.parse().unwrap())
    }

    #[test]
    fn fragments_in_types_are_seen_through() {
        let (kind, object, context, result) =
            (fragment("Pod"), fragment("(Arc<Pod>)"), fragment("Context<f>"), fragment("Result<bool>"));
        let function: Function =
            syn::parse2(quote!(fn f(a: #object, b: &#kind, c: &[Arc<#kind>], d: #context) -> #result {})).unwrap();
        let types: Vec<_> = function.parameter_types().map(compact_text).collect();
        assert_eq!(types, ["Arc<Pod>", "&Pod", "&[Arc<Pod>]", "Context<f>"]);
        assert_eq!(return_type(&function.sig.output).map(compact_text).as_deref(), Some("Result<bool>"));
        let mut both = syn::parse_str("&(dyn A + B)").unwrap();
        remove_groups(&mut both);
        assert_eq!(compact_text(&both), "&(dynA+B)");
    }

    #[test]
    fn fragments_in_values_are_checked() {
        let (short, word) = (fragment("\"1 x\""), fragment("\"a\""));
        let item = quote!(
            async fn f(a: Arc<Pod>, cx: Context<f>) -> Result<Action> {}
        );
        for (options, expected) in [
            (quote!(resync = #short), "`1 x` is not a duration"),
            (quote!(backoff(#short)), "`1 x` is not a duration"),
            (quote!(owns = ConfigMap(selector = #short)), "`1 x` is not a label selector"),
            (quote!(namespaces = [#word, #word]), "the namespace `a` is given twice"),
        ] {
            let text = crate::controller::expand(options.clone(), &item).to_string();
            assert!(text.contains(expected), "{options}: {text}");
        }
        let (seconds, selector) = (fragment("5"), fragment("\"a in (b)\""));
        let options = quote!(validate, timeout = #seconds, namespace_selector = #selector);
        let function = quote!(
            fn f(a: &Pod) -> Result<()> {}
        );
        let text = crate::admission::expand(options, &function).to_string();
        assert!(!text.contains("compile_error"), "{text}");
    }

    #[test]
    fn functions_with_type_parameters_are_generic() {
        for (head, expected) in [
            ("fn f(a: &Web, b: Arc<Web>)", None),
            ("fn f<K: Kind>(a: &K)", Some("< K : Kind >")),
            ("fn f(a: impl Kind)", Some("impl Kind")),
            ("fn f(a: &Web, b: [Vec<impl Kind>; 2])", Some("[Vec < impl Kind > ; 2]")),
            ("fn f(a: &Web) -> impl Kind", None),
            ("fn f<'a>(a: &'a Web, b: &'a Admission<Web>) -> Result<Part<'a>>", None),
            ("fn f<'a>(a: &Part<'a>)", Some("< 'a >")),
            ("fn f<'a, K>(a: &'a K)", Some("< 'a , K >")),
        ] {
            let function: Function = syn::parse_str(head).unwrap();
            let found = function.generic_part().map(|part| part.to_string());
            assert_eq!(found.as_deref(), expected, "{head}");
        }
    }

    #[test]
    fn unsafe_function_is_one_mistake() {
        let admission = quote!(
            unsafe fn f(web: &Web) -> Result<()> {}
        );
        let conversion = quote!(
            unsafe fn f(old: v1::Web) -> Result<v2::Web> {}
        );
        let interpreter = quote!(
            unsafe fn f(web: &Web) -> Result<bool> {}
        );
        let controller = quote!(
            async unsafe fn f(web: Arc<Web>, cx: Context<f>) -> Result<Action> {}
        );
        for expanded in [
            crate::admission::expand(quote!(validate), &admission),
            crate::conversion::expand(quote!(), &conversion),
            crate::interpreter::expand(quote!(op = InterpretHealth), &interpreter),
            crate::controller::expand(quote!(), &controller),
        ] {
            let text = expanded.to_string();
            assert!(text.contains("a function that is safe to call"), "{text}");
            assert_eq!(text.matches("compile_error").count(), 1, "{text}");
        }
    }

    #[test]
    fn functions_that_name_self_are_methods() {
        for (head, expected) in [
            ("fn f(&self, a: &Web)", true),
            ("fn f(a: &Self)", true),
            ("fn f(a: Arc<Web>) -> Result<Self>", true),
            ("fn f(a: Arc<Web>, cx: Context<Self>)", false),
            ("fn f(a: &Web)", false),
        ] {
            let function: Function = syn::parse_str(head).unwrap();
            assert_eq!(function.is_method(), expected, "{head}");
        }
    }

    #[test]
    fn tokens_are_printed_as_written() {
        let check = |tokens, text: &str| assert_eq!(source_text(&tokens), text);
        check(quote!(rules::of("a b, c", &["x  y"], 1)), r#"rules::of("a b, c", &["x  y"], 1)"#);
        check(quote!(rule()), "rule()");
        check(quote!(RULE), "RULE");
    }
}
