//! Table-driven validation: the enums of the `OpenAPI` document (`data/types.json`) and the tags of declarative
//! validation (`+k8s:…` in k8s.io/api, `data/validation.json`).
//!
//! Rules without a tag are functions in `kinds`, which run after this walk over the object.
//!
//! The tables are computed once per process, from the schemas of all built-in types. Types without
//! a rule, and without a field that leads to one, are left out: the walk visits only parts of an
//! object that can fail. A path is built as a linked list on the stack and becomes a string only
//! for an error.
//!
//! Per field the checks run in this order. The first three end the validation of the field, apart from a forbidden member:
//!
//! - immutability, on update (`FieldValueInvalid`);
//! - presence: `required`, and membership in a discriminated union (`FieldValueRequired`,
//!   `FieldValueForbidden`);
//! - the number of items (`FieldValueTooMany`);
//! - the value: enum, bounds, length, format, uniqueness;
//! - the fields of the value, if it is an object, or of its items.
//!
//! `write/validate.rs` calls this for every create and update of a built-in kind.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::LazyLock,
};

use serde::Deserialize;
use serde_json::Value;

use crate::{
    field_errors::{Errors, pairs, text},
    schema::{Schema, name_of},
    validation::{entries, format::Format},
};

/// The prefix of type names in the `OpenAPI` document. Tables here leave it out.
const PACKAGE: &str = "io.k8s.api.";
/// Fields with an enum or a tag whose validation is a function of the kind. Functions take the values from [`values`].
///
/// Pairs of type and fields. Each entry has its reason: the error has another path, another type or another set of
/// values than the generic rule would produce, or the field is not validated at all. Leaving a field out removes all
/// its tags, and its inner type is not visited through this field.
const BY_FUNCTION: &[(&str, &[&str])] = &[
    // Version 1 rejects `Some` and `Unknown`, which the document lists for older versions.
    ("admissionregistration.v1.MutatingWebhook", &["sideEffects"]),
    ("admissionregistration.v1.ValidatingWebhook", &["sideEffects"]),
    // The error is at the whole strategy.
    ("apps.v1.DaemonSetUpdateStrategy", &["type"]),
    ("apps.v1.DeploymentStrategy", &["type"]),
    ("apps.v1.StatefulSetUpdateStrategy", &["type"]),
    // The error is `FieldValueInvalid`.
    ("apps.v1.StatefulSetSpec", &["podManagementPolicy"]),
    ("core.v1.NodeSelectorRequirement", &["operator"]),
    ("core.v1.ResourceQuotaSpec", &["scopes"]),
    ("core.v1.ScopedResourceSelectorRequirement", &["operator", "scopeName"]),
    // The error is at the list.
    ("core.v1.PersistentVolumeClaimSpec", &["accessModes"]),
    ("core.v1.PersistentVolumeSpec", &["accessModes"]),
    // The error is at the list, without the index of the mount.
    ("core.v1.VolumeMount", &["mountPropagation"]),
    // The error is at `metadata.taints`.
    ("core.v1.Taint", &["effect"]),
    // `Gt` and `Lt` need the feature gate `TaintTolerationComparisonOperators`.
    ("core.v1.Toleration", &["operator"]),
    // Dropped without the feature gate `ContainerStopSignals`, after the enums are validated.
    ("core.v1.Lifecycle", &["stopSignal"]),
    // The empty string is in the document but rejected.
    ("core.v1.ServiceSpec", &["ipFamilies", "ipFamilyPolicy"]),
    // The empty string is `FieldValueNotSupported`, though the field is required.
    ("core.v1.TopologySpreadConstraint", &["whenUnsatisfiable"]),
    ("networking.v1.HTTPIngressPath", &["pathType"]),
    // An update only validates that the field is unchanged.
    ("scheduling.v1.PriorityClass", &["preemptionPolicy"]),
    // Most fields of an inline volume are forbidden, not validated.
    ("storage.v1.VolumeAttachmentSource", &["inlineVolumeSpec"]),
    // The reference is validated only in `spec.metrics`.
    ("autoscaling.v2.ObjectMetricStatus", &["describedObject"]),
];

