//! Validation of dependencies: Karmada's rules for the answers of every layer to
//! `InterpretDependency`.
//!
//! They are `VerifyDependencies` in Karmada's `pkg/util/interpreter/validation` and, for selectors,
//! `ValidateLabelSelector` in `k8s.io/apimachinery/pkg/apis/meta/v1/validation`, with their
//! messages.

use kctl_apimachinery::validation::{is_label_value, is_qualified_name};
use serde_json::Value;

use crate::{operation::DependentReference, typed::Typed};

/// The error of an invalid list of dependencies. The message names each field to correct.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", join_problems(.problems))]
pub struct InvalidDependencyError {
    problems: Vec<String>,
}

fn join_problems(problems: &[String]) -> String {
    match problems {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// Validates every reference of a list, and reports all errors at once.
///
/// ```
/// use kctl_interpreter::{dependency::verify, operation::DependentReference};
///
/// let mut secret = DependentReference { api_version: "v1".into(), kind: "Secret".into(), ..DependentReference::default() };
/// let error = verify(&[secret.clone()]).unwrap_err().to_string();
/// assert!(error.ends_with("dependency can not leave name and labelSelector all empty"));
///
/// secret.name = "tls".into();
/// assert!(verify(&[secret]).is_ok());
/// ```
///
/// # Errors
/// [`InvalidDependencyError`] if a reference has no `apiVersion`, no `kind`, or neither a name nor a selector, or if its selector is
/// not a valid `LabelSelector`.
pub fn verify(dependencies: &[DependentReference]) -> Result<(), InvalidDependencyError> {
    let mut problems = Vec::new();
    for (idx, reference) in dependencies.iter().enumerate() {
        let path = format!("dependencies[{idx}]");
        if reference.api_version.is_empty() {
            problems.push(format!("{path}.apiVersion: Invalid value: \"\": missing required apiVersion"));
        }
        if reference.kind.is_empty() {
            problems.push(format!("{path}.kind: Invalid value: \"\": missing required kind"));
        }
        let selector = reference.label_selector.as_ref().filter(|selector| !selector.is_null());
        if reference.name.is_empty() && selector.is_none() {
            let shown = serde_json::to_string(reference).unwrap_or_default();
            problems.push(format!(
                "{path}: Invalid value: {shown}: dependency can not leave name and labelSelector all empty"
            ));
        }
        let path = format!("{path}.labelSelector");
        match selector.map(|selector| Typed::from_json("LabelSelector", selector)).transpose() {
            Ok(Some(typed)) => SelectorValidator { path, problems: &mut problems }.check(&typed.into_object()),
            Ok(None) => {}
            Err(error) => {
                let shown = selector.unwrap_or(&Value::Null);
                problems.push(format!("{path}: Invalid value: {shown}: {error}"));
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(InvalidDependencyError { problems }) }
}

/// Validates every reference like [`verify`], and writes the selectors as Karmada's type does.
///
/// # Errors
/// The same as for [`verify`].
#[cfg(any(feature = "function", feature = "webhook-client"))]
pub(crate) fn verify_and_canonicalize(
    mut dependencies: Vec<DependentReference>,
) -> Result<Vec<DependentReference>, InvalidDependencyError> {
    verify(&dependencies)?;
    for dependency in &mut dependencies {
        if let Some(selector) = dependency.label_selector.as_mut().filter(|selector| !selector.is_null())
            && let Ok(typed) = Typed::from_json("LabelSelector", selector)
        {
            *selector = typed.into_object();
        }
    }
    Ok(dependencies)
}

struct SelectorValidator<'a> {
    path: String,
    problems: &'a mut Vec<String>,
}

impl SelectorValidator<'_> {
    fn check(&mut self, selector: &Value) {
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            self.label("matchLabels", key, value);
        }
        for (idx, requirement) in selector["matchExpressions"].as_array().into_iter().flatten().enumerate() {
            self.requirement(&format!("matchExpressions[{idx}]"), requirement);
        }
    }

    fn label(&mut self, field: &str, key: &str, value: &Value) {
        if !is_qualified_name(key) {
            let why = "a qualified name must consist of alphanumeric characters, '-', '_' or '.'";
            self.add_problem(field, key, why);
        }
        self.value(field, value);
    }

    fn value(&mut self, field: &str, value: &Value) {
        let text = value.as_str().unwrap_or_default();
        let why = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'";
        if !is_label_value(text) {
            self.add_problem(field, text, why);
        }
    }

    fn requirement(&mut self, field: &str, requirement: &Value) {
        let values = requirement["values"].as_array().map_or(&[][..], Vec::as_slice);
        let operator = requirement["operator"].as_str().unwrap_or_default();
        let wrong = match operator {
            "In" | "NotIn" if values.is_empty() => {
                "values: Required value: must be specified when `operator` is 'In' or 'NotIn'".to_owned()
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                "values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'".to_owned()
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => String::new(),
            other => format!("operator: Invalid value: {other:?}: not a valid selector operator"),
        };
        if !wrong.is_empty() {
            self.problems.push(format!("{}.{field}.{wrong}", self.path));
        }
        let key = requirement["key"].as_str().unwrap_or_default();
        let why = "name part must be non-empty and consist of alphanumeric characters, '-', '_' or '.'";
        if !is_qualified_name(key) {
            self.add_problem(&format!("{field}.key"), key, why);
        }
        for (idx, value) in values.iter().enumerate() {
            self.value(&format!("{field}.values[{idx}]"), value);
        }
    }

    fn add_problem(&mut self, field: &str, value: &str, why: &str) {
        self.problems.push(format!("{}.{field}: Invalid value: {value:?}: {why}", self.path));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(references: &Value, expected: &[&str]) {
        let references: Vec<DependentReference> = serde_json::from_value(references.clone()).unwrap();
        let problems = verify(&references).map_or_else(|invalid| invalid.problems, |()| Vec::new());
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, start) in problems.iter().zip(expected) {
            assert!(problem.starts_with(start), "{problem} should start with {start}");
        }
    }

    #[test]
    fn reference_needs_version_kind_and_name_or_selector() {
        check(&json!([{ "apiVersion": "v1", "kind": "Secret", "name": "s" }]), &[]);
        check(&json!([{ "apiVersion": "v1", "kind": "Secret", "labelSelector": {} }]), &[]);
        check(
            &json!([{ "apiVersion": "v1", "kind": "Secret", "name": "s" }, {}]),
            &[
                "dependencies[1].apiVersion: Invalid value: \"\": missing required apiVersion",
                "dependencies[1].kind: Invalid value: \"\": missing required kind",
                "dependencies[1]: Invalid value: {\"apiVersion\":\"\",\"kind\":\"\"}: dependency can not leave name and",
            ],
        );
    }

    #[test]
    fn invalid_label_selectors_are_rejected() {
        let selecting = |selector: Value| json!([{ "apiVersion": "v1", "kind": "Secret", "labelSelector": selector }]);
        let expression = |operator: &str, values: &[&str]| {
            selecting(json!({ "matchExpressions": [{ "key": "k", "operator": operator, "values": values }] }))
        };
        let path = "dependencies[0].labelSelector.match";
        check(&selecting(json!({ "matchLabels": { "example.com/a": "b", "c": "" } })), &[]);
        check(&selecting(json!({ "matchLabels": { "a": "-b" } })), &[&format!("{path}Labels: Invalid value: \"-b\"")]);
        check(
            &selecting(json!({ "matchLabels": { "a/b/c": "d" } })),
            &[&format!("{path}Labels: Invalid value: \"a/b/c\"")],
        );
        let path_of_selector = "dependencies[0].labelSelector: Invalid value: ";
        for selector in
            [json!("app=web"), json!({ "matchLabels": [] }), json!({ "matchLabels": { "a": 1 } }), json!(["a"])]
        {
            check(&selecting(selector), &[path_of_selector]);
        }
        check(&expression("In", &["a"]), &[]);
        check(&expression("Exists", &[]), &[]);
        check(&expression("In", &[]), &[&format!("{path}Expressions[0].values: Required value")]);
        check(&expression("Exists", &["a"]), &[&format!("{path}Expressions[0].values: Forbidden")]);
        check(&expression("Like", &["a"]), &[&format!("{path}Expressions[0].operator: Invalid value: \"Like\"")]);
        check(&expression("In", &["_"]), &[&format!("{path}Expressions[0].values[0]: Invalid value: \"_\"")]);
    }

    #[test]
    fn several_problems_are_reported_together() {
        let references = vec![DependentReference { name: "s".to_owned(), ..DependentReference::default() }];
        let text = verify(&references).map_err(|invalid| invalid.to_string()).unwrap_err();
        assert!(
            text.starts_with("[dependencies[0].apiVersion: ") && text.ends_with("missing required kind]"),
            "{text}"
        );
    }
}
