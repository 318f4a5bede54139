//! Checks a CRD as an API server does, without one, with messages about Rust types and fields.

use serde_json::Value;

use super::{Problem, bounds, names, paths, structural};

/// The result of [`check()`].
#[derive(Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Problems for which an API server rejects the CRD.
    pub rejected: Vec<Problem>,
    /// Schemas that an API server accepts although no object, or no value of a field, is valid.
    pub useless: Vec<Problem>,
}

impl Checked {
    /// Returns `true` if both lists are empty.
    pub fn has_no_problems(&self) -> bool {
        self.rejected.is_empty() && self.useless.is_empty()
    }
}

/// Checks a `CustomResourceDefinition` as an API server does, and finds schemas that no value satisfies.
///
/// ```
/// # use kctl_runtime::manifest::check;
/// let crd = serde_json::json!({
///     "metadata": { "name": "webs.example.com" },
///     "spec": {
///         "group": "example.com", "scope": "Namespaced", "names": { "plural": "webs", "kind": "Web" },
///         "versions": [{
///             "name": "v1", "served": true, "storage": true,
///             "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": {} } } },
///         }],
///     },
/// });
/// let found = check(&crd);
/// assert_eq!(found.rejected[0].path, "spec");
/// ```
pub fn check(crd: &Value) -> Checked {
    let mut found = Checked::default();
    names::check(crd, &mut found.rejected);
    let versions = crd["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    for version in versions {
        let before = (found.rejected.len(), found.useless.len());
        let schema = &version["schema"]["openAPIV3Schema"];
        if schema.is_object() {
            structural::check(schema, &mut found.rejected);
            #[cfg(feature = "rules")]
            if found.rejected.len() == before.0 {
                super::cel::check(schema, &mut found.rejected);
            }
            bounds::check(schema, "", &mut found.useless);
        } else {
            found.rejected.push(Problem::new("schema", "there is no schema", "derive it"));
        }
        paths::check(version, schema, &mut found.rejected, &mut found.useless);
        let name = version["name"].as_str().unwrap_or_default();
        let new = found.rejected[before.0..].iter_mut().chain(&mut found.useless[before.1..]);
        new.for_each(|problem| name.clone_into(&mut problem.version));
    }
    found
}
