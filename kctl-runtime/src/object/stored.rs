//! One accepted object: its metadata beside its JSON, decoded when it is read.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::de::DeserializeOwned;

use super::{
    Keep, Kind, Meta, Readable, hot, keep,
    meta::{Head, HeadMeta},
    shelf::{Packed, Shelf},
};
use crate::{key::ObjectKey, trim};

/// The error for JSON that is not an object of the expected kind.
///
/// The message names kind and object, `Pod shop/web-0 cannot be decoded`; [`source`](Self::source) has
/// the decoder's words and the field. A reflector reports it for the object and goes on with the others.
#[derive(Debug, thiserror::Error)]
#[error("{kind} {name} cannot be decoded")]
pub struct DecodeError {
    /// The kind that was expected, for example `Pod`.
    pub kind: String,
    /// `namespace/name`, or `(unreadable)` if the metadata could not be read.
    pub name: String,
    /// The error of the JSON decoder, with the field, line and column.
    pub source: serde_json::Error,
}

/// One state of an object, as a cache holds it: shared, immutable and readable as any type of its kind.
///
/// Stores and handlers pass it around as `Arc<Stored>`. A new state of the object is another `Stored`;
/// a reader that holds an older one is not disturbed.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kctl_runtime::object::{Kind, Stored};
///
/// let json = r#"{"metadata": {"name": "settings", "namespace": "shop"}, "data": {"level": "debug"}}"#;
/// let stored = Stored::accept(&Kind::of::<ConfigMap>(), json)?;
/// let settings = stored.decode::<ConfigMap>()?;
/// assert_eq!(settings.data.as_ref().map(|data| data["level"].as_str()), Some("debug"));
///
/// let error = Stored::accept(&Kind::of::<ConfigMap>(), "{}").unwrap_err();
/// assert_eq!(error.to_string(), "ConfigMap (unreadable) cannot be decoded");
/// # Ok::<(), kctl_runtime::object::DecodeError>(())
/// ```
pub struct Stored {
    meta: Meta,
    text: Text,
    /// For an object of which only some fields are kept: the offset in the string where the fields
    /// outside of the metadata begin. `None` if the JSON is whole.
    slim: Option<u32>,
    /// The key of this state in the ring of decoded values.
    id: hot::Id,
}

/// The kept JSON, either as it came or compressed.
enum Text {
    Plain(Box<str>),
    Packed(Packed),
}

impl Stored {
    /// Reads the metadata of an object and keeps its JSON without `managedFields`.
    ///
    /// The rest of the JSON is checked for syntax alone, so an object with a wrong `spec` is accepted and
    /// fails in [`decode`](Self::decode). `kind` is used in error messages.
    ///
    /// # Errors
    /// [`DecodeError`] if the JSON is broken, if `metadata` has fields of the wrong type, or if it has no
    /// `name`.
    pub fn accept(kind: &Kind, json: &str) -> Result<Self, DecodeError> {
        Self::accept_kept(kind, json, &Keep::whole())
    }

    /// Like [`accept`](Self::accept), but keeps only the fields in `keep`.
    ///
    /// # Errors
    /// As `accept`; also if a kept path leads through a value that is not an object.
    pub(crate) fn accept_kept(kind: &Kind, json: &str, keep: &Keep) -> Result<Self, DecodeError> {
        let (head, meta) = read(kind, json)?;
        if let Some(slim) = Self::slim(kind, &meta, json, keep)? {
            return Ok(slim);
        }
        Ok(Self::new(meta, trim::trimmed(json, head.managed_fields, "")))
    }

    /// Accepts one item of a list response.
    ///
    /// API servers leave `apiVersion` and `kind` out of the items of built-in kinds, so they are added from
    /// `kind`. `known` is asked with the metadata first: it returns the `Stored` that a cache already holds
    /// for the same state, and then nothing is allocated. `Ok(Ok(_))` is that known state, `Ok(Err(_))` a
    /// new one.
    ///
    /// # Errors
    /// As [`accept_kept`](Self::accept_kept).
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

