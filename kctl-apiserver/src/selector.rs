//! Selectors by labels, by fields and by a hash: decide which objects a list or a watch selects.
//!
//! They have different grammars; `shard` has the grammar of shard selectors. A label selector may have spaces, sets and
//! numbers; a field selector has only `=`, `==` and `!=`, with backslashes as escapes. An empty selector selects
//! everything.
//!
//! ```text
//! labelSelector   app=web,tier in (front, back),!canary,replicas>2
//! fieldSelector   status.phase!=Running,spec.nodeName=node-1
//! ```

mod field;
mod shard;

use kctl_apimachinery::labels::{self, Requirement};
use serde_json::{Map, Value};

use self::{field::Term, shard::ShardSelector};
use crate::{registry::kind::SelectedValue, status::StatusError};

/// A parsed label selector, field selector and shard selector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    /// The requirements of the label selector, which must all hold.
    labels: Vec<Requirement>,
    /// The terms of the field selector, which must all hold.
    fields: Vec<Term>,
    /// Returns the values of fields that are not at their path. `None` before [`for_fields`](Self::for_fields).
    selected_value: Option<SelectedValue>,
    /// The ranges of hashes; `None` for all objects.
    shard: Option<ShardSelector>,
}

impl Selector {
    /// Parses a label selector and a field selector.
    ///
    /// # Errors
    /// Fails if one of them is invalid.
    pub(crate) fn read(labels: &str, fields: &str) -> Result<Self, StatusError> {
        let invalid = |parameter, text| {
            StatusError::bad_request(format!("{parameter}: {text:?} is not a valid selector such as a=b,c!=d"))
        };
        Ok(Self {
            labels: labels::parse(labels).ok_or_else(|| invalid("labelSelector", labels))?,
            fields: field::terms(fields).ok_or_else(|| invalid("fieldSelector", fields))?,
            selected_value: None,
            shard: None,
        })
    }

    /// Returns the selector for objects of a kind. `selectable` are the fields of the kind besides the name. A kind that
    /// has none supports the namespace. The registration of a kind defines its fields and `selected_value`; CRDs declare
    /// theirs in `selectableFields`. Without this check, a misspelled field would be compared with the empty string.
    ///
    /// # Errors
    /// Fails with the first unsupported field.
    pub(crate) fn for_fields(
        mut self,
        selectable: &[&str],
        selected_value: SelectedValue,
    ) -> Result<Self, StatusError> {
        for Term { path, .. } in &self.fields {
            let is_known = match path.as_str() {
                "metadata.name" => true,
                "metadata.namespace" if selectable.is_empty() => true,
                path => selectable.contains(&path),
            };
            if !is_known {
                let allowed = if selectable.is_empty() { &["metadata.namespace"] } else { selectable };
                let why = format!("fieldSelector: {path:?} is not one of metadata.name, {}", allowed.join(", "));
                return Err(StatusError::bad_request(why));
            }
        }
        self.selected_value = Some(selected_value);
        Ok(self)
    }

    /// Restricts the selector to objects with a hash in these ranges; an empty string selects all.
    ///
    /// # Errors
    /// Fails with 500 if the text is not a shard selector. Upstream's error has no code, and so becomes 500.
    pub(crate) fn with_shard_ranges(mut self, text: &str) -> Result<Self, StatusError> {
        if !text.is_empty() {
            let why = |why: String| format!("invalid shard selector: {why}");
            let wrong = |error| StatusError::server_error(why(error));
            self.shard = Some(ShardSelector::parse(text).map_err(wrong)?);
        }
        Ok(self)
    }

    /// Restricts the selector to the object with this name; `None` if it already selects by fields. Used for a watch of
    /// one object by the path of its name.
    pub(crate) fn with_name(mut self, name: &str) -> Option<Self> {
        let is_free = self.fields.is_empty();
        self.fields.push(Term { path: "metadata.name".into(), value: name.into(), equal: true });
        is_free.then_some(self)
    }

    /// Returns the name, if the selector selects a single object by name: a list then reads that object only.
    pub(crate) fn name(&self) -> Option<&str> {
        let named = self.fields.iter().find(|requirement| requirement.equal && requirement.path == "metadata.name");
        named.map(|requirement| requirement.value.as_str())
    }

    /// Returns `true` if the selector selects all objects.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty() && self.shard.is_none()
    }

    /// Returns the canonical form of the shard selector, if there is one.
    pub(crate) fn shard_text(&self) -> Option<String> {
        self.shard.as_ref().map(ToString::to_string)
    }

    /// Returns `true` if the selector selects an object.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.labels.iter().all(|requirement| requirement.matches(labels[&requirement.key].as_str()))
            && self.fields.iter().all(|term| (self.value(object, &term.path) == term.value) == term.equal)
            && self.shard.as_ref().is_none_or(|shard| shard.matches(object))
    }

    /// Returns the value of a field as selectors compare it.
    fn value(&self, object: &Value, path: &str) -> String {
        let selected = self.selected_value.and_then(|selected_value| selected_value(object, path));
        selected.unwrap_or_else(|| text_at(object, path))
    }
}

/// Returns `true` for a valid field selector of any kind. Access reviews use it for selectors, which RBAC does not
/// evaluate.
pub(crate) fn is_field_selector(text: &str) -> bool {
    field::terms(text).is_some()
}

/// Returns the text of the value at a path, as selectors compare it. It is empty if the value is absent.
fn text_at(object: &Value, path: &str) -> String {
    match path.split('.').fold(object, |value, part| &value[part]) {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Returns `true` if a selector within an object, with `matchLabels` and `matchExpressions`, selects these labels. It
/// is the form of `spec.selector` of Deployments and of affinity terms. Operators were validated when the object was
/// written; an unknown one counts as `DoesNotExist`. An empty selector selects everything.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    let empty = Map::new();
    let labels = labels.as_object().unwrap_or(&empty);
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let requirements = selector["matchExpressions"].as_array().into_iter().flatten();
    equal.into_iter().all(|(key, value)| labels.get(key) == Some(value))
        && requirements.into_iter().all(|requirement| {
            let found = requirement["key"].as_str().and_then(|key| labels.get(key));
            let values = requirement["values"].as_array();
            let is_listed = || found.is_some_and(|found| values.is_some_and(|values| values.contains(found)));
            match requirement["operator"].as_str().unwrap_or_default() {
                "In" => is_listed(),
                "NotIn" => !is_listed(),
                "Exists" => found.is_some(),
                _ => found.is_none(),
            }
        })
}

/// Returns the name that a field selector requires, if it requires one. Authorization of a list or watch with such a
/// selector takes it as the name of the object.
pub(crate) fn name_of(fields: &str) -> Option<String> {
    let requirements = field::terms(fields)?;
    let name = requirements.into_iter().find(|requirement| requirement.equal && requirement.path == "metadata.name")?;
    (!name.value.is_empty()).then_some(name.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_indexed_by_an_exact_match_only() {
        let cases = [
            ("metadata.name=a", Some("a")),
            ("spec.nodeName=n1,metadata.name==a", Some("a")),
            ("metadata.name!=a", None),
            ("metadata.name=", None),
            ("", None),
            ("nonsense", None),
        ];
        for (fields, name) in cases {
            assert_eq!(name_of(fields).as_deref(), name, "{fields}");
        }
    }
}
