//! `Field`: a value under validation with its path, and the errors of its object. `rules` has the validation methods.

mod rules;

use std::{
    cell::Cell,
    fmt::{self, Display},
    ops::Deref,
};

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    go,
};

/// A field: its value, its path, and the errors of its object. It dereferences to its value.
///
/// Rules are methods ([`rules`]). `field["name"]` is the value of a field below this one, and `field.at("name")` is that field.
///
/// ```text
/// let port = service.at("spec").at("ports").items().next()?;   // spec.ports[0]
/// port.at("port").in_range(1, 65_535);                          // Invalid at spec.ports[0].port
/// ```
#[derive(Clone)]
pub(crate) struct Field<'a> {
    value: &'a Value,
    path: String,
    /// Shared by all fields of the object. A rule takes the list out of the cell while it adds to it.
    errors: &'a Cell<Errors>,
}

impl Deref for Field<'_> {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.value
    }
}

impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.value)
    }
}

impl<'a> Field<'a> {
    /// Creates the field of a value. The path of a whole object is empty.
    pub(crate) fn new(value: &'a Value, path: impl Into<String>, errors: &'a mut Errors) -> Self {
        Self { value, path: path.into(), errors: Cell::from_mut(errors) }
    }

    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the string, or the empty one for another value.
    pub(crate) fn text(&self) -> &'a str {
        text(self.value)
    }

    /// Returns `true` for an absent field, an empty string, an empty list and an empty map.
    pub(crate) fn is_empty(&self) -> bool {
        go::is_empty(self.value)
    }

    /// Returns the field with this name below this one.
    pub(crate) fn at(&self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Self { value: &self.value[name], path, errors: self.errors }
    }

    /// Returns the entry of a map with this key, such as `metadata.labels[app]`.
    pub(crate) fn at_key(&self, key: &str) -> Self {
        Self { value: &self.value[key], path: format!("{}[{key}]", self.path), errors: self.errors }
    }

    /// Returns the item of a list with this index, such as `spec.ports[0]`.
    pub(crate) fn index(&self, index: usize) -> Self {
        Self { value: &self.value[index], path: format!("{}[{index}]", self.path), errors: self.errors }
    }

    /// Returns the same field with another value, such as its default.
    pub(crate) fn with<'b>(&'b self, value: &'b Value) -> Field<'b> {
        Field { value, path: self.path.clone(), errors: self.errors }
    }

    /// Returns the field with this name below the path of this one, with the value of another field. Upstream reports
    /// some errors of items at their list.
    pub(crate) fn at_with<'b>(&'b self, name: &str, value: &'b Value) -> Field<'b> {
        Field { value, ..self.at(name) }
    }

    /// Iterates over the items of a list, at paths such as `spec.ports[0]`; another value has none.
    ///
    /// A list that was already reported as too long has none either. kube-apiserver skips such lists too, to bound CPU
    /// time.
    pub(crate) fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        let (errors, path) = (self.errors, self.path.clone());
        let items = self.value.as_array().map_or(&[][..], |items| &items[..]);
        let items =
            if items.is_empty() || self.with_errors(|errors, path| errors.is_too_long(path)) { &[] } else { items };
        let item = move |(index, value)| Self { value, path: format!("{path}[{index}]"), errors };
        items.iter().enumerate().map(item)
    }

    /// Iterates over the entries of a map, each with its key; another value has none.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let (errors, path) = (self.errors, self.path.clone());
        let entry = move |(key, value): (&'a String, &'a Value)| {
            (key.as_str(), Self { value, path: format!("{path}[{key}]"), errors })
        };
        self.value.as_object().into_iter().flatten().map(entry)
    }

    /// Calls a rule.
    pub(crate) fn check(&self, rule: impl FnOnce(&Self)) {
        rule(self);
    }

    /// Calls a rule for each of the fields with these names below this one.
    pub(crate) fn check_children(&self, names: &[&str], rule: impl Fn(&Self)) {
        for name in names {
            rule(&self.at(name));
        }
    }

    /// Calls a rule; returns `true` if it added no errors.
    pub(crate) fn passes(&self, rule: impl FnOnce(&Self)) -> bool {
        self.is_valid_by(|| rule(self))
    }

    /// Calls the rules of an optional field if it is present, even with an empty value.
    pub(crate) fn when_present(&self, rules: impl FnOnce(&Self)) {
        if !self.value.is_null() {
            rules(self);
        }
    }

    /// Returns `true` if the rules of `validate` add no error to the object.
    pub(crate) fn is_valid_by(&self, validate: impl FnOnce()) -> bool {
        let n_errors = || self.with_errors(|errors, _path| errors.len());
        let before = n_errors();
        validate();
        n_errors() == before
    }

    /// Removes all errors found so far below this field: errors of tags, about a value that kube-apiserver does not
    /// validate. Call it before rules add errors there.
    pub(crate) fn discard_errors_below(&self) {
        self.discard_errors_below_each([self.clone()]);
    }

    /// Discards the errors below several fields at once, in one pass over the errors.
    pub(crate) fn discard_errors_below_each(&self, fields: impl IntoIterator<Item = Self>) {
        let paths = fields.into_iter().map(|field| field.path).collect();
        self.with_errors(|errors, _path| errors.discard_errors_below(&paths));
    }

    /// Passes the errors and the path to a function. It must not add errors through a `Field`: they would be lost.
    pub(crate) fn with_errors<T>(&self, function: impl FnOnce(&mut Errors, &str) -> T) -> T {
        let mut errors = self.errors.take();
        let result = function(&mut errors, &self.path);
        let lost = self.errors.replace(errors);
        debug_assert!(lost.is_empty(), "errors were added through a field at the same time: {lost:?}");
        result
    }

    pub(crate) fn invalid(&self, detail: impl Display) {
        self.with_errors(|errors, path| errors.invalid(path, self.value, &detail.to_string()));
    }

    // The methods `…_if` take a `bool`. It is the condition of the rule, computed at the call, and the name of the
    // method says what `true` means. An enum would only repeat the name.
    pub(crate) fn invalid_if(&self, is_invalid: bool, detail: impl Display) {
        if is_invalid {
            self.invalid(detail);
        }
    }

    /// Reports an invalid value without showing it, because it is long or confidential.
    pub(crate) fn invalid_without_value(&self, detail: impl Display) {
        self.with_errors(|errors, path| errors.invalid_without_value(path, &detail.to_string()));
    }

    pub(crate) fn invalid_without_value_if(&self, is_invalid: bool, detail: impl Display) {
        if is_invalid {
            self.invalid_without_value(detail);
        }
    }

    /// Reports a value that is longer than its limit in bytes.
    pub(crate) fn too_long(&self, most: usize) {
        self.with_errors(|errors, path| errors.too_long(path, most));
    }

    pub(crate) fn required(&self) {
        self.with_errors(|errors, path| errors.required(path, ""));
    }

    pub(crate) fn required_if(&self, is_required: bool) {
        if is_required {
            self.required();
        }
    }

    /// Reports a required value with a detail, for what the name of the field does not tell.
    pub(crate) fn required_with(&self, detail: impl Display) {
        self.with_errors(|errors, path| errors.required(path, &detail.to_string()));
    }

    pub(crate) fn required_with_if(&self, is_required: bool, detail: impl Display) {
        if is_required {
            self.required_with(detail);
        }
    }

    pub(crate) fn forbidden(&self, detail: impl Display) {
        self.with_errors(|errors, path| errors.forbidden(path, &detail.to_string()));
    }

    pub(crate) fn forbidden_if(&self, is_forbidden: bool, detail: impl Display) {
        if is_forbidden {
            self.forbidden(detail);
        }
    }

    pub(crate) fn duplicate(&self) {
        self.with_errors(Errors::duplicate);
    }

    pub(crate) fn duplicate_if(&self, is_duplicate: bool) {
        if is_duplicate {
            self.duplicate();
        }
    }

    pub(crate) fn not_found(&self) {
        self.with_errors(|errors, path| errors.not_found(path, self.value));
    }

    pub(crate) fn not_found_if(&self, is_missing: bool) {
        if is_missing {
            self.not_found();
        }
    }

    pub(crate) fn unsupported(&self, supported: &[&str]) {
        self.with_errors(|errors, path| errors.unsupported(path, self.value, supported));
    }

    pub(crate) fn unsupported_if(&self, is_unsupported: bool, supported: &[&str]) {
        if is_unsupported {
            self.unsupported(supported);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_have_the_path_of_their_field() {
        let object =
            json!({ "spec": { "ports": [{ "port": 0, "name": "a" }, { "name": "a" }], "labels": { "app": 1 } } });
        let mut errors = Errors::default();
        let spec = Field::new(&object, "", &mut errors).at("spec");
        for port in spec.at("ports").items() {
            port.at("port").in_range(1, 65_535);
        }
        spec.at("ports").unique(|port| &port["name"]);
        spec.at("type").required_if(true);
        spec.at("labels").entries().for_each(|(_key, label)| label.invalid("must be a string"));
        spec.at("ports").check(|ports| ports.forbidden(ports.value()));
        let found: Vec<_> = errors.iter().map(|error| (error.reason, error.field.as_str())).collect();
        let expected = [
            ("FieldValueInvalid", "spec.ports[0].port"),
            ("FieldValueDuplicate", "spec.ports[1]"),
            ("FieldValueRequired", "spec.type"),
            ("FieldValueInvalid", "spec.labels[app]"),
            ("FieldValueForbidden", "spec.ports"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn errors_below_discarded_fields_are_removed() {
        let object = json!({});
        let mut errors = Errors::default();
        let field = Field::new(&object, "", &mut errors);
        for path in ["a", "a.b", "a[0].c", "ab", "c.a", "d[x.y].e", "d[x.z].e"] {
            field.at(path).required();
        }
        field.discard_errors_below_each(["a", "d[x.y]"].map(|path| field.at(path)));
        let found: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(found, ["a", "ab", "c.a", "d[x.z].e"]);
    }

    #[test]
    fn items_of_too_long_list_are_skipped() {
        let list = json!([1, 2]);
        let mut errors = Errors::default();
        let field = Field::new(&list, "list", &mut errors);
        assert_eq!(field.items().count(), 2);
        field.max_items(1);
        assert_eq!(field.items().count(), 0);
    }
}
