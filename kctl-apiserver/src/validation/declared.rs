//! Table-driven validation: the enums of the `OpenAPI` document (`data/types.json`) and the tags of declarative
//! validation (`+k8s:…` in k8s.io/api, `data/validation.json`).
//!
//! Rules without a tag are functions in `kinds`, which run after this walk over the object.
//!
//! The tables are computed once per process, from the schemas of all built-in types. Types without a rule, and without
//! a field that leads to one, are left out. The walk visits only parts of an object that can fail. A path is built as a
//! linked list on the stack and becomes a string only for an error.
//!
//! Per field the checks run in this order. The first three end the validation of the field, apart from a forbidden
//! member:
//!
//! - immutability, on update (`FieldValueInvalid`);
//! - presence: `required`, and membership in a discriminated union (`FieldValueRequired`,
//!   `FieldValueForbidden`);
//! - the number of items (`FieldValueTooMany`);
//! - the value: enum, bounds, length, format, uniqueness;
//! - the fields of the value, if it is an object, or of its items.
//!
//! The table at the head of `write/validate.rs` lists the writes that are validated here.

mod tags;
mod types;

use std::collections::HashSet;

use serde_json::Value;

pub(crate) use self::types::values;
use self::{
    tags::{FieldTags, Presence},
    types::{Cardinality, Field, TYPES, Type},
};
use crate::{
    field,
    field_errors::{Errors, pairs, text},
    go,
    json_path::{JsonPath, entries},
    schema::name_of,
};

/// Validates an object without its status. `old` is the object before an update. Custom resources have no rules here.
///
/// Errors of the status are left to `validate_status`. A write of the spec drops the client's status, and
/// kube-apiserver does not validate a status that it does not store.
pub(crate) fn validate(old: Option<&Value>, object: &Value, errors: &mut Errors) {
    validate_fields(old, object, |name| name != "status", errors);
}

/// Validates the status of an object.
///
/// `old` is the stored object. Only a write of the subresource `status` calls it.
pub(crate) fn validate_status(old: &Value, object: &Value, errors: &mut Errors) {
    validate_fields(Some(old), object, |name| name == "status", errors);
}

/// Looks up the type by `apiVersion` and `kind`. An object of an unknown type, such as a custom
/// resource, has no rules. `is_validated` filters the top-level fields by name.
fn validate_fields(old: Option<&Value>, object: &Value, is_validated: fn(&str) -> bool, errors: &mut Errors) {
    let type_name = name_of(text(&object["apiVersion"]), text(&object["kind"]));
    let Some(declared) = type_name.and_then(|name| TYPES.get(name)) else { return };
    for field in declared.fields.iter().filter(|field| is_validated(field.name)) {
        let path = JsonPath::Field(&JsonPath::Root, field.name);
        field.validate(declared, old, object, &path, errors);
    }
}

/// Validation of one value against the rules of its type.
impl Type {
    /// Validates the fields of a value of this type, and the union that they may form.
    ///
    /// `old` is the value at the same path before an update, and `None` on create and within lists and maps. Upstream
    /// correlates items only where a tag requires it. A union without a discriminator reports `FieldValueInvalid` at
    /// the value itself unless exactly one member is set.
    fn validate(&self, old: Option<&Value>, value: &Value, path: &JsonPath<'_>, errors: &mut Errors) {
        for field in &self.fields {
            field.validate(self, old, value, &JsonPath::Field(path, field.name), errors);
        }
        let mut members = self.fields.iter().filter(|field| field.rule.union_member).peekable();
        if members.peek().is_some() && members.filter(|member| !value[member.name].is_null()).count() != 1 {
            errors.invalid(&path.to_string(), value, "exactly one value must be specified");
        }
    }

    /// Returns the value of the field that decides which members are set.
    ///
    /// Empty if the type has no discriminator, or if the field is absent.
    fn discriminator<'v>(&self, value: &'v Value) -> &'v str {
        let field = self.fields.iter().find(|field| field.rule.discriminator);
        field.map_or("", |field| text(&value[field.name]))
    }
}

impl Field {
    /// Returns `true` for the values that `required` rejects: the zero values of Go. An object is a pointer in Go.
    ///
    /// An empty object is set, unless the field is a map: a Go map is unset if it has no entries.
    /// `false` and 0 are unset, so `required` on a plain number rejects 0; the tags of such fields
    /// take care of that.
    fn is_unset(&self, value: &Value) -> bool {
        match value {
            Value::Object(map) => matches!(self.shape, Cardinality::Map) && map.is_empty(),
            value => go::is_zero(value),
        }
    }

