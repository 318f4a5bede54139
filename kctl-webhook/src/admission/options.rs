//! When a function is asked: what stands in the parentheses of `#[admission(…)]`, with the defaults of the API.

use serde_json::{Value, json};

/// The type of an admission function: validating or mutating.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// It may change the object.
    Mutate,
    /// It only looks.
    Validate,
}

impl Action {
    /// As it stands in paths and in the attribute.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$of])* $variant),* }

        impl $name {
            /// The word of the API.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }
    };
}

words! {
    /// What is done with the object.
    Operation {
        /// It is new.
        Create = "CREATE",
        /// It is there and changes.
        Update = "UPDATE",
        /// It goes.
        Delete = "DELETE",
        /// Somebody connects to it: `kubectl exec`, for example.
        Connect = "CONNECT",
    }
}

impl Operation {
    pub(super) fn of(word: &str) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete, Self::Connect].into_iter().find(|operation| operation.word() == word)
    }
}

words! {
    /// What becomes of a request when the function can't be asked.
    FailurePolicy {
        /// It is refused.
        Fail = "Fail",
        /// It goes on, as if there was no function.
        Ignore = "Ignore",
    }
}
words! {
    /// Whether the function does anything but answer.
    SideEffects {
        /// It does not, so that it may be asked for dry runs.
        None = "None",
        /// It does, but looks at [`Admission::dry_run`](super::Admission::dry_run).
        NoneOnDryRun = "NoneOnDryRun",
    }
}
words! {
    /// Whether requests for other versions of the kind count.
    MatchPolicy {
        /// They do, and the function gets the object in its version.
        Equivalent = "Equivalent",
        /// They don't.
        Exact = "Exact",
    }
}
words! {
    /// Whether a function that mutates is asked again when another one changed the object after it.
    Reinvocation {
        /// No.
        Never = "Never",
        /// Yes.
        IfNeeded = "IfNeeded",
    }
}

/// The options of a function.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Which of the two.
    pub action: Action,
    /// When it is asked.
    pub operations: Vec<Operation>,
    /// For these subresources instead of the object itself.
    pub subresources: Vec<String>,
    /// Whether a request passes if the webhook does not respond.
    pub failure_policy: FailurePolicy,
    /// How long it may take, in seconds: 1 to 30.
    pub timeout_seconds: u8,
    /// The side effects of the function.
    pub side_effects: SideEffects,
    /// Whether other versions count.
    pub match_policy: MatchPolicy,
    /// A label selector in kubectl's form; empty is everything.
    pub namespace_selector: String,
    /// The same of the object.
    pub object_selector: String,
    /// Names and CEL expressions, all of which must hold.
    pub match_conditions: Vec<(String, String)>,
    /// Whether it is asked again.
    pub reinvocation: Reinvocation,
}

impl Options {
    /// Those of the API server, for functions that are asked when an object is created or updated.
    pub fn of(action: Action) -> Self {
        Self {
            action,
            operations: vec![Operation::Create, Operation::Update],
            subresources: Vec::new(),
            failure_policy: FailurePolicy::Fail,
            timeout_seconds: 10,
            side_effects: SideEffects::None,
            match_policy: MatchPolicy::Equivalent,
            namespace_selector: String::new(),
            object_selector: String::new(),
            match_conditions: Vec::new(),
            reinvocation: Reinvocation::Never,
        }
    }
}

/// `a=b,c!=d,e in (x,y),f notin (z),g,!h` as a `LabelSelector`.
///
/// # Errors
/// It is none: says what can't be read.
pub(super) fn selector(text: &str) -> Result<Value, String> {
    let mut expressions = Vec::new();
    for part in parts(text) {
        let unreadable = || {
            format!("`{part}` is no requirement of a label selector: write `a=b`, `a!=b`, `a in (b,c)`, `a` or `!a`")
        };
        let (key, operator, values) = if let Some((key, value)) = part.split_once("!=") {
            (key, "NotIn", vec![value.trim()])
        } else if let Some((key, value)) = part.split_once('=') {
            (key, "In", vec![value.trim_start_matches('=').trim()])
        } else if let Some((head, set)) = part.split_once('(') {
            let values = set.strip_suffix(')').ok_or_else(unreadable)?.split(',').map(str::trim).collect();
            match head.trim().rsplit_once(' ') {
                Some((key, "in")) => (key, "In", values),
                Some((key, "notin")) => (key, "NotIn", values),
                _ => return Err(unreadable()),
            }
        } else if let Some(key) = part.strip_prefix('!') {
            (key, "DoesNotExist", Vec::new())
        } else {
            (part, "Exists", Vec::new())
        };
        let key = key.trim();
        if key.is_empty() || key.contains([' ', ')', '!']) {
            return Err(unreadable());
        }
        let mut expression = json!({ "key": key, "operator": operator });
        if !values.is_empty() {
            expression["values"] = json!(values);
        }
        expressions.push(expression);
    }
    Ok(if expressions.is_empty() { json!({}) } else { json!({ "matchExpressions": expressions }) })
}

/// Splits at commas that stand outside of parentheses.
fn parts(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let is_comma = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    text.split(is_comma).map(str::trim).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_selector_becomes_that_of_the_api() {
        let of = |key: &str, operator: &str, values: &[&str]| {
            let mut expression = json!({ "key": key, "operator": operator });
            if !values.is_empty() {
                expression["values"] = json!(values);
            }
            expression
        };
        let cases = [
            ("a=b", vec![of("a", "In", &["b"])]),
            ("a==b", vec![of("a", "In", &["b"])]),
            ("a!=b", vec![of("a", "NotIn", &["b"])]),
            ("a", vec![of("a", "Exists", &[])]),
            ("!a", vec![of("a", "DoesNotExist", &[])]),
            ("a in (x, y),b", vec![of("a", "In", &["x", "y"]), of("b", "Exists", &[])]),
            ("a notin (x)", vec![of("a", "NotIn", &["x"])]),
        ];
        for (text, expected) in cases {
            assert_eq!(selector(text), Ok(json!({ "matchExpressions": expected })), "{text}");
        }
        assert_eq!(selector(""), Ok(json!({})));
        for text in ["=b", "a in x)", "a within (x)", "a b"] {
            assert!(selector(text).is_err(), "{text}");
        }
    }
}
