//! `ViewStruct` → tokens: the struct with its metadata, where its fields are, and how it is read; nothing can fail
//! here.
//!
//! ```text
//! #[view(of = Pod)]
//! struct Placed { #[view(spec.node_name)] node: Option<String> }
//! ```
//!
//! becomes
//!
//! ```text
//! struct Placed { pub metadata: ObjectMeta, node: Option<String> }
//! impl View for Placed {
//!     fn paths() -> … { [TypedPath::<Pod, _>::root().field("spec", |it| &it.spec).open().field("node_name", …).end::<Option<String>>()] }
//! }
//! impl<'de> Deserialize<'de> for Placed { … }
//! ```
//!
//! The closures are never called: they make rustc check that each field exists. `open()` goes through an `Option`,
//! after which the end is optional as well. Deserialization skips every JSON value that is not on a path, so a view
//! costs no memory for the rest. `tests/expand/view.expanded.rs` is the whole expansion.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Fields, ext::IdentExt, spanned::Spanned};

use super::check::{Step, ViewField, ViewStruct};

/// Emits the struct, `impl View` and `impl Deserialize`.
pub(super) fn emit(model: &ViewStruct) -> TokenStream {
    let (krate, name, of) = (&model.krate, &model.item.ident, &model.of);
    let item = with_metadata(model);
    let kind = quote_spanned!(of.span()=> type __Of = #of;);
    let paths = model.fields.iter().map(path);
    let fields = model.fields.iter().map(|ViewField { cfg, field, ty, .. }| {
        let read = quote_spanned!(ty.span()=> #field: __parts.field()?);
        quote!(#(#cfg)* #read)
    });
    quote! {
        #item
        const _: () = {
            use #krate::__private_0_1 as __p;
            #[allow(unused_imports, reason = "a view may have no path through what is always there")]
            use __p::Open as _;
            #kind
            impl __p::View for #name {
                type Of = __Of;
                fn paths() -> &'static __p::FieldPaths {
                    static PATHS: __p::LazyLock<__p::FieldPaths> =
                        __p::LazyLock::new(|| __p::FieldPaths::new([#(#paths),*]));
                    &PATHS
                }
            }
            impl __p::ViewOf<__Of> for #name {}
            __p::resource_of!(#name, __Of);
            impl<'de> __p::serde::Deserialize<'de> for #name {
                fn deserialize<D: __p::serde::Deserializer<'de>>(
                    __from: D,
                ) -> ::core::result::Result<Self, D::Error> {
                    #[allow(unused_mut, reason = "a view may have no field")]
                    let mut __parts = __p::ViewReader::read(<Self as __p::View>::paths(), __from)?;
                    ::core::result::Result::Ok(Self { metadata: __parts.metadata()?, #(#fields),* })
                }
            }
        };
    }
}

/// Emits the user's struct with the public field `metadata`.
fn with_metadata(model: &ViewStruct) -> TokenStream {
    let (item, krate) = (&model.item, &model.krate);
    let (attrs, vis, name, bounds) = (&item.attrs, &item.vis, &item.ident, &item.generics.where_clause);
    let fields = match &item.fields {
        Fields::Named(fields) => fields.named.to_token_stream(),
        _ => TokenStream::new(),
    };
    quote! {
        #(#attrs)*
        #vis struct #name #bounds {
            /// Name, namespace, uid, labels, finalizers and owners of the object; annotations only if a field reads them.
            pub metadata: #krate::__private_0_1::ObjectMeta,
            #fields
        }
    }
}

/// Emits the path of a field. Each step has the span of the user's word, so that rustc points at a field that does not
/// exist. The end has the span of the type.
fn path(field: &ViewField) -> TokenStream {
    debug_assert!(!field.steps.is_empty(), "`check` rejects a field without a path");
    let cfg = &field.cfg;
    let mut path = quote!(#(#cfg)* __p::TypedPath::<__Of, _>::root());
    for (index, step) in field.steps.iter().enumerate() {
        if index > 0 {
            path.extend(quote!(.open()));
        }
        path.extend(match step {
            Step::Field(field) => {
                let text = Literal::string(&field.unraw().to_string());
                quote_spanned!(field.span()=> .field(#text, |__it| &__it.#field))
            }
            Step::Key(key) => quote_spanned!(key.span()=> .key(#key)),
        });
    }
    let ty = &field.ty;
    path.extend(quote_spanned!(ty.span()=> .end::<#ty>()));
    path
}
