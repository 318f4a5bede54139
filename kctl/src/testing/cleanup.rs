//! Combines the errors of cleanup steps, which all run even if one fails.

use kctl_runtime::reconcile::{Error, Result};

/// Maximum number of errors that a message contains; it counts the others.
const ERRORS_NAMED_MAX: usize = 5;

/// Returns `Ok` if all steps succeeded, otherwise one error with their messages.
pub(super) fn combine(results: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let mut texts: Vec<String> = results.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
    let n_more = texts.len().saturating_sub(ERRORS_NAMED_MAX);
    texts.truncate(ERRORS_NAMED_MAX);
    if n_more > 0 {
        texts.push(format!("{n_more} more errors"));
    }
    if texts.is_empty() { Ok(()) } else { Err(Error::from(texts.join("; "))) }
}

/// Returns the outcome with the error of the cleanup appended. An error of the outcome comes first, since it is what a
/// user asked for.
pub(super) fn append_error<T>(outcome: Result<T>, ended: Result<()>) -> Result<T> {
    match (outcome, ended) {
        (Err(error), Err(end)) => Err(Error::from(format!("{error}; {end}"))),
        (outcome, Ok(())) => outcome,
        (Ok(_), Err(end)) => Err(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> Result<()> {
        if text.is_empty() { Ok(()) } else { Err(Error::from(text.to_owned())) }
    }

    #[test]
    fn error_of_the_outcome_comes_first() {
        for (of_outcome, of_end, expected) in [("", "", ""), ("a", "", "a"), ("", "b", "b"), ("a", "b", "a; b")] {
            let text = append_error(outcome(of_outcome), outcome(of_end))
                .map_or_else(|error| error.to_string(), |()| String::new());
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn many_errors_are_counted() {
        let errors = |n: usize| combine((0..n).map(|n| outcome(&n.to_string()))).map_err(|error| error.to_string());
        assert_eq!(errors(0), Ok(()));
        assert_eq!(errors(5), Err("0; 1; 2; 3; 4".into()));
        assert_eq!(errors(7), Err("0; 1; 2; 3; 4; 2 more errors".into()));
    }
}
