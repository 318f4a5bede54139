//! The part of its objects that a cache keeps: everything, the metadata, or named fields.
//!
//! The cut happens while the JSON is read: values that are not kept are skipped and never allocated.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::Meta;

/// Members of the metadata that are not kept as JSON: [`Meta`] holds them already, and no reader needs `managedFields`.
const DROPPED: [&str; 11] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "finalizers",
    "ownerReferences",
    "managedFields",
];
/// A member of the metadata that [`Meta`] does not hold: it is greater than 0 while a deleted Pod is still running.
const ALWAYS_KEPT: &str = "deletionGracePeriodSeconds";

/// The fields of each object that a cache keeps: the union of what its readers need.
///
/// The metadata in [`Meta`] is always kept. Annotations are kept only if [`metadata`](Self::metadata)
/// or a path asks for them.
///
/// ```
/// use kctl_runtime::object::FieldMask;
///
/// let mut field_mask = FieldMask::fields([vec!["spec", "nodeName"], vec!["status", "phase"]]);
/// field_mask.widen(&FieldMask::fields([["spec", "containers"]]));
/// assert!(!field_mask.is_whole() && !field_mask.is_metadata());
///
/// field_mask.widen(&FieldMask::whole());
/// assert!(field_mask.is_whole());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldMask(Fields);

/// A part of an object: all of it, or some members with a part of each.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fields {
    All,
    Some(BTreeMap<Cow<'static, str>, Fields>),
}

impl FieldMask {
    /// Keeps the whole object, `managedFields` aside. The default of every relation.
    pub fn whole() -> Self {
        Self(Fields::All)
    }

    /// Keeps only the metadata, with its annotations.
    ///
    /// A reflector then requests `PartialObjectMetadata` from the API server, which saves transfer as well
    /// as memory.
    ///
    /// ```
    /// use kctl_runtime::object::FieldMask;
    ///
    /// assert!(FieldMask::metadata().is_metadata());
    /// assert!(FieldMask::fields([["metadata", "annotations"]]).is_metadata());
    /// assert!(!FieldMask::fields([["spec", "replicas"]]).is_metadata());
    /// ```
    pub fn metadata() -> Self {
        Self::fields([["metadata"]])
    }

    /// Keeps the values at these paths, given as JSON field names, in addition to [`Meta`].
    ///
    /// A path ends at a value that is kept with everything in it. A path that the object does not have
    /// keeps nothing. Lists are kept as a whole: a path cannot lead into one.
    pub fn fields<P, N>(paths: impl IntoIterator<Item = P>) -> Self
    where
        P: IntoIterator<Item = N>,
        N: Into<Cow<'static, str>>,
    {
        let mut root = Fields::Some(BTreeMap::new());
        for path in paths {
            let path: Vec<Cow<'static, str>> = path.into_iter().map(Into::into).collect();
            root.add(&path);
        }
        Self(root)
    }

    /// Keeps the fields of `other` as well from now on. Objects that were cut earlier don't get them back.
    pub fn widen(&mut self, other: &Self) {
        self.0.widen(&other.0);
    }

    /// Returns `true` if the whole object is kept.
    pub fn is_whole(&self) -> bool {
        self.0 == Fields::All
    }

    /// Returns `true` if nothing outside of the metadata is kept, so that the server need not send it.
    pub fn is_metadata(&self) -> bool {
        matches!(&self.0, Fields::Some(members) if members.keys().all(|name| name == "metadata"))
    }

    /// Returns the kept part of an object in addition to [`Meta`], or `None` if all of it is kept.
    ///
    /// # Errors
    /// The JSON is broken, or a value on the way to a kept field is not an object.
    pub(super) fn apply(&self, json: &str) -> Result<Option<MaskedFields>, serde_json::Error> {
        let Fields::Some(members) = &self.0 else { return Ok(None) };
        let mut kept = MaskedFields::default();
        let mut reader = serde_json::Deserializer::from_str(json);
        reader.deserialize_map(Root { members, out: &mut kept })?;
        Ok(Some(kept))
    }
}

