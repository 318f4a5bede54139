//! Names in a definition: labels and kinds as the real server takes them, and what it says of those that are not.

use crate::pattern;

const LABEL_LEN_MAX: usize = 63;

/// What is wrong with a DNS label of RFC 1035.
pub(super) fn label_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > LABEL_LEN_MAX {
        problems.push(format!("must be no more than {LABEL_LEN_MAX} characters"));
    }
    if !pattern::matches("^[a-z]([-a-z0-9]*[a-z0-9])?$", text) {
        problems.push("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')".to_owned());
    }
    problems
}

/// What is wrong with a kind.
pub(super) fn kind_problems(text: &str) -> Vec<String> {
    let prefix = "may have mixed case, but should otherwise match: ";
    let problems = label_problems(&text.to_lowercase());
    if problems.is_empty() { problems } else { vec![format!("{prefix}{}", problems.join(","))] }
}
