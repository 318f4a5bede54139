//! What is wrong with a definition, in words for the person whose types it is made from.

use std::fmt::{self, Display};

use super::{Checked, Version, owner};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The version, where there are several; empty is what all share.
    pub version: String,
    /// The place as in an object, such as `spec.replicas`, or in the definition, such as `spec.names.plural`.
    pub place: String,
    /// The type and the field, such as `WebSpec.replicas`; empty where it is about no field.
    pub field: String,
    /// The problem, for people.
    pub what: String,
    /// The text to write instead; empty if it is obvious.
    pub help: String,
}

impl Problem {
    pub(super) fn new(place: &str, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { version: String::new(), place: place.into(), field: String::new(), what: what.into(), help: help.into() }
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            write!(f, "{}: {}", self.place, self.what)?;
        } else {
            write!(f, "{} ({}): {}", self.field, self.place, self.what)?;
        }
        if self.help.is_empty() { Ok(()) } else { write!(f, "; {}", self.help) }
    }
}

/// Why a definition cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// API servers would refuse it, or every object.
    #[error("the definition of {kind} ({location}) is not one that works:{}", list(problems))]
    Refused {
        /// The kind.
        kind: String,
        /// The controller or the type.
        location: String,
        /// All that is wrong.
        problems: Vec<Problem>,
    },
    /// Two versions do not fit together.
    #[error("the versions of {name} do not fit together: {what}; {help}")]
    Versions {
        /// Of the definition.
        name: String,
        /// What does not fit.
        what: String,
        /// What to write.
        help: String,
    },
    /// The derive gave up.
    #[error(
        "the definition of the primary of {location} cannot be made: {cause}; give each field one type in all variants"
    )]
    Derive {
        /// The controller or the type.
        location: String,
        /// What it said.
        cause: String,
    },
}

fn list(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |text, problem| text + "\n  " + &problem.to_string())
}

/// The error, with the types that the fields belong to.
pub(super) fn of_definition(versions: &[Version], checked: Checked) -> DefinitionError {
    let mut problems = checked.refused;
    problems.extend(checked.useless);
    let mut location = String::new();
    for problem in &mut problems {
        let of = versions.iter().find(|version| version.name() == problem.version).or_else(|| versions.first());
        let Some(of) = of else { continue };
        problem.field = owner::field(&of.schema, &problem.place).unwrap_or_default();
        if location.is_empty() {
            location.clone_from(&of.location);
        }
        if versions.len() > 1 && !problem.version.is_empty() {
            problem.place = format!("{} in {}", problem.place, problem.version);
        }
    }
    let kind = versions.first().map(|version| version.crd.spec.names.kind.clone()).unwrap_or_default();
    DefinitionError::Refused { kind, location, problems }
}