impl Fields {
    fn add(&mut self, path: &[Cow<'static, str>]) {
        let Self::Some(members) = self else { return };
        match path {
            [] => *self = Self::All,
            [first, rest @ ..] => {
                members.entry(first.clone()).or_insert_with(|| Self::Some(BTreeMap::new())).add(rest);
            }
        }
    }

    fn widen(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::Some(mine), Self::Some(others)) => {
                for (name, fields) in others {
                    mine.entry(name.clone()).and_modify(|mask| mask.widen(fields)).or_insert_with(|| fields.clone());
                }
            }
            (_, other) if *other == Self::All => *self = Self::All,
            _ => {}
        }
    }
}

/// The kept part of an object in addition to [`Meta`], as two lists of JSON members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MaskedFields {
    /// Members of the metadata, separated by commas.
    metadata: String,
    /// Members of the object, separated by commas.
    members: String,
}

impl MaskedFields {
    /// Returns both lists as one string, and the offset at which the second begins.
    pub(super) fn into_text(self) -> (Box<str>, u32) {
        let n_metadata = u32::try_from(self.metadata.len());
        debug_assert!(n_metadata.is_ok(), "an object is no longer than a line of a watch may be");
        ((self.metadata + &self.members).into(), n_metadata.unwrap_or(u32::MAX))
    }
}

/// Puts an object together again from its metadata and its kept members.
pub(super) fn json(meta: &Meta, text: &str, n_metadata: usize) -> String {
    let (metadata, members) = text.split_at_checked(n_metadata).unwrap_or((text, ""));
    let head = meta.members();
    let comma = |text: &str| if text.is_empty() { "" } else { "," };
    format!(r#"{{"metadata":{{{head}{}{metadata}}}{}{members}}}"#, comma(metadata), comma(members))
}

/// Visits the members of an object and writes down those that are kept.
struct Root<'a> {
    members: &'a BTreeMap<Cow<'static, str>, Fields>,
    out: &'a mut MaskedFields,
}

impl<'de> Visitor<'de> for Root<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let fields = self.members.get(&*name);
            if name == "metadata" {
                map.next_value_seed(Metadata { fields, out: &mut self.out.metadata })?;
            } else {
                member(&mut map, &name, fields, &mut self.out.members)?;
            }
        }
        Ok(())
    }
}

/// Visits `metadata`, leaving out the members that [`Meta`] has.
struct Metadata<'a> {
    fields: Option<&'a Fields>,
    out: &'a mut String,
}

impl<'de> DeserializeSeed<'de> for Metadata<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Metadata<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let fields = match self.fields {
                _ if DROPPED.contains(&&*name) => None,
                _ if name == ALWAYS_KEPT => Some(&Fields::All),
                Some(Fields::All) => Some(&Fields::All),
                Some(Fields::Some(members)) => members.get(&*name),
                None => None,
            };
            member(&mut map, &name, fields, self.out)?;
        }
        Ok(())
    }
}

/// Visits an object below the root. An object without kept members is omitted.
struct NestedObject<'a> {
    name: &'a str,
    members: &'a BTreeMap<Cow<'static, str>, Fields>,
    out: &'a mut String,
}

impl<'de> DeserializeSeed<'de> for NestedObject<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NestedObject<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object at `{}`", self.name)
    }

    /// Accepts `null`, which API servers may write for a missing object.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let begin = self.out.len();
        open(self.out, self.name)?;
        self.out.push('{');
        let empty = self.out.len();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            member(&mut map, &name, self.members.get(&*name), self.out)?;
        }
        if self.out.len() == empty {
            self.out.truncate(begin);
        } else {
            self.out.push('}');
        }
        Ok(())
    }
}

/// Reads the value of a member and appends the kept part of it to `out`.
fn member<'de, A: MapAccess<'de>>(
    map: &mut A,
    name: &str,
    fields: Option<&Fields>,
    out: &mut String,
) -> Result<(), A::Error> {
    match fields {
        None => map.next_value::<IgnoredAny>().map(drop),
        Some(Fields::Some(members)) => map.next_value_seed(NestedObject { name, members, out }),
        Some(Fields::All) => {
            let value = map.next_value::<&'de RawValue>()?;
            open(out, name)?;
            out.push_str(value.get());
            Ok(())
        }
    }
}

