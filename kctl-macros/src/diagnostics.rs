//! Compile errors as users read them: what is wrong, what to write, and a code; all errors of an attribute at once.
//!
//! `syn::Error` holds several errors with a span each, and turns them into `compile_error!` items. rustc prints the
//! message as it is, so its lines are aligned by rustc:
//!
//! ```text
//! error: `concurrency` is at least 1: nothing would be reconciled
//!        help: write `concurrency = 1`
//!        code: K0018
//! ```

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::Error;

use crate::codes::{self, Code};

/// The mistakes that were found so far, in the order of discovery. A check continues after a mistake, with a value that
/// causes no further one.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Adds a mistake at these tokens: rustc underlines them from the first to the last. `what` is a sentence without
    /// a full stop. `help` usually begins with `write`, `remove` or `did you mean`.
    pub(crate) fn push(&mut self, tokens: impl ToTokens, code: Code, what: &str, help: &str) {
        self.add(Error::new_spanned(tokens, message(code, what, help)));
    }

    /// Adds K0022 for an option or a word that may be given once.
    pub(crate) fn push_duplicate(&mut self, name: &Ident) {
        self.push(name, codes::DUPLICATE, &format!("`{name}` is given twice"), "remove one of them");
    }

    /// Adds a mistake at a span, for a place without tokens, such as a pair of parentheses.
    pub(crate) fn push_at(&mut self, span: Span, code: Code, what: &str, help: &str) {
        self.add(Error::new(span, message(code, what, help)));
    }

    /// Adds an error of a parser as K0024. Its message names the expected token; `help` shows the form of the options
    /// of this attribute.
    pub(crate) fn syntax(&mut self, error: &Error, help: &str) {
        self.push_at(error.span(), codes::SYNTAX, &error.to_string(), help);
    }

    /// Adds an error that has its message already.
    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            none => *none = Some(error),
        }
    }

    /// Returns the number of mistakes. Comparing two of them shows whether a step in between found one.
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |all| all.clone().into_iter().count())
    }

    /// Returns all mistakes. The caller has found at least one and can't continue.
    pub(crate) fn into_error(self) -> Error {
        self.0.unwrap_or_else(|| Error::new(Span::call_site(), "the attribute has a mistake"))
    }

    /// Returns the value, or all mistakes if a check found one.
    pub(crate) fn into_result<T>(self, value: T) -> syn::Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}

/// Returns a message in the form that users know: the mistake, the help and the code, a line each.
fn message(code: Code, what: &str, help: &str) -> String {
    format!("{what}\nhelp: {help}\ncode: {code}")
}

/// Returns the known word that is at most two keystrokes away, for "did you mean". Words of up to three letters get
/// one keystroke: with two, any word of two letters would be close to any other one.
pub(crate) fn closest_match<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let close = candidates.iter().map(|candidate| (distance(word, candidate), *candidate)).min()?;
    let most = if word.len() <= 3 { 1 } else { 2 };
    (close.0 <= most).then_some(close.1)
}

/// Returns the Levenshtein distance in bytes. Names of options are ASCII.
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
