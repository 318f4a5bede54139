//! Parameters of operations, in the form of `OpenAPI` v2.
//!
//! The data file is generated from upstream's document. Version 2 refers to frequent parameters by
//! name; version 3 writes out each.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A parameter that several operations have.
#[derive(Deserialize)]
pub(super) struct Parameter {
    /// The name that version 2 refers to. A parameter without one is written out.
    shared: Option<String>,
    /// The subresource or method that this variant of the parameter belongs to. Other operations have another parameter
    /// of this name, or none.
    #[serde(rename = "of")]
    variant: Option<String>,
    /// The Parameter Object in the form of version 2.
    #[serde(rename = "parameter")]
    whole: Value,
}

/// All parameters, from the data file.
static KNOWN: LazyLock<Vec<Parameter>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../data/parameters.json")).expect("the file is generated and tested")
});

impl Parameter {
    /// Returns the parameter's name in the query or path.
    fn name(&self) -> &str {
        self.whole["name"].as_str().unwrap_or_default()
    }
}

/// Returns the shared parameters by name.
///
/// They become the field `parameters` of a version 2 document.
pub(super) fn shared_parameters() -> Map<String, Value> {
    KNOWN.iter().filter_map(|parameter| Some((parameter.shared.clone()?, parameter.whole.clone()))).collect()
}

/// Returns the parameter with this name; `variant` selects the variant of a subresource or a method, if there is one.
///
/// The specific variant takes precedence over the general one.
pub(super) fn find(name: &str, variant: &str) -> Option<&'static Parameter> {
    let own = KNOWN.iter().find(|parameter| parameter.name() == name && parameter.variant.as_deref() == Some(variant));
    own.or_else(|| KNOWN.iter().find(|parameter| parameter.name() == name && parameter.variant.is_none()))
}

/// Returns the parameters that only a subresource has, such as the `command` of `pods/exec`.
///
/// `subresource` has the form `pods/exec`.
pub(super) fn subresource_parameters(subresource: &str) -> impl Iterator<Item = &'static Parameter> {
    KNOWN.iter().filter(move |parameter| parameter.variant.as_deref() == Some(subresource))
}

/// A parameter of an operation.
#[derive(Clone)]
pub(super) enum ParameterUse {
    /// A parameter of the data file, compared by address: each parameter exists once.
    Known(&'static Parameter),
    /// The name of the object in the path; its description has the kind.
    Name(String),
}

impl PartialEq for ParameterUse {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Known(own), Self::Known(other)) => std::ptr::eq(*own, *other),
            (Self::Name(own), Self::Name(other)) => own == other,
            _ => false,
        }
    }
}

impl ParameterUse {
    /// Returns the name of the parameter.
    pub(super) fn name(&self) -> &str {
        self.order().0
    }

    /// Returns the sort key within a document: the name, then the location (`path` before `query`).
    pub(super) fn order(&self) -> (&str, &str) {
        match self {
            Self::Known(parameter) => (parameter.name(), parameter.whole["in"].as_str().unwrap_or_default()),
            Self::Name(_) => ("name", "path"),
        }
    }

    /// Returns the whole parameter.
    fn whole(&self) -> Value {
        match self {
            Self::Known(parameter) => parameter.whole.clone(),
            Self::Name(kind) => json!({
                "name": "name", "in": "path", "description": format!("name of the {kind}"), "required": true,
                "type": "string", "uniqueItems": true,
            }),
        }
    }

    /// Returns the form of version 2.
    pub(super) fn v2(&self) -> Value {
        match self {
            Self::Known(Parameter { shared: Some(shared), .. }) => json!({ "$ref": format!("#/parameters/{shared}") }),
            _ => self.whole(),
        }
    }

    /// Returns the form of version 3: the type is in a schema.
    pub(super) fn v3(&self) -> Value {
        let mut parameter = self.whole();
        if let Some(fields) = parameter.as_object_mut() {
            let schema = ["type", "uniqueItems"].into_iter().filter_map(|key| fields.remove_entry(key));
            let schema = schema.collect::<Map<_, _>>();
            fields.insert("schema".into(), schema.into());
        }
        parameter
    }
}