/// Appends the name of a member, with a comma before it where one is needed.
fn open<E: Error>(out: &mut String, name: &str) -> Result<(), E> {
    if !out.is_empty() && !out.ends_with('{') {
        out.push(',');
    }
    out.push_str(&serde_json::to_string(name).map_err(E::custom)?);
    out.push(':');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Kind, Stored};

    const OBJECT: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"1","resourceVersion":"7","annotations":{"x":"1","y":"2"},"labels":{"é":"\"q\""},"managedFields":[{}]},"spec":{"nodeName":"n","containers":[{"name":"c"}],"a":{"b":{"c":1,"d":2}}},"status":null}"#;

    fn kept(field_mask: &FieldMask, json: &str) -> String {
        let kind = Kind { group: String::new(), version: "v1".into(), kind: "Pod".into(), plural: "pods".into() };
        Stored::accept_masked(&kind, json, field_mask).unwrap().json().into_owned()
    }

    #[test]
    fn mask_keeps_its_fields_and_the_metadata() {
        let head = r#""name":"a","namespace":"b","uid":"1","resourceVersion":"7","labels":{"é":"\"q\""}"#;
        let cases: [(&[&[&str]], String); 6] = [
            (&[], format!(r#"{{"metadata":{{{head}}}}}"#)),
            (&[&["metadata"]], format!(r#"{{"metadata":{{{head},"annotations":{{"x":"1","y":"2"}}}}}}"#)),
            (
                &[&["metadata", "annotations", "y"], &["spec", "nodeName"]],
                format!(r#"{{"metadata":{{{head},"annotations":{{"y":"2"}}}},"spec":{{"nodeName":"n"}}}}"#),
            ),
            (
                &[&["spec", "a", "b", "d"], &["spec", "containers"], &["spec", "absent"], &["status", "phase"]],
                format!(r#"{{"metadata":{{{head}}},"spec":{{"containers":[{{"name":"c"}}],"a":{{"b":{{"d":2}}}}}}}}"#),
            ),
            (
                &[&["spec", "a"], &["spec", "a", "b"]],
                format!(r#"{{"metadata":{{{head}}},"spec":{{"a":{{"b":{{"c":1,"d":2}}}}}}}}"#),
            ),
            (&[&["status"]], format!(r#"{{"metadata":{{{head}}},"status":null}}"#)),
        ];
        for (paths, expected) in cases {
            let field_mask = FieldMask::fields(paths.iter().map(|path| path.iter().copied()));
            assert_eq!(kept(&field_mask, OBJECT), expected, "{paths:?}");
            serde_json::from_str::<serde_json::Value>(&expected).unwrap();
        }
        assert!(kept(&FieldMask::whole(), OBJECT).contains("containers"));
    }

    #[test]
    fn masks_of_several_readers_are_united() {
        let fields = |path: &'static [&'static str]| FieldMask::fields([path.iter().copied()]);
        let mut field_mask = fields(&["spec", "nodeName"]);
        field_mask.widen(&fields(&["spec", "a", "b"]));
        assert_eq!(
            field_mask,
            FieldMask::fields([vec!["spec", "nodeName"], vec!["spec", "a", "b"]]),
            "the union of what both keep"
        );
        assert!(!field_mask.is_metadata() && !field_mask.is_whole());
        field_mask.widen(&fields(&["spec"]));
        assert_eq!(field_mask, fields(&["spec"]));
        field_mask.widen(&FieldMask::whole());
        field_mask.widen(&FieldMask::metadata());
        assert!(field_mask.is_whole());
        assert!(FieldMask::metadata().is_metadata() && !FieldMask::whole().is_metadata());
    }

    #[test]
    fn scalar_on_a_path_is_an_error() {
        let kind = Kind { group: String::new(), version: "v1".into(), kind: "Pod".into(), plural: "pods".into() };
        let field_mask = FieldMask::fields([["spec", "nodeName"]]);
        let error = Stored::accept_masked(&kind, r#"{"metadata":{"name":"a","namespace":"b"},"spec":3}"#, &field_mask)
            .unwrap_err();
        assert_eq!(error.to_string(), "Pod b/a cannot be decoded");
        assert!(
            error.source.to_string().starts_with("invalid type: integer `3`, expected an object at `spec`"),
            "{}",
            error.source
        );
    }
}
