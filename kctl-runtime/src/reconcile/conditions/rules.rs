//! The validation of conditions by the API server (`meta/v1`): types, reasons, messages and generations.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
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
         and ':', a letter first and neither ',' nor ':' last, such as \"AllPodsReady\"; what people read belongs into the message"
    )]
    #[non_exhaustive]
    Reason {
        /// The type of the condition.
        kind: String,
        /// The reason that the API server would reject.
        reason: String,
    },
    /// The status has this condition for a newer generation than the reconciled one: the cache was outdated. Return the
    /// error, and the newer state is reconciled.
    #[error(
        "the condition {kind:?} is of generation {known}, and what was reconciled is of generation {generation}: return this error, \
         and the newer state is reconciled"
    )]
    #[non_exhaustive]
    Outdated {
        /// The type of the condition.
        kind: String,
        /// The generation of the condition in the status.
        known: i64,
        /// The generation of the reconciled object.
        generation: i64,
    },
}

pub(super) fn check(
    kind: &str,
    reason: &str,
    before: Option<&Condition>,
    generation: Option<i64>,
) -> Result<(), ConditionError> {
    if kind.len() > TYPE_MAX || !is_condition_type(kind) {
        return Err(ConditionError::Type { kind: kind.into() });
    }
    if reason.len() > REASON_MAX || !is_condition_reason(reason) {
        return Err(ConditionError::Reason { kind: kind.into(), reason: reason.into() });
    }
    match (before.and_then(|before| before.observed_generation), generation) {
        (Some(known), Some(generation)) if known > generation => {
            Err(ConditionError::Outdated { kind: kind.into(), known, generation })
        }
        _ => Ok(()),
    }
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
            assert_eq!(check(kind, "A", None, None).is_ok(), good, "{kind}");
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
            assert_eq!(check("Ready", reason, None, None).is_ok(), good, "{reason}");
        }
    }

    #[test]
    fn generations_never_go_back() {
        for (known, generation, good) in
            [(None, Some(1), true), (Some(1), Some(1), true), (Some(1), Some(2), true), (Some(2), Some(1), false)]
        {
            let before = Condition {
                last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                    k8s_openapi::jiff::Timestamp::UNIX_EPOCH,
                ),
                message: String::new(),
                observed_generation: known,
                reason: "A".into(),
                status: "True".into(),
                type_: "Ready".into(),
            };
            let checked = check("Ready", "A", Some(&before), generation);
            assert_eq!(checked.is_ok(), good, "{known:?} {generation:?}");
        }
    }

    #[test]
    fn errors_name_the_condition_and_the_remedy() {
        let text = |kind, reason| check(kind, reason, None, None).unwrap_err().to_string();
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