    /// Validates the field of `object`. An error about presence or length is the only error reported for the field.
    ///
    /// `object_type` is the type of `object`, which has the discriminator. An unchanged immutable value is not
    /// validated again: it was valid when it was set, and rules may have become stricter since. An absent optional
    /// value is valid. Other values are checked by their own rules, and then their fields are validated.
    fn validate(
        &self,
        object_type: &Type,
        old: Option<&Value>,
        object: &Value,
        path: &JsonPath<'_>,
        errors: &mut Errors,
    ) {
        let (rule, value, old) = (&self.rule, &object[self.name], old.map(|old| &old[self.name]));
        if let Some(old) = old {
            let is_set_or_cleared = old.is_null() || value.is_null();
            if rule.immutable || (rule.no_modify && !is_set_or_cleared) {
                // An unchanged value was validated when it was set.
                if old != value {
                    errors.invalid(&path.to_string(), value, "field is immutable");
                }
                return;
            }
        }
        if !rule.member.is_empty() {
            match rule.member.get(object_type.discriminator(object)).or_else(|| rule.member.get("*")) {
                Some(Presence::Required) if value.is_null() => return errors.required(&path.to_string(), ""),
                Some(Presence::Forbidden) if !value.is_null() => errors.forbidden(&path.to_string(), ""),
                _ => {}
            }
        }
        if rule.required && self.is_unset(value) {
            return errors.required(&path.to_string(), "");
        }
        if value.is_null() {
            return;
        }
        let found = value.as_array().map_or(0, Vec::len);
        if let Some(most) = rule.max_items.filter(|most| found > *most) {
            return errors.too_many(&path.to_string(), found, most);
        }
        if !(rule.unset_when_empty && value == "") {
            rule.validate(value, path, errors);
        }
        self.validate_inner(old, value, path, errors);
    }

    /// Validates the fields of the value, or of its items. Only a single object has an old value at its place.
    fn validate_inner(&self, old: Option<&Value>, value: &Value, path: &JsonPath<'_>, errors: &mut Errors) {
        let Some(inner) = self.inner.and_then(|inner| TYPES.get(inner)) else { return };
        match self.shape {
            Cardinality::One if value.is_object() => inner.validate(old, value, path, errors),
            Cardinality::One => {}
            Cardinality::List => {
                for (index, item) in entries(value) {
                    inner.validate(None, item, &JsonPath::Item(path, index), errors);
                }
            }
            Cardinality::Map => {
                for (key, item) in pairs(value) {
                    inner.validate(None, item, &JsonPath::Key(path, key), errors);
                }
            }
        }
    }
}

impl FieldTags {
    /// Validates a value that is set.
    ///
    /// Each rule reports independently of the others. Rules for other types of values do not apply:
    /// a bound of a number ignores a string. Quantities are strings and have no bounds here.
    fn validate(&self, value: &Value, path: &JsonPath<'_>, errors: &mut Errors) {
        if !self.values.is_empty() {
            self.validate_enum(value, path, errors);
        }
        if let Some(number) = value.as_i64() {
            if let Some(least) = self.minimum.filter(|least| number < *least) {
                errors.invalid(&path.to_string(), value, &format!("must be greater than or equal to {least}"));
            }
            if let Some(most) = self.maximum.filter(|most| number > *most) {
                errors.invalid(&path.to_string(), value, &format!("must be less than or equal to {most}"));
            }
        }
        if let Some(most) = self.max_length.filter(|most| text(value).chars().count() > *most) {
            errors.too_long(&path.to_string(), most);
        }
        if let Some(most) = self.max_bytes.filter(|most| text(value).len() > *most) {
            errors.too_long(&path.to_string(), most);
        }
        if let Some(format) = self.format {
            format.validate(&field::Field::new(value, path.to_string(), errors));
        }
        if let Some(format) = self.format_of_keys {
            for (key, _) in pairs(value) {
                format.validate(&field::Field::new(&key.into(), path.to_string(), errors));
            }
        }
        if let Some(keys) = &self.unique {
            validate_unique(keys, value, path, errors);
        }
    }

    /// Validates a value against the enum. For a list, each item is checked and reported at its index.
    fn validate_enum(&self, value: &Value, path: &JsonPath<'_>, errors: &mut Errors) {
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    errors.one_of(&JsonPath::Item(path, index).to_string(), item, &self.values);
                }
            }
            _ => errors.one_of(&path.to_string(), value, &self.values),
        }
    }
}

