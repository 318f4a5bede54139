//! The tags of fields in `data/validation.json`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::validation::format::Format;

/// The tags of one field.
///
/// Read from `data/validation.json`, which is generated from the Go sources. Unknown tags fail the
/// parsing, so that a newer file with tags that this code ignores cannot go unnoticed.
#[derive(Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a tag")]
pub(super) struct FieldTags {
    /// The field must have a value other than Go's zero value (`+k8s:required`).
    pub(super) required: bool,
    /// The field cannot change after creation, not even if it was absent (`+k8s:immutable`).
    pub(super) immutable: bool,
    /// The field may be set and cleared, but not changed (`update=NoModify`).
    pub(super) no_modify: bool,
    /// Exactly one of the union members of a type must be set.
    pub(super) union_member: bool,
    /// The discriminator of a union: its value decides which other fields are set. The `member` map of these fields has
    /// the values as keys; the key `*` matches all other values.
    pub(super) discriminator: bool,
    /// The presence of this field by value of the discriminator. A value without an entry has no
    /// rule.
    pub(super) member: BTreeMap<String, Presence>,
    /// Inclusive lower bound of a number (`+k8s:minimum`).
    pub(super) minimum: Option<i64>,
    /// Inclusive upper bound of a number (`+k8s:maximum`).
    pub(super) maximum: Option<i64>,
    /// Maximum number of items of a list (`+k8s:maxItems`). A longer list gets only this error.
    pub(super) max_items: Option<usize>,
    /// Maximum length of a string in characters (`+k8s:maxLength`). The message of the error says bytes.
    pub(super) max_length: Option<usize>,
    /// Maximum length of a string in bytes of UTF-8 (`+k8s:maxBytes`).
    pub(super) max_bytes: Option<usize>,
    /// The format of a string (`+k8s:format`).
    pub(super) format: Option<Format>,
    /// The format of the keys of a map (`+k8s:eachKey=+k8s:format`). Errors are at the map.
    pub(super) format_of_keys: Option<Format>,
    /// The fields that identify an item; empty if whole items are compared.
    ///
    /// Missing key fields count as empty strings. The field is `+k8s:listType=map` with its
    /// `+k8s:listMapKey`s, or `+k8s:unique`.
    pub(super) unique: Option<Vec<String>>,
    /// The enum of the `OpenAPI` document applies.
    ///
    /// Only needed in statuses: elsewhere an enum of the document applies without a tag.
    pub(super) r#enum: bool,
    /// The allowed strings, in the order of the document, which is the order in the error. Empty
    /// without an enum. Filled in after parsing.
    #[serde(skip)]
    pub(super) values: Vec<&'static str>,
    /// An empty string skips the value rules (see `UNSET_WHEN_EMPTY`). Filled in after parsing.
    #[serde(skip)]
    pub(super) unset_when_empty: bool,
}

/// The presence of a member of a union, for one value of the discriminator.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Presence {
    /// The member may be set.
    Optional,
    /// The member must be set, else `FieldValueRequired`.
    Required,
    /// The member must be absent, else `FieldValueForbidden`.
    Forbidden,
}

/// One type of `data/validation.json` with the tags of its fields, by JSON name.
#[derive(Deserialize)]
pub(super) struct Tagged {
    #[serde(borrow)]
    pub(super) name: &'static str,
    pub(super) fields: BTreeMap<&'static str, FieldTags>,
}