    /// Cuts an object down to the kept fields; `None` if all are kept.
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

    /// Returns `true` if a reader of this cache cannot tell the two states apart.
    ///
    /// Only `resourceVersion` may differ then. It is always `false` for an object that is kept whole,
    /// because a reader may look at any field, `managedFields` aside.
    pub(crate) fn looks_as(&self, other: &Self) -> bool {
        let both_slim = self.slim.is_some() && self.slim == other.slim;
        both_slim && self.meta.looks_as(&other.meta) && self.kept() == other.kept()
    }

    /// Shares parts with other objects of the store and compresses the JSON where that pays.
    ///
    /// `known` is an earlier state of the same object. Its dictionary is tried first, because an object
    /// resembles itself best.
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

    /// Returns namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.meta.key
    }

    /// Returns the metadata, which was read when the object was accepted.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Returns the object as JSON: without `managedFields`, and only the fields that the cache keeps.
    ///
    /// The string is borrowed unless the object was compressed or only partly kept. An object of which
    /// [`Keep`] left fields out has no `apiVersion` and `kind`.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::object::{Kind, Stored};
    ///
    /// let json = r#"{"kind":"Pod","metadata":{"name":"web-0","managedFields":[]}}"#;
    /// let stored = Stored::accept(&Kind::of::<Pod>(), json)?;
    /// assert_eq!(stored.json(), r#"{"kind":"Pod","metadata":{"name":"web-0"}}"#);
    /// # Ok::<(), kctl_runtime::object::DecodeError>(())
    /// ```
    pub fn json(&self) -> Cow<'_, str> {
        let text = self.kept();
        match self.slim {
            None => text,
            Some(at) => Cow::Owned(keep::json(&self.meta, &text, at as usize)),
        }
    }

    /// Returns the kept string, decompressed.
    fn kept(&self) -> Cow<'_, str> {
        match &self.text {
            Text::Plain(text) => Cow::Borrowed(text),
            Text::Packed(packed) => Cow::Owned(packed.text()),
        }
    }

    /// Returns the number of bytes that the kept JSON takes, after compression.
    ///
    /// The metadata and the shared dictionaries are not counted. Metrics sum this over a store.
    pub fn n_bytes(&self) -> usize {
        match &self.text {
            Text::Plain(json) => json.len(),
            Text::Packed(packed) => packed.n_bytes(),
        }
    }

    /// Returns the object as the type `K`.
    ///
    /// The decoded value is cached for a short while (see [`HOT_BYTES_MAX`](super::HOT_BYTES_MAX)), so
    /// several reconciles that read the same Pod share one allocation. If two types read the same object,
    /// only the first one is cached; the second decodes at each call.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::object::{Kind, Stored};
    ///
    /// let stored = Stored::accept(&Kind::of::<Pod>(), r#"{"metadata":{"name":"web-0"}}"#)?;
    /// let (first, second) = (stored.decode::<Pod>()?, stored.decode::<Pod>()?);
    /// assert!(Arc::ptr_eq(&first, &second));
    /// # Ok::<(), kctl_runtime::object::DecodeError>(())
    /// ```
    ///
    /// # Errors
    /// [`DecodeError`] if the object does not fit the type. Objects from a store fit the kinds that the
    /// controllers declared for it, because the reflector checks each of them before it is stored.
    pub fn decode<K: Readable>(&self) -> Result<Arc<K>, DecodeError> {
        self.decode_as(&K::kind(&()))
    }

    /// Decodes into any type and caches the value. `kind` is used in error messages.
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

    /// Returns `true` while the decoded value is cached.
    #[cfg(test)]
    pub(crate) fn is_decoded(&self) -> bool {
        hot::get(self.id).is_some()
    }

    /// Decodes into a type whose value is not cached, for readers that run once per object.
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

/// The parts of an object's head that [`Meta`] does not have.
struct Rest<'a> {
    is_typed: bool,
    managed_fields: Option<&'a str>,
}

/// Reads the head of an object and checks that it has a name.
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
