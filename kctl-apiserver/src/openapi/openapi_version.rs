//! The version of an `OpenAPI` document, which decides the form of its references.

use serde_json::{Value, json};

/// The version of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenApiVersion {
    /// `/openapi/v2`: one document for all groups.
    Two,
    /// `/openapi/v3`: one document per group and version.
    Three,
}

impl OpenApiVersion {
    /// Returns a reference to a type of the document.
    pub(super) fn reference(self, name: &str) -> Value {
        let section = match self {
            Self::Two => "definitions",
            Self::Three => "components/schemas",
        };
        json!({ "$ref": format!("#/{section}/{name}") })
    }
}