/// Reports each item that has the same keys as one before it. Without keys, whole items are compared.
fn validate_unique(keys: &[String], list: &Value, path: &JsonPath<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (index, item) in entries(list) {
        let key_values = || keys.iter().map(|key| (key.as_str(), text(&item[key]))).collect::<Value>().to_string();
        if !seen.insert(if keys.is_empty() { item.to_string() } else { key_values() }) {
            errors.duplicate(&JsonPath::Item(path, index).to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        tags::Tagged,
        types::{BY_FUNCTION, PACKAGE, UNSET_WHEN_EMPTY},
        *,
    };
    use crate::schema::Schema;

    fn found(old: Option<&Value>, object: &Value) -> Vec<(String, &'static str)> {
        let mut errors = Errors::default();
        validate(old, object, &mut errors);
        errors.into_iter().map(|cause| (cause.field, cause.reason)).collect()
    }

    fn error_at(field: &str, reason: &'static str) -> (String, &'static str) {
        (field.to_owned(), reason)
    }

    #[test]
    fn validation_exceptions_have_an_enum_or_nested_type() {
        for (type_name, fields) in BY_FUNCTION {
            let schema = Schema::for_type(&format!("{PACKAGE}{type_name}")).unwrap_or_else(|| panic!("{type_name}"));
            for field in *fields {
                let property = schema.property(field).unwrap_or_else(|| panic!("{type_name}.{field}"));
                let item_schema = property.items().unwrap_or(property);
                assert!(
                    !item_schema.enum_values().is_empty() || item_schema.name().is_some(),
                    "{type_name}.{field} needs no exception"
                );
            }
        }
        for (type_name, field) in UNSET_WHEN_EMPTY {
            assert!(!values(type_name, field).is_empty(), "{type_name}.{field} has no enum");
        }
    }

    #[test]
    fn every_tag_names_a_field_of_a_kind() {
        let tagged: Vec<Tagged> = serde_json::from_str(include_str!("../../data/validation.json")).expect("known tags");
        assert!(tagged.len() > 30);
        for Tagged { name, fields } in tagged {
            let schema = Schema::for_type(name).unwrap_or_else(|| panic!("{name}"));
            for field in fields.keys() {
                assert!(schema.property(field).is_some(), "{name}.{field}");
            }
        }
    }

    #[test]
    fn enums_are_validated_in_templates_not_in_statuses() {
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "restartPolicy": "Often",
            "containers": [{ "ports": [{ "protocol": "tcp" }] }] }, "status": { "phase": "Odd" } });
        let not_supported = "FieldValueNotSupported";
        assert_eq!(
            found(None, &pod),
            [
                error_at("spec.containers[0].ports[0].protocol", not_supported),
                error_at("spec.restartPolicy", not_supported)
            ]
        );
        let mut errors = Errors::default();
        validate_status(&pod, &pod, &mut errors);
        assert!(errors.is_empty());
    }

    /// `validation::status::validate_condition_list` leaves this rule to the tags of the lists that it validates.
    #[test]
    fn repeated_types_of_conditions_are_duplicates() {
        let conditions = json!([{ "type": "A" }, { "type": "A" }]);
        let status = json!({ "conditions": conditions, "devices": [{ "conditions": conditions }] });
        for (api_version, kind, expected) in [
            ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "status.conditions[1]"),
            ("certificates.k8s.io/v1", "PodCertificateRequest", "status.conditions[1]"),
            ("policy/v1", "PodDisruptionBudget", "status.conditions[1]"),
            ("resource.k8s.io/v1", "DeviceTaintRule", "status.conditions[1]"),
            ("resource.k8s.io/v1", "ResourceClaim", "status.devices[0].conditions[1]"),
            ("storagemigration.k8s.io/v1", "StorageVersionMigration", "status.conditions[1]"),
        ] {
            let object = json!({ "apiVersion": api_version, "kind": kind, "status": status });
            let mut errors = Errors::default();
            validate_status(&object, &object, &mut errors);
            let duplicates = errors.into_iter().filter(|error| error.reason == "FieldValueDuplicate");
            let fields: Vec<String> = duplicates.map(|error| error.field).collect();
            assert_eq!(fields, [expected], "{kind}");
        }
    }

    #[test]
    fn immutable_field_is_reported_once() {
        let class =
            |handler: &str| json!({ "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": handler });
        assert_eq!(found(None, &class("")), [error_at("handler", "FieldValueRequired")]);
        assert_eq!(found(None, &class("Run C")), [error_at("handler", "FieldValueInvalid")]);
        assert_eq!(found(Some(&class("runc")), &class("Run C")), [error_at("handler", "FieldValueInvalid")]);
        assert_eq!(found(Some(&class("runc")), &class("runc")), []);
    }

    #[test]
    fn long_list_is_reported_without_its_items() {
        let claim = |n: usize| {
            let requests = vec![json!({ "name": "a" }); n];
            json!({ "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                "spec": { "devices": { "requests": requests } } })
        };
        assert_eq!(found(None, &claim(33)), [error_at("spec.devices.requests", "FieldValueTooMany")]);
        assert_eq!(found(None, &claim(2)), [error_at("spec.devices.requests[1]", "FieldValueDuplicate")]);
    }

    #[test]
    fn discriminator_decides_which_members_are_required_or_forbidden() {
        let level = |spec: Value| json!({ "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration", "spec": spec });
        assert_eq!(found(None, &level(json!({ "type": "Limited" }))), [error_at("spec.limited", "FieldValueRequired")]);
        let both = level(json!({ "type": "Exempt", "exempt": {}, "limited": {} }));
        assert_eq!(found(None, &both), [error_at("spec.limited", "FieldValueForbidden")]);
    }
}
