//! The path of the framework in generated code: `::kctl`, or the path of the option `crate = path`.
//!
//! A crate that re-exports kctl under another name needs the option, because its users have no dependency named
//! `kctl`. Macros of serde and kube have the same option.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{ExprPath, Path, TypePath};

/// The path of the option `crate = path`. `None` means `::kctl`.
///
/// It is an expression and not a `Path`, because the parsers of options read values as expressions; both print the
/// same tokens.
#[derive(Clone, Default)]
pub(crate) struct CratePath(pub(crate) Option<ExprPath>);

impl CratePath {
    /// Returns the path of the module that generated code names.
    pub(crate) fn private_module(&self) -> TokenStream {
        let krate = self;
        quote!(#krate::__private_0_1)
    }

    /// Returns that path as text, for options of other derives that are strings.
    pub(crate) fn private_module_text(&self) -> String {
        self.private_module().to_string().replace(' ', "")
    }
}

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
