//! The validation of conditions by the API server (`meta/v1`): types, reasons and messages.

use kctl_apimachinery::validation::{is_condition_reason, is_condition_type};

/// Maximum number of characters of a type.
const TYPE_MAX: usize = 316;
/// Maximum number of characters of a reason.
const REASON_MAX: usize = 1_024;
/// Maximum number of characters of a message.
const MESSAGE_MAX: usize = 32_768;
/// The last character of a truncated message.
const CUT: char = '…';

/// The reason why a condition cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConditionError {
    /// The type is not a valid condition type.
    #[error(
        "the type {kind:?} of a condition is not a valid name: it needs 1 to {TYPE_MAX} letters, digits, '-', '_' and '.', with a \
         letter or a digit at both ends, and at most one domain with a '/' before them, such as \"Ready\" or \"example.com/Ready\""
    )]
    #[non_exhaustive]
    Type {
        /// The type.
        kind: String,
    },
    /// The reason is not a valid word.
    #[error(
        "the reason {reason:?} of the condition {kind:?} is not a valid reason: it needs 1 to {REASON_MAX} letters, digits, '_', ',' \
         and ':', a letter first and neither ',' nor ':' last, such as \"AllPodsReady\"; the message is where free text belongs"
    )]
    #[non_exhaustive]
    Reason {
        /// The type of the condition.
        kind: String,
        /// The reason that the API server would reject.
        reason: String,
    },
}

pub(super) fn check(kind: &str, reason: &str) -> Result<(), ConditionError> {
    if kind.len() > TYPE_MAX || !is_condition_type(kind) {
        return Err(ConditionError::Type { kind: kind.into() });
    }
    if reason.len() > REASON_MAX || !is_condition_reason(reason) {
        return Err(ConditionError::Reason { kind: kind.into(), reason: reason.into() });
    }
    Ok(())
}

/// Truncates a message to its maximum length. Its length often depends on an error that it quotes, which must not cost
/// the status.
pub(super) fn truncate(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MESSAGE_MAX) {
        let last = message[..end].char_indices().next_back().map_or(0, |(last, _)| last);
        message.truncate(last);
        message.push(CUT);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_types_and_reasons_match_the_api() {
        for (kind, good) in [
            ("Ready", true),
            ("a", true),
            ("0", true),
            ("Pods_are.All-Ready", true),
            ("example.com/Ready", true),
            ("a-b.c0/x", true),
            (&"a".repeat(316), true),
            (&"a".repeat(317), false),
            ("", false),
            ("Not Ready", false),
            ("-Ready", false),
            ("Ready-", false),
            ("Bereit\u{e4}", false),
            ("/Ready", false),
            ("Example.com/Ready", false),
            ("example..com/Ready", false),
            ("-a/Ready", false),
            ("a/b/Ready", false),
            ("a/", false),
        ] {
            assert_eq!(check(kind, "A").is_ok(), good, "{kind}");
        }
        for (reason, good) in [
            ("AllReady", true),
            ("a", true),
            ("A_", true),
            ("A:b,c_1", true),
            (&"a".repeat(1_024), true),
            (&"a".repeat(1_025), false),
            ("", false),
            ("1Ready", false),
            ("_A", false),
            ("A,", false),
            ("A:", false),
            ("not ready", false),
            ("Not-Ready", false),
        ] {
            assert_eq!(check("Ready", reason).is_ok(), good, "{reason}");
        }
    }

    #[test]
    fn errors_name_the_condition_and_the_remedy() {
        let text = |kind, reason| check(kind, reason).unwrap_err().to_string();
        assert!(
            text("Not Ready", "A")
                .starts_with("the type \"Not Ready\" of a condition is not a valid name: it needs 1 to 316 letters")
        );
        assert!(
            text("Ready", "no pods")
                .starts_with("the reason \"no pods\" of the condition \"Ready\" is not a valid reason")
        );
    }

    #[test]
    fn messages_are_cut_to_what_fits() {
        for (message, length) in [("ä".repeat(MESSAGE_MAX), MESSAGE_MAX), ("ä".repeat(MESSAGE_MAX + 1), MESSAGE_MAX)]
        {
            let cut = message.chars().count() > MESSAGE_MAX;
            let message = truncate(message);
            assert_eq!((message.chars().count(), message.ends_with(CUT)), (length, cut));
        }
    }
}
