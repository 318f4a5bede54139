//! Attributes of functions that an app registers: the checks and generated items that `#[admission]`, `#[conversion]` and
//! `#[interpreter]` share.
//!
//! Each of them has one [`FunctionAttribute`] with the words and names that differ. All three expand to the function and
//!
//! ```text
//! struct rules {}                                   // the type of `App::admission::<rules>()`
//! const _: () = {
//!     use ::kctl::admission::__private_0_1 as __p;
//!     type __Kind = Deployment;
//!     impl __p::Admits for rules {
//!         fn webhooks() -> __p::Vec<__p::Webhook> { … }
//!     }
//! };
//! ```

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Error, Result, Type, TypeReference, spanned::Spanned};

use crate::{
    codes::Code,
    crate_path::CratePath,
    diagnostics::Errors,
    function::{Function, Head, compact_text, generic_argument, item_keyword},
    marker_type,
};

/// Names and messages of one attribute.
pub(crate) struct FunctionAttribute {
    /// The attribute as users write it: `#[admission]`.
    pub(crate) name: &'static str,
    /// The function in messages: `an admission function`.
    pub(crate) subject: &'static str,
    /// The signature in the help for any other item.
    pub(crate) signature: &'static str,
    /// The error code for an item that is not a free function.
    pub(crate) misplaced: Code,
    /// The code of a generic function.
    pub(crate) generic: Code,
    /// The reason why the function has no type parameters, and the help.
    pub(crate) generic_reason: &'static str,
    pub(crate) generic_help: &'static str,
    /// The module of `kctl` that has `__private_0_1`.
    pub(crate) module: &'static str,
    /// The trait that the type of the function implements.
    pub(crate) implements: &'static str,
    /// The method of the trait, and the type of the items that it returns.
    pub(crate) method: &'static str,
    pub(crate) registers: &'static str,
}

/// The generated items that differ between attributes and functions.
pub(crate) struct Registration {
    /// The type that two functions with the same purpose both define. Empty if the runtime alone finds duplicates.
    pub(crate) guard: TokenStream,
    /// Type aliases and checks in addition to the implementation.
    pub(crate) items: TokenStream,
    /// Associated types of the implementation.
    pub(crate) types: TokenStream,
    /// The body of the method.
    pub(crate) body: TokenStream,
}

impl FunctionAttribute {
    /// Returns the free function below the attribute, and reports one that is `unsafe` or generic.
    ///
    /// # Errors
    ///
    /// All errors so far if the item is not a free function: its parameters can't be checked.
    pub(crate) fn check_function<'a>(
        &self,
        function: Option<&'a Function>,
        item: &TokenStream,
        errors: &mut Errors,
    ) -> Result<&'a Function> {
        let Some(function) = function else {
            let (what, help) =
                (format!("`{}` must be applied to a function", self.name), format!("put it on `{}`", self.signature));
            errors.push(item_keyword(item), self.misplaced, &what, &help);
            return Err(std::mem::take(errors).into_error());
        };
        if !function.check_free(self.name, self.misplaced, errors) {
            return Err(std::mem::take(errors).into_error());
        }
        function.check_safe(self.name, self.misplaced, errors);
        if let Some(generic) = function.generic_part() {
            let what = format!("{} can't be generic: {}", self.subject, self.generic_reason);
            errors.push(generic, self.generic, &what, self.generic_help);
        }
        Ok(function)
    }

    /// Emits the function, its type, the guard against duplicates and the implementation of the trait.
    pub(crate) fn emit(
        &self,
        krate: &CratePath,
        head: &Head,
        registration: &Registration,
        item: &TokenStream,
    ) -> TokenStream {
        let Registration { guard, items, types, body } = registration;
        let name_type = marker_type::name_type(&head.docs, &head.vis, &head.name);
        let (import, implementation) = (self.import(krate), self.implementation(&head.name, types, body));
        let reason = format!("{} may be async and return a Result even if it never waits or fails", self.subject);
        quote! {
            #[allow(clippy::unnecessary_wraps, clippy::unused_async, reason = #reason)]
            #item
            #name_type
            #guard
            const _: () = {
                #import
                #items
                #implementation
            };
        }
    }

    /// Emits the function, the errors, and a stub that the app accepts. `types` are the associated types of the stub.
    pub(crate) fn recover(
        &self,
        errors: &Error,
        krate: &CratePath,
        function: Option<&Function>,
        types: &TokenStream,
        item: &TokenStream,
    ) -> TokenStream {
        marker_type::recover(errors, function, item, |name| {
            let (import, body) = (self.import(krate), quote!(::core::unreachable!()));
            let implementation = self.implementation(name, types, &body);
            quote!(#import #implementation)
        })
    }

    fn import(&self, krate: &CratePath) -> TokenStream {
        let module = format_ident!("{}", self.module);
        quote!(use #krate::#module::__private_0_1 as __p;)
    }

    fn implementation(&self, name: &Ident, types: &TokenStream, body: &TokenStream) -> TokenStream {
        let [implements, method, registers] =
            [self.implements, self.method, self.registers].map(|name| format_ident!("{name}"));
        quote! {
            impl __p::#implements for #name {
                #types
                fn #method() -> __p::Vec<__p::#registers> { #body }
            }
        }
    }
}