/// Optional enums whose empty string means that the field is unset; others are pointers in Go, where it is a value.
///
/// Pairs of type and field. In Go, a string field without a pointer cannot distinguish an absent value from an empty
/// one. An empty string is therefore accepted although the enum does not list it.
const UNSET_WHEN_EMPTY: &[(&str, &str)] = &[
    ("admissionregistration.v1.MutatingAdmissionPolicySpec", "reinvocationPolicy"),
    ("core.v1.PodSpec", "preemptionPolicy"),
    ("core.v1.ServiceSpec", "externalTrafficPolicy"),
    ("core.v1.Toleration", "effect"),
    ("storage.v1.StorageClass", "reclaimPolicy"),
];

/// The tags of one field.
///
/// Read from `data/validation.json`, which is generated from the Go sources. Unknown tags fail the
/// parsing, so that a newer file with tags that this code ignores cannot go unnoticed.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a tag")]
struct FieldTags {
    /// The field must have a value other than Go's zero value (`+k8s:required`).
    required: bool,
    /// The field cannot change after creation, not even if it was absent (`+k8s:immutable`).
    immutable: bool,
    /// The field may be set and cleared, but not changed (`update=NoModify`).
    no_modify: bool,
    /// Exactly one of the union members of a type must be set.
    union_member: bool,
    /// The discriminator of a union: its value decides which other fields are set. The `member` map of these fields has
    /// the values as keys; the key `*` stands for all other values.
    discriminator: bool,
    /// The presence of this field by value of the discriminator. A value without an entry has no
    /// rule.
    member: BTreeMap<String, Presence>,
    /// Inclusive lower bound of a number (`+k8s:minimum`).
    minimum: Option<i64>,
    /// Inclusive upper bound of a number (`+k8s:maximum`).
    maximum: Option<i64>,
    /// Maximum number of items of a list (`+k8s:maxItems`). A longer list gets only this error.
    max_items: Option<usize>,
    /// In characters.
    ///
    /// A string at the bound is valid (`+k8s:maxLength`). The message still counts in bytes.
    max_length: Option<usize>,
    /// In bytes of UTF-8 (`+k8s:maxBytes`).
    max_bytes: Option<usize>,
    /// The format of a string (`+k8s:format`).
    format: Option<Format>,
    /// The format of the keys of a map (`+k8s:eachKey=+k8s:format`). Errors are at the map.
    format_of_keys: Option<Format>,
    /// The fields that identify an item; empty if whole items are compared.
    ///
    /// Missing key fields count as empty strings. The field is `+k8s:listType=map` with its
    /// `+k8s:listMapKey`s, or `+k8s:unique`.
    unique: Option<Vec<String>>,
    /// The enum of the `OpenAPI` document applies.
    ///
    /// Only needed in statuses: elsewhere an enum of the document applies without a tag.
    r#enum: bool,
    /// The allowed strings, in the order of the document, which is the order in the error. Empty
    /// without an enum. Filled in after parsing.
    #[serde(skip)]
    values: Vec<&'static str>,
    /// An empty string skips the value rules (see `UNSET_WHEN_EMPTY`). Filled in after parsing.
    #[serde(skip)]
    unset_when_empty: bool,
}

/// The presence of a member of a union, for one value of the discriminator.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Presence {
    /// The member may be set.
    Optional,
    /// The member must be set, else `FieldValueRequired`.
    Required,
    /// The member must be absent, else `FieldValueForbidden`.
    Forbidden,
}

/// One type of `data/validation.json` with the tags of its fields, by JSON name.
#[derive(Deserialize)]
struct Tagged {
    #[serde(borrow)]
    name: &'static str,
    fields: BTreeMap<&'static str, FieldTags>,
}

