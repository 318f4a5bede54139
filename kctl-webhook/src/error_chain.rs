//! Errors with their sources, as one line of a log or a message.

use std::{error::Error, iter};

/// Iterates over an error and its sources.
pub(crate) fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| error.source())
}

/// Joins the messages of an error and its sources. Equal neighbours occur once.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut texts: Vec<String> = causes(error).map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Chained {
        text: &'static str,
        source: Option<Box<Chained>>,
    }

    #[test]
    fn sources_are_joined_without_repetition() {
        let last = Chained { text: "no PEM", source: None };
        let same = Chained { text: "no PEM", source: Some(Box::new(last)) };
        let first = Chained { text: "broken file", source: Some(Box::new(same)) };
        assert_eq!(error_chain(&first), "broken file: no PEM");
    }
}
