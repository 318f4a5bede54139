//! Compile errors as users read them: the mistake, what to write, and a code; all errors of an attribute at once.

use proc_macro2::Span;
use quote::ToTokens;
use syn::Error;

use crate::codes::{self, Code};

/// Mistakes found so far.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Adds a mistake in these tokens.
    pub(crate) fn push(&mut self, tokens: impl ToTokens, code: Code, what: &str, help: &str) {
        self.add(Error::new_spanned(tokens, message(code, what, help)));
    }

    /// Adds a mistake at a place without tokens.
    pub(crate) fn push_at(&mut self, span: Span, code: Code, what: &str, help: &str) {
        self.add(Error::new(span, message(code, what, help)));
    }

    /// Adds an error of the parser.
    pub(crate) fn syntax(&mut self, error: &Error, help: &str) {
        self.push_at(error.span(), codes::SYNTAX, &error.to_string(), help);
    }

    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            none => *none = Some(error),
        }
    }

    /// How many mistakes were found.
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |all| all.clone().into_iter().count())
    }

    /// Returns all mistakes. The caller found at least one.
    pub(crate) fn into_error(self) -> Error {
        self.0.unwrap_or_else(|| Error::new(Span::call_site(), "the attribute has a mistake"))
    }

    /// Returns the value if there are no mistakes, and otherwise all of them.
    pub(crate) fn into_result<T>(self, value: T) -> syn::Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}

/// Returns a message in the form that users know: the mistake, the help and the code.
fn message(code: Code, what: &str, help: &str) -> String {
    format!("{what}\nhelp: {help}\ncode: {code}")
}

/// The known word that is one or two keystrokes away; one, where the word is so short that two make another one.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let close = known.iter().map(|candidate| (distance(word, candidate), *candidate)).min()?;
    let most = if word.len() <= 3 { 1 } else { 2 };
    (close.0 <= most).then_some(close.1)
}

/// Levenshtein.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
