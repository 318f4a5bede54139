//! Problems of a CRD, worded for the author of the Rust types.

use std::fmt::{self, Display};

use super::{Checked, Version, owner};

/// One problem of a CRD.
///
/// It prints as `WebSpec.replicas (spec.replicas): …; …`, with the remedy last.
///
/// ```
/// use kctl_runtime::manifest::check;
/// use serde_json::json;
///
/// let found = check(&json!({
///     "metadata": { "name": "webs.example.com" },
///     "spec": {
///         "group": "example.com", "scope": "Namespaced", "names": { "plural": "webs", "kind": "Web" },
///         "versions": [{
///             "name": "v1", "served": true, "storage": true,
///             "schema": { "openAPIV3Schema": {
///                 "type": "object",
///                 "properties": { "spec": { "type": "object", "properties": { "names": { "type": "array" } } } },
///             } },
///         }],
///     },
/// }));
/// assert_eq!(found.rejected[0].to_string(), "spec.names: the type of its items is missing; write the type of the items");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The version, empty if the problem is about all.
    pub version: String,
    /// The path in an object, such as `spec.replicas`, or in the CRD, such as `names.plural`.
    pub path: String,
    /// Rust type and field, such as `WebSpec.replicas`; empty if it is not about a field.
    pub field: String,
    /// The problem.
    pub what: String,
    /// The code to write instead; empty if it is obvious.
    pub help: String,
}

impl Problem {
    pub(super) fn new(path: &str, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { version: String::new(), path: path.into(), field: String::new(), what: what.into(), help: help.into() }
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            write!(f, "{}: {}", self.path, self.what)?;
        } else {
            write!(f, "{} ({}): {}", self.field, self.path, self.what)?;
        }
        if self.help.is_empty() { Ok(()) } else { write!(f, "; {}", self.help) }
    }
}

/// The reason why a CRD cannot be generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// An API server would reject the CRD, or every object.
    #[error("invalid CustomResourceDefinition for {kind} ({location}):{}", list(problems))]
    #[non_exhaustive]
    Rejected {
        /// The kind that the CRD defines.
        kind: String,
        /// The controller or the type.
        location: String,
        /// All problems that were found.
        problems: Vec<Problem>,
    },
    /// Two versions do not fit together.
    #[error("the versions of {name} do not fit together: {what}; {help}")]
    #[non_exhaustive]
    Versions {
        /// Name of the CRD, or kind and group if the versions differ in the plural.
        name: String,
        /// The contradiction.
        what: String,
        /// The remedy.
        help: String,
    },
    /// kube's derive panicked.
    #[error(
        "failed to generate the CustomResourceDefinition for {location}: {cause}; give each field one type in all variants"
    )]
    #[non_exhaustive]
    Derive {
        /// The controller or the type.
        location: String,
        /// The message of the panic.
        cause: String,
    },
}

fn list(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |text, problem| text + "\n  " + &problem.to_string())
}

/// Returns the error for a CRD, with the Rust types of the fields.
pub(super) fn definition_error(versions: &[Version], checked: Checked) -> DefinitionError {
    let mut problems = checked.rejected;
    problems.extend(checked.useless);
    let mut location = String::new();
    for problem in &mut problems {
        let declared = versions.iter().find(|version| version.name() == problem.version).or_else(|| versions.first());
        let Some(declared) = declared else { continue };
        problem.field = owner::field(&declared.schema, &problem.path).unwrap_or_default();
        if location.is_empty() {
            location.clone_from(&declared.location);
        }
        if versions.len() > 1 && !problem.version.is_empty() {
            problem.path = format!("{} in {}", problem.path, problem.version);
        }
    }
    let kind = versions.first().map(|version| version.crd.spec.names.kind.clone()).unwrap_or_default();
    DefinitionError::Rejected { kind, location, problems }
}