/// The fields of a type that have rules, or whose types have.
#[derive(Default)]
struct Type {
    /// In the order of the `OpenAPI` document. Fields that cannot fail are left out.
    fields: Vec<Field>,
}

/// One field of a type: its rules, and the type that its value has.
struct Field {
    /// The JSON name.
    name: &'static str,
    /// Default for a field that only leads to a type with rules.
    rule: FieldTags,
    /// One value, a list or a map; determines the paths of the inner values.
    shape: Cardinality,
    /// The type of the field, or of its items or values.
    inner: Option<&'static str>,
}

/// The shape of a field, which determines how the walk enters it.
#[derive(Clone, Copy)]
enum Cardinality {
    /// A single value; its path is the path of the field.
    One,
    /// A list; items have an index in their path: `[0]`.
    List,
    /// A map with free keys; values have the key in their path: `[key]`.
    Map,
}

/// The rules of all types, by full name. Built at first use.
///
/// The second half is a fixed point: a type is kept if one of its fields has a rule or leads to a
/// type that is kept. Types can contain themselves (JSON schemas of CRDs do), so a plain recursion
/// would not end. Each round can only add types, so the loop ends after at most as many rounds as
/// there are types.
static TYPES: LazyLock<HashMap<&'static str, Type>> = LazyLock::new(|| {
    let tagged: Vec<Tagged> =
        serde_json::from_str(include_str!("../../data/validation.json")).expect("the file is generated and tested");
    let tags: HashMap<_, _> = tagged.into_iter().map(|tagged| (tagged.name, tagged.fields)).collect();
    let mut all: HashMap<&'static str, Vec<Field>> = HashMap::new();
    for name in Schema::type_names().filter(|name| name.starts_with(PACKAGE)) {
        let Some(schema) = Schema::named(name) else { continue };
        let own = tags.get(name);
        all.insert(
            name,
            schema.properties().filter_map(|(field, of)| self::field(name, schema, own, field, of)).collect(),
        );
    }
    // Keeps only types that lead to a rule.
    let mut types_with_rules: HashSet<&str> = HashSet::new();
    loop {
        let leads =
            |field: &Field| field.has_rule() || field.inner.is_some_and(|inner| types_with_rules.contains(inner));
        let found: HashSet<&str> =
            all.iter().filter(|(_, fields)| fields.iter().any(leads)).map(|(name, _)| *name).collect();
        if found.len() == types_with_rules.len() {
            break;
        }
        types_with_rules = found;
    }
    let leads = |field: &Field| field.has_rule() || field.inner.is_some_and(|inner| types_with_rules.contains(inner));
    let types = all.into_iter().filter(|(name, _)| types_with_rules.contains(name));
    types.map(|(name, fields)| (name, Type { fields: fields.into_iter().filter(leads).collect() })).collect()
});

/// Returns a field with its rules; `None` if its validation is a function of the kind.
///
/// `tags` are those of the whole type. A field of an enum type that the schema requires is also
/// required here, because upstream's enum validation reports an empty string as
/// `FieldValueRequired`.
fn field(
    type_name: &'static str,
    parent: Schema<'static>,
    tags: Option<&BTreeMap<&'static str, FieldTags>>,
    name: &'static str,
    schema: Schema<'static>,
) -> Option<Field> {
    let short = type_name.strip_prefix(PACKAGE).unwrap_or(type_name);
    if BY_FUNCTION.iter().any(|(by, fields)| *by == short && fields.contains(&name)) {
        return None;
    }
    let (shape, item_schema) = match (schema.items(), schema.additional_properties()) {
        (Some(item), _) => (Cardinality::List, item),
        (None, Some(value)) => (Cardinality::Map, value),
        (None, None) => (Cardinality::One, schema),
    };
    let mut rule = tags.and_then(|tags| tags.get(name)).cloned().unwrap_or_default();
    // kube-apiserver does not validate enums of statuses without a tag.
    if rule.r#enum || !type_name.ends_with("Status") {
        rule.values = values_of(item_schema);
        rule.required |= !rule.values.is_empty() && parent.requires(name);
    }
    rule.unset_when_empty = UNSET_WHEN_EMPTY.contains(&(short, name));
    Some(Field { name, rule, shape, inner: item_schema.name() })
}

