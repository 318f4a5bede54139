//! The options of serde and schemars on a type or a field, as far as other checks need them.

use syn::{Attribute, Expr, ExprLit, Ident, Lit, meta::ParseNestedMeta};

/// One option of an attribute: `default`, or `default = "three"`.
pub(super) struct MetaOption {
    pub(super) name: String,
    /// The name with its span, for errors. `None` for a path of several segments, and for an attribute that can't be read.
    pub(super) written: Option<Ident>,
    /// The expression after `=`.
    pub(super) value: Option<Expr>,
}

impl MetaOption {
    /// Returns the options of all attributes of this name. An attribute that can't be read counts as `with`, which leaves
    /// the field alone: the derive reports the error.
    pub(super) fn collect(attributes: &[Attribute], attribute: &str) -> Vec<Self> {
        let mut found = Vec::new();
        for attribute in attributes.iter().filter(|candidate| candidate.path().is_ident(attribute)) {
            let read = attribute.parse_nested_meta(|meta: ParseNestedMeta<'_>| {
                let mut value = None;
                if meta.input.peek(syn::Token![=]) {
                    value = Some(meta.value()?.parse::<Expr>()?);
                } else if meta.input.peek(syn::token::Paren) {
                    let content;
                    syn::parenthesized!(content in meta.input);
                    content.parse::<proc_macro2::TokenStream>()?;
                }
                let written = meta.path.get_ident().cloned();
                let name = written.as_ref().map(ToString::to_string).unwrap_or_default();
                found.push(Self { name, written, value });
                Ok(())
            });
            if read.is_err() {
                found.push(Self { name: "with".to_owned(), written: None, value: None });
            }
        }
        found
    }

    /// Returns the value if it is a string literal.
    pub(super) fn string(&self) -> Option<String> {
        match self.value.as_ref()? {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        }
    }
}
