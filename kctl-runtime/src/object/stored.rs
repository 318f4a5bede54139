//! One accepted object: its metadata, and its JSON as small as it gets, decoded when it is read.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::de::DeserializeOwned;

use super::{
    Keep, Kind, Meta, Readable, hot, keep,
    meta::{Head, HeadMeta},
    shelf::{Packed, Shelf},
};
use crate::{key::ObjectKey, trim};

/// Why bytes from the API server are not an object of their kind.
#[derive(Debug, thiserror::Error)]
#[error("{kind} {name} cannot be decoded")]
pub struct DecodeError {
    /// The kind that was expected.
    pub kind: String,
    /// `namespace/name` as far as it could be read.
    pub name: String,
    /// The decoder's error.
    pub source: serde_json::Error,
}

/// An accepted object: shared, immutable, readable as any projection of its kind.
pub struct Stored {
    meta: Meta,
    text: Text,
    /// Of an object that is not kept whole: where in the text what is not of the metadata begins.
    slim: Option<u32>,
    /// Under which it is found decoded, for a while.
    id: hot::Id,
}

/// The JSON as it is kept.
enum Text {
    Plain(Box<str>),
    Packed(Packed),
}

impl Stored {
    /// Accepts the bytes of one object: trims managedFields and reads the metadata.
    ///
    /// # Errors
    /// When the JSON is broken, or its metadata is not metadata or has no name.
    pub fn accept(kind: &Kind, json: &str) -> Result<Self, DecodeError> {
        Self::accept_kept(kind, json, &Keep::whole())
    }

    /// The same, of which this is kept.
    pub(crate) fn accept_kept(kind: &Kind, json: &str, keep: &Keep) -> Result<Self, DecodeError> {
        let (head, meta) = read(kind, json)?;
        if let Some(slim) = Self::slim(kind, &meta, json, keep)? {
            return Ok(slim);
        }
        Ok(Self::new(meta, trim::trimmed(json, head.managed_fields, "")))
    }

    /// Accepts an item of a list: of built-in kinds it has no kind and apiVersion, which readers of the JSON expect. `known`
    /// may have the very state.
    pub(crate) fn accept_item(
        kind: &Kind,
        json: &str,
        keep: &Keep,
        known: impl FnOnce(&Meta) -> Option<Arc<Self>>,
    ) -> Result<Result<Arc<Self>, Self>, DecodeError> {
        let (head, meta) = read(kind, json)?;
        if let Some(known) = known(&meta) {
            return Ok(Ok(known));
        }
        if let Some(slim) = Self::slim(kind, &meta, json, keep)? {
            return Ok(Err(slim));
        }
        let name = if head.is_typed {
            String::new()
        } else {
            format!(r#""apiVersion":"{}","kind":"{}","#, kind.api_version(), kind.kind)
        };
        Ok(Err(Self::new(meta, trim::trimmed(json, head.managed_fields, &name))))
    }

    fn new(meta: Meta, json: Box<str>) -> Self {
        Self { meta, text: Text::Plain(json), slim: None, id: hot::Id::new() }
    }

    fn slim(kind: &Kind, meta: &Meta, json: &str, keep: &Keep) -> Result<Option<Self>, DecodeError> {
        let cut = keep.cut(json).map_err(|source| DecodeError {
            kind: kind.kind.clone(),
            name: meta.key.to_string(),
            source,
        })?;
        Ok(cut.map(|slim| {
            let (text, at) = slim.into_text();
            Self { slim: Some(at), ..Self::new(meta.clone(), text) }
        }))
    }

    /// Whether nobody sees that this state came after the other one: nothing of what is kept differs. Of an object that is kept
    /// whole somebody may see everything.
    pub(crate) fn looks_as(&self, other: &Self) -> bool {
        let both_slim = self.slim.is_some() && self.slim == other.slim;
        both_slim && self.meta.looks_as(&other.meta) && self.kept() == other.kept()
    }

    /// The same, with what it shares with other objects of its kind taken from there. `known` is an older state of it.
    pub(crate) fn shelved(mut self, shelf: &Shelf, known: Option<&Self>) -> Self {
        shelf.share(&mut self.meta);
        let before = match known.map(|known| &known.text) {
            Some(Text::Packed(packed)) => Some(packed),
            _ => None,
        };
        if let Text::Plain(json) = &self.text
            && let Some(packed) = shelf.pack(json, before)
        {
            self.text = Text::Packed(packed);
        }
        self
    }

    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.meta.key
    }