/// Returns the strings of the schema's `enum`, empty if it has none.
fn values_of(schema: Schema<'static>) -> Vec<&'static str> {
    schema.json().get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the values of an enum in the `OpenAPI` document, for a function that validates the field.
///
/// `type_name` has no package prefix, such as `core.v1.Taint`. For a list or map the values are those of its items.
/// Debug builds panic if the field has no enum, so a test that reaches the rule finds a misspelt name. Release builds
/// return an empty list, with which every value is unsupported.
pub(crate) fn values(type_name: &str, field: &str) -> Vec<&'static str> {
    let schema = Schema::named(&format!("{PACKAGE}{type_name}")).and_then(|schema| schema.property(field));
    let item_schema = schema.map(|schema| schema.items().or_else(|| schema.additional_properties()).unwrap_or(schema));
    let found = item_schema.map(values_of).unwrap_or_default();
    debug_assert!(!found.is_empty(), "{type_name}.{field} has no enum");
    found
}

/// Validates an object without its status. `old` is the object before an update. Custom resources have no rules here.
///
/// Errors of the status are left to `validate_status`: a write of the spec drops the client's
/// status, and kube-apiserver does not validate a status that it does not store.
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
        let path = Path { parent: None, part: PathSegment::Field(field.name) };
        field.validate(declared, old, object, path, errors);
    }
}

/// The path of a field, as a list through the calls that lead to it. It becomes a string only for an error.
#[derive(Clone, Copy)]
struct Path<'a> {
    /// The path of the value that contains this one; `None` for a top-level field.
    parent: Option<&'a Path<'a>>,
    /// The last step.
    part: PathSegment<'a>,
}

/// One step of a path.
#[derive(Clone, Copy)]
enum PathSegment<'a> {
    /// A field, `.name`; the first one has no dot.
    Field(&'a str),
    /// An item of a list, `[0]`.
    Index(usize),
    /// A value of a map, `[key]`, without quotes as upstream prints it.
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// Returns the path with one more step. It borrows from this one, so no step allocates.
    fn then(&'a self, part: PathSegment<'a>) -> Self {
        Path { parent: Some(self), part }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match (self.part, self.parent) {
            (PathSegment::Field(name), None) => f.write_str(name),
            (PathSegment::Field(name), Some(_)) => write!(f, ".{name}"),
            (PathSegment::Index(index), _) => write!(f, "[{index}]"),
            (PathSegment::Key(key), _) => write!(f, "[{key}]"),
        }
    }
}

/// Validation of one value against the rules of its type.
impl Type {
    /// Validates the fields of a value of this type, and the union that they may form.
    ///
    /// `old` is the value at the same path before an update, and `None` on create and within lists
    /// and maps: upstream correlates items only where a tag requires it. A union without a
    /// discriminator reports `FieldValueInvalid` at the value itself unless exactly one member is
    /// set.
    fn validate(&self, old: Option<&Value>, value: &Value, path: Path<'_>, errors: &mut Errors) {
        for field in &self.fields {
            field.validate(self, old, value, path.then(PathSegment::Field(field.name)), errors);
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
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::Number(number) => number.as_i64() == Some(0),
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => matches!(self.shape, Cardinality::Map) && map.is_empty(),
        }
    }

    /// Returns `true` if any rule can fail for a value of this field itself.
    fn has_rule(&self) -> bool {
        let FieldTags { required, immutable, no_modify, union_member, discriminator, ref member, ref values, .. } =
            self.rule;
        let has_flag = required || immutable || no_modify || union_member || discriminator;
        has_flag || !member.is_empty() || !values.is_empty() || self.rule.restricts()
    }

