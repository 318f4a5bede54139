//! The path of the framework in generated code.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ExprPath;

/// The path of `crate = path`; `::kctl` without the option.
#[derive(Clone, Default)]
pub(crate) struct CratePath(pub(crate) Option<ExprPath>);

impl ToTokens for CratePath {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match &self.0 {
            Some(path) => path.to_tokens(tokens),
            None => tokens.extend(quote!(::kctl)),
        }
    }
}
