//! The path of the framework in generated code.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{ExprPath, Path, TypePath};

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

impl From<Path> for CratePath {
    fn from(path: Path) -> Self {
        Self(Some(ExprPath { attrs: Vec::new(), qself: None, path }))
    }
}

impl From<TypePath> for CratePath {
    fn from(TypePath { qself, path, .. }: TypePath) -> Self {
        Self(Some(ExprPath { attrs: Vec::new(), qself, path }))
    }
}