    /// Validates the field of `object`. An error about presence or length is the only error reported for the field.
    ///
    /// `object_type` is the type of `object`, which has the discriminator. An unchanged immutable value is not
    /// validated again: it was valid when it was set, and rules may have become stricter since. An absent optional
    /// value is valid. Other values are checked by their own rules, and then their fields are validated.
    fn validate(&self, object_type: &Type, old: Option<&Value>, object: &Value, path: Path<'_>, errors: &mut Errors) {
        let (rule, value, old) = (&self.rule, &object[self.name], old.map(|old| &old[self.name]));
        if let Some(old) = old {
            let may_change = rule.no_modify && (old.is_null() || value.is_null());
            if (rule.immutable || (rule.no_modify && !may_change)) && old != value {
                return errors.invalid(&path.to_string(), value, "field is immutable");
            }
            // The value was validated when it was set.
            if rule.immutable || (rule.no_modify && !may_change) {
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
        let Some(inner) = self.inner.and_then(|inner| TYPES.get(inner)) else { return };
        match self.shape {
            Cardinality::One if value.is_object() => inner.validate(old, value, path, errors),
            Cardinality::One => {}
            Cardinality::List => {
                for (index, item) in entries(value) {
                    inner.validate(None, item, path.then(PathSegment::Index(index)), errors);
                }
            }
            Cardinality::Map => {
                for (key, item) in pairs(value) {
                    inner.validate(None, item, path.then(PathSegment::Key(key)), errors);
                }
            }
        }
    }
}

impl FieldTags {
    /// Returns `true` if the rule restricts a value that is set.
    ///
    /// The caller checks presence, immutability and enums.
    fn restricts(&self) -> bool {
        let numbers = [self.minimum, self.maximum];
        let lengths = [self.max_items, self.max_length, self.max_bytes];
        numbers.iter().any(Option::is_some)
            || lengths.iter().any(Option::is_some)
            || self.format.is_some()
            || self.format_of_keys.is_some()
            || self.unique.is_some()
    }

    /// Validates a value that is set.
    ///
    /// Each rule reports independently of the others. Rules for other types of values do not apply:
    /// a bound of a number ignores a string. Quantities are strings and have no bounds here.
    fn validate(&self, value: &Value, path: Path<'_>, errors: &mut Errors) {
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
            format.validate(value, &path.to_string(), errors);
        }
        if let Some(format) = self.format_of_keys {
            pairs(value).for_each(|(key, _)| format.validate(&key.into(), &path.to_string(), errors));
        }
        if let Some(keys) = &self.unique {
            validate_unique(keys, value, path, errors);
        }
    }

    /// Validates a value against the enum. For a list, each item is checked and reported at its index.
    fn validate_enum(&self, value: &Value, path: Path<'_>, errors: &mut Errors) {
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    errors.one_of(&path.then(PathSegment::Index(index)).to_string(), item, &self.values);
                }
            }
            _ => errors.one_of(&path.to_string(), value, &self.values),
        }
    }
}

/// Reports each item that has the same keys as one before it. Without keys, whole items are compared.
fn validate_unique(keys: &[String], list: &Value, path: Path<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (index, item) in entries(list) {
        let of_keys = || keys.iter().map(|key| (key.as_str(), text(&item[key]))).collect::<Value>().to_string();
        if !seen.insert(if keys.is_empty() { item.to_string() } else { of_keys() }) {
            errors.duplicate(&path.then(PathSegment::Index(index)).to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
            let schema = Schema::named(&format!("{PACKAGE}{type_name}")).unwrap_or_else(|| panic!("{type_name}"));
            for field in *fields {
                let property = schema.property(field).unwrap_or_else(|| panic!("{type_name}.{field}"));
                let item_schema = property.items().unwrap_or(property);
                assert!(
                    !values_of(item_schema).is_empty() || item_schema.name().is_some(),
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
            let schema = Schema::named(name).unwrap_or_else(|| panic!("{name}"));
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