    /// The metadata that the loop reads.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The object as JSON, without managedFields, or what is kept of it.
    pub fn json(&self) -> Cow<'_, str> {
        let text = self.kept();
        match self.slim {
            None => text,
            Some(at) => Cow::Owned(keep::json(&self.meta, &text, at as usize)),
        }
    }

    /// The text as it was before it was packed.
    fn kept(&self) -> Cow<'_, str> {
        match &self.text {
            Text::Plain(text) => Cow::Borrowed(text),
            Text::Packed(packed) => Cow::Owned(packed.text()),
        }
    }

    /// How many bytes its JSON takes as it is kept.
    pub fn n_bytes(&self) -> usize {
        match &self.text {
            Text::Plain(json) => json.len(),
            Text::Packed(packed) => packed.n_bytes(),
        }
    }

    /// The object as its type. Whoever reads it again soon gets the same one.
    ///
    /// # Errors
    /// When the object does not fit the type. The source of objects checks that before they are stored.
    pub fn decode<K: Readable>(&self) -> Result<Arc<K>, DecodeError> {
        self.decode_as(&K::kind(&()))
    }

    pub(crate) fn decode_as<T>(&self, kind: &str) -> Result<Arc<T>, DecodeError>
    where
        T: DeserializeOwned + Send + Sync + 'static,
    {
        let present = hot::get(self.id);
        let is_new = present.is_none();
        if let Some(Ok(value)) = present.map(Arc::downcast::<T>) {
            return Ok(value);
        }
        let json = self.json();
        let value: Arc<T> = Arc::new(self.read(&json, kind)?);
        // Another type may have come first: then this one is decoded at each read.
        if is_new {
            hot::keep(self.id, json.len(), value.clone());
        }
        Ok(value)
    }

    /// Whether it was decoded not long ago.
    #[cfg(test)]
    pub(crate) fn is_decoded(&self) -> bool {
        hot::get(self.id).is_some()
    }

    /// The object as a type that is not kept.
    pub(crate) fn decode_once<T: DeserializeOwned>(&self, kind: &str) -> Result<T, DecodeError> {
        self.read(&self.json(), kind)
    }

    fn read<T: DeserializeOwned>(&self, json: &str, kind: &str) -> Result<T, DecodeError> {
        serde_json::from_str(json).map_err(|source| DecodeError {
            kind: kind.into(),
            name: self.key().to_string(),
            source,
        })
    }
}

/// What is read of an object beside its metadata.
struct Rest<'a> {
    is_typed: bool,
    managed_fields: Option<&'a str>,
}

fn read<'a>(kind: &Kind, json: &'a str) -> Result<(Rest<'a>, Meta), DecodeError> {
    let unreadable = |source| DecodeError { kind: kind.kind.clone(), name: "(unreadable)".into(), source };
    let Head { api_version, metadata }: Head<'_> = serde_json::from_str(json).map_err(unreadable)?;
    let metadata: HeadMeta<'a> = metadata.unwrap_or_default();
    let managed_fields = metadata.managed_fields.map(serde_json::value::RawValue::get);
    let meta = Meta::from(metadata);
    if meta.key.name.is_empty() {
        return Err(unreadable(serde::de::Error::missing_field("metadata.name")));
    }
    Ok((Rest { is_typed: api_version.is_some(), managed_fields }, meta))
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key(), self.meta.resource_version)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn managed_fields_are_never_kept() {
        let json = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","managedFields":[{"manager":"x"}]}}"#;
        let stored = Stored::accept(&Kind::of::<Pod>(), json).unwrap();
        assert!(!stored.json().contains("managedFields"));
        assert_eq!(stored.key().to_string(), "b/a");
        assert_eq!(stored.decode::<Pod>().unwrap().metadata.name.as_deref(), Some("a"));
    }

    #[test]
    fn broken_object_is_an_error_that_names_the_kind() {
        for json in [r#"{"metadata":{"name":3}}"#, r#"{"metadata":{}}"#, r#"{"metadata":null}"#, "{}", "", "[]", "{"] {
            let error = Stored::accept(&Kind::of::<Pod>(), json).unwrap_err();
            assert!(error.to_string().starts_with("Pod "), "{json}: {error}");
        }
    }

    #[test]
    fn item_of_a_list_gets_the_kind_that_it_has_not() {
        let kind = Kind::of::<Pod>();
        let cases = [
            (r#"{"metadata":{"name":"a"}}"#, r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#),
            (
                r#" { "metadata":{"managedFields":[1],"name":"a"},"spec":{} }"#,
                r#" {"apiVersion":"v1","kind":"Pod", "metadata":{"name":"a"},"spec":{} }"#,
            ),
            (
                r#"{"metadata":{"name":"a"},"kind":"Pod","apiVersion":"v1"}"#,
                r#"{"metadata":{"name":"a"},"kind":"Pod","apiVersion":"v1"}"#,
            ),
        ];
        for (json, expected) in cases {
            let stored = Stored::accept_item(&kind, json, &Keep::whole(), |_| None).unwrap().unwrap_err();
            assert_eq!(stored.json(), expected);
        }
    }

    #[test]
    fn object_takes_no_more_beside_its_text_than_the_figures_say() {
        assert_eq!(size_of::<Stored>(), 184);
    }

    #[test]
    fn decoded_object_is_shared_for_a_while() {
        let (kind, shelf) = (Kind::of::<Pod>(), Shelf::default());
        let env = format!(r#"[{{"name":"A","value":"{}"}}]"#, "b".repeat(500));
        let json = format!(
            r#"{{"metadata":{{"name":"a"}},"spec":{{"containers":[{{"name":"c","image":"d","env":{env}}}]}}}}"#
        );
        let stored = Stored::accept(&kind, &json).unwrap().shelved(&shelf, None);
        assert!(stored.n_bytes() < json.len() / 4 && stored.json() == json);
        let one = stored.decode::<Pod>().unwrap();
        assert!(Arc::ptr_eq(&one, &stored.decode::<Pod>().unwrap()));
        let other: Arc<serde_json::Value> = stored.decode_as("Pod").unwrap();
        assert_eq!(other["metadata"]["name"], "a");
    }
}