/// The reference type of a function's object parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Borrow {
    /// `&Kind`. Changes would be lost, so the function must not be able to make them.
    Shared,
    /// `&mut Kind`. The changed object is the answer.
    Mutable,
}

/// Returns `Kind` of `&Kind` or `&mut Kind`. The error is the message for any other type: `subject` names the function or
/// the operation.
pub(crate) fn borrowed_kind(ty: &Type, borrow: Borrow, subject: &str) -> std::result::Result<Type, String> {
    match (ty, borrow) {
        (Type::Reference(TypeReference { mutability: None, elem, .. }), Borrow::Shared)
        | (Type::Reference(TypeReference { mutability: Some(_), elem, .. }), Borrow::Mutable)
            if std::ptr::eq(kind_behind(elem), &raw const **elem) =>
        {
            Ok((**elem).clone())
        }
        (_, Borrow::Mutable) => Err(format!("{subject} changes its object: the first parameter must be `&mut Kind`")),
        (Type::Reference(TypeReference { mutability: Some(_), .. }), Borrow::Shared) => {
            Err(format!("{subject} only reads its object: the first parameter must be `&Kind`"))
        }
        (_, Borrow::Shared) => Err(format!("the first parameter of {subject} must be `&Kind`")),
    }
}

/// Returns the kind that the user meant with the type of an object, as the help shows it: `Pod` for `Option<&Pod>`.
pub(crate) fn shown_kind(ty: Option<&Type>) -> String {
    ty.map_or_else(|| "Kind".to_owned(), |ty| compact_text(kind_behind(ty)))
}

/// Returns the type behind references, pointers, an `Option` and the request.
fn kind_behind(ty: &Type) -> &Type {
    if let Type::Reference(reference) = ty {
        return kind_behind(&reference.elem);
    }
    let argument = ["Admission", "Arc", "Box", "Option", "Rc"].iter().find_map(|name| generic_argument(ty, name));
    argument.map_or(ty, kind_behind)
}

/// Returns the name of a type alias with the span of the user's type. There rustc shows an error about the alias, such
/// as that the type is not a kind.
pub(crate) fn alias_name(name: &str, ty: &Type) -> Ident {
    format_ident!("{name}", span = ty.span())
}

/// Emits the alias of a type, with the span of the type.
pub(crate) fn type_alias(name: &str, ty: &Type) -> TokenStream {
    let alias = alias_name(name, ty);
    quote_spanned!(ty.span()=> type #alias = #ty;)
}

/// Emits the imports for `CrdProbe`, which returns the CRD of a type that has one, and nothing for a built-in kind. Rust
/// has no specialization, so the probe uses method resolution by reference: `(&&probe).crd()` finds the trait for types
/// with a CRD first.
pub(crate) fn probe_imports() -> TokenStream {
    quote! {
        #[allow(unused_imports, reason = "which one is used depends on the kind")]
        use __p::{HasCrd as _, HasSchema as _, NoCrd as _};
    }
}
