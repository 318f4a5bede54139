//! The options of an admission function, with the defaults of the API: the arguments of `#[admission(…)]`.

use kctl_apimachinery::labels::{self, Requirement};
use serde_json::{Value, json};

/// The type of an admission function: validating or mutating.
///
/// ```
/// use kctl_webhook::admission::Action;
///
/// assert_eq!(Action::Validate.name(), "validate");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// It may change the object. Mutating webhooks run before validating ones.
    Mutate,
    /// It accepts or rejects the object.
    Validate,
}

impl Action {
    /// Returns the word in paths and in the attribute: `mutate` or `validate`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// A new object.
    Create,
    /// A change of an existing object.
    Update,
    /// A deletion. The function gets the object before it.
    Delete,
    /// A connection to it, such as `kubectl exec`.
    Connect,
}

impl Operation {
    /// Returns the value as the Kubernetes API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl Operation {
    pub(super) fn parse(word: &str) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete, Self::Connect]
            .into_iter()
            .find(|operation| operation.as_str() == word)
    }
}

/// The fate of a request if the webhook does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FailurePolicy {
    /// It is rejected. A webhook that is down then blocks all matching requests.
    Fail,
    /// The request proceeds without the webhook.
    Ignore,
}

impl FailurePolicy {
    /// Returns the value as the Kubernetes API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}

/// The side effects of a function, which decide about dry runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SideEffects {
    /// It has none, so it is called for dry runs as well.
    None,
    /// It has some, but checks [`Admission::dry_run`](super::Admission::dry_run).
    NoneOnDryRun,
}

impl SideEffects {
    /// Returns the value as the Kubernetes API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::NoneOnDryRun => "NoneOnDryRun",
        }
    }
}

/// The handling of requests for other versions of the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MatchPolicy {
    /// They match, and the API server converts the object into the function's version (`ShouldCallHook` in
    /// `k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go`).
    Equivalent,
    /// They don't match.
    Exact,
}

impl MatchPolicy {
    /// Returns the value as the Kubernetes API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equivalent => "Equivalent",
            Self::Exact => "Exact",
        }
    }
}

/// The handling of changes that another webhook makes after a mutating function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reinvocation {
    /// The function is called once.
    Never,
    /// The function may be called again, so it has to be idempotent.
    IfNeeded,
}

impl Reinvocation {
    /// Returns the value as the Kubernetes API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "Never",
            Self::IfNeeded => "IfNeeded",
        }
    }
}

/// The options of a function.
///
/// ```
/// use kctl_webhook::admission::{Action, FailurePolicy, Operation, Options};
///
/// let mut options = Options::new(Action::Validate);
/// options.operations = vec![Operation::Delete];
/// options.failure_policy = FailurePolicy::Ignore;
/// options.namespace_selector = "stage=production".into();
/// assert_eq!(options.timeout_seconds, 10);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Validating or mutating.
    pub action: Action,
    /// The operations that call it, by default create and update.
    pub operations: Vec<Operation>,
    /// Subresources that call it instead of the object itself.
    pub subresources: Vec<String>,
    /// Decides if a request passes when the webhook does not respond, by default not.
    pub failure_policy: FailurePolicy,
    /// Timeout in seconds, 1 to 30, by default 10.
    pub timeout_seconds: u8,
    /// The side effects of the function, by default none.
    pub side_effects: SideEffects,
    /// Decides if requests for other versions match, by default they do.
    pub match_policy: MatchPolicy,
    /// Label selector for namespaces, as for `kubectl get -l`; empty selects all.
    pub namespace_selector: String,
    /// Label selector for objects; empty selects all.
    pub object_selector: String,
    /// Names and CEL expressions, which must all hold for a call.
    pub match_conditions: Vec<(String, String)>,
    /// Decides if a mutating function is called again after other changes, by default not.
    pub reinvocation: Reinvocation,
}

impl Options {
    /// Creates options with the defaults of the API, for creates and updates.
    pub fn new(action: Action) -> Self {
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

/// Parses `a=b,c!=d,e in (x,y),f notin (z),g,!h` into a `LabelSelector`.
///
/// # Errors
/// The string is not a label selector, or compares numbers, which a `LabelSelector` can't.
pub(super) fn selector(text: &str) -> Result<Value, String> {
    let unreadable = || {
        format!("`{text}` is not a label selector: write `a=b`, `a!=b`, `a in (b,c)`, `a` or `!a`, separated by commas")
    };
    let expression = |requirement: &Requirement| {
        let mut expression = json!({ "key": requirement.key, "operator": requirement.operator.name()? });
        if !requirement.values.is_empty() {
            expression["values"] = json!(requirement.values);
        }
        Some(expression)
    };
    let requirements = labels::parse(text).ok_or_else(unreadable)?;
    let expressions: Option<Vec<Value>> = requirements.iter().map(expression).collect();
    let expressions = expressions.ok_or_else(unreadable)?;
    Ok(if expressions.is_empty() { json!({}) } else { json!({ "matchExpressions": expressions }) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selector_strings_become_api_selectors() {
        let requirement = |key: &str, operator: &str, values: &[&str]| {
            let mut expression = json!({ "key": key, "operator": operator });
            if !values.is_empty() {
                expression["values"] = json!(values);
            }
            expression
        };
        let cases = [
            ("a=b", vec![requirement("a", "In", &["b"])]),
            ("a==b", vec![requirement("a", "In", &["b"])]),
            ("a!=b", vec![requirement("a", "NotIn", &["b"])]),
            ("a", vec![requirement("a", "Exists", &[])]),
            ("!a", vec![requirement("a", "DoesNotExist", &[])]),
            ("a in (x, y),b", vec![requirement("a", "In", &["x", "y"]), requirement("b", "Exists", &[])]),
            ("a notin (x)", vec![requirement("a", "NotIn", &["x"])]),
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
