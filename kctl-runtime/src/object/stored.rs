//! One accepted object: its metadata and its JSON, which is decoded when it is read.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::de::DeserializeOwned;

use super::{
    FieldMask, Kind, Meta, Readable, decode_cache,
    dictionary::{Compressed, Deduplicator},
    field_mask,
    meta::{Head, HeadMeta},
};
use crate::{key::ObjectKey, managed_fields};

/// The error for JSON that is not an object of the expected kind.
///
/// The message names kind and object, `Pod shop/web-0 cannot be decoded`; [`source`](Self::source) has
/// the decoder's words and the field. A reflector reports it for the object and continues with the others.
#[derive(Debug, thiserror::Error)]
#[error("{kind} {name} cannot be decoded")]
#[non_exhaustive]
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
/// Stores and handlers pass it around as `Arc<Stored>`. A new state of the object is another `Stored`, so a reader that
/// holds an older one sees no change.
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
    /// For an object that is only partly kept: the offset in the string where the fields outside of the metadata begin.
    /// `None` if the JSON is whole.
    n_metadata: Option<u32>,
    /// The key of this state in the ring of decoded values.
    id: decode_cache::StateId,
}

/// The kept JSON, plain or compressed.
enum Text {
    Plain(Box<str>),
    Compressed(Compressed),
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
        Self::accept_masked(kind, json, &FieldMask::whole())
    }

    /// Like [`accept`](Self::accept), but keeps only the fields in `field_mask`.
    ///
    /// # Errors
    /// As `accept`; also if a kept path leads through a value that is not an object.
    pub(crate) fn accept_masked(kind: &Kind, json: &str, field_mask: &FieldMask) -> Result<Self, DecodeError> {
        let (head, meta) = read(kind, json)?;
        if let Some(masked) = Self::apply_mask(kind, &meta, json, field_mask)? {
            return Ok(masked);
        }
        Ok(Self::new(meta, managed_fields::remove(json, head.managed_fields, "")))
    }

    /// Accepts one item of a list response.
    ///
    /// API servers leave `apiVersion` and `kind` out of the items of built-in kinds, so they are added from
    /// `kind`. `cached` is called with the metadata first: it returns the `Stored` that a cache already holds
    /// for the same state, and then nothing is allocated. `Ok(Ok(_))` is that known state, `Ok(Err(_))` a
    /// new one.
    ///
    /// # Errors
    /// As [`accept_masked`](Self::accept_masked).
    pub(crate) fn accept_item(
        kind: &Kind,
        json: &str,
        field_mask: &FieldMask,
        cached: impl FnOnce(&Meta) -> Option<Arc<Self>>,
    ) -> Result<Result<Arc<Self>, Self>, DecodeError> {
        let (head, meta) = read(kind, json)?;
        if let Some(cached) = cached(&meta) {
            return Ok(Ok(cached));
        }
        if let Some(masked) = Self::apply_mask(kind, &meta, json, field_mask)? {
            return Ok(Err(masked));
        }
        let name = if head.is_typed {
            String::new()
        } else {
            format!(r#""apiVersion":"{}","kind":"{}","#, kind.api_version(), kind.kind)
        };
        Ok(Err(Self::new(meta, managed_fields::remove(json, head.managed_fields, &name))))
    }

    fn new(meta: Meta, json: Box<str>) -> Self {
        Self { meta, text: Text::Plain(json), n_metadata: None, id: decode_cache::StateId::new() }
    }

    /// Cuts an object down to the kept fields; `None` if all are kept.
    fn apply_mask(kind: &Kind, meta: &Meta, json: &str, field_mask: &FieldMask) -> Result<Option<Self>, DecodeError> {
        let cut = field_mask.apply(json).map_err(|source| DecodeError {
            kind: kind.kind.clone(),
            name: meta.key.to_string(),
            source,
        })?;
        Ok(cut.map(|fields| {
            let (text, n_metadata) = fields.into_text();
            Self { n_metadata: Some(n_metadata), ..Self::new(meta.clone(), text) }
        }))
    }

    /// Returns `true` if a reader of this cache cannot tell the two states apart.
    ///
    /// Only `resourceVersion` may differ then. It is always `false` for an object that is kept whole,
    /// because a reader may look at any field, `managedFields` aside.
    pub(crate) fn equals_except_version(&self, other: &Self) -> bool {
        let both_masked = self.n_metadata.is_some() && self.n_metadata == other.n_metadata;
        both_masked && self.meta.equals_except_version(&other.meta) && self.json_text() == other.json_text()
    }

    /// Shares parts with other objects of the store and compresses the JSON where that pays.
    ///
    /// `previous` is an earlier state of the same object. Its dictionary is tried first, because an object
    /// resembles itself best.
    pub(crate) fn deduplicate(mut self, deduplicator: &Deduplicator, previous: Option<&Self>) -> Self {
        deduplicator.share(&mut self.meta);
        let before = match previous.map(|previous| &previous.text) {
            Some(Text::Compressed(compressed)) => Some(compressed),
            _ => None,
        };
        if let Text::Plain(json) = &self.text
            && let Some(compressed) = deduplicator.compress(json, before)
        {
            self.text = Text::Compressed(compressed);
        }
        self
    }

    /// Returns `true` if this process received the other state later than this one.
    pub(crate) fn was_received_before(&self, other: &Self) -> bool {
        self.id < other.id
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
    /// The string is borrowed unless the object was compressed or only partly kept. A partly kept object has no
    /// `apiVersion` and `kind`, unless its [`FieldMask`] names them.
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
        let text = self.json_text();
        match self.n_metadata {
            None => text,
            Some(n_metadata) => Cow::Owned(field_mask::json(&self.meta, &text, n_metadata as usize)),
        }
    }

    /// Returns the kept string, decompressed.
    fn json_text(&self) -> Cow<'_, str> {
        match &self.text {
            Text::Plain(text) => Cow::Borrowed(text),
            Text::Compressed(compressed) => Cow::Owned(compressed.text()),
        }
    }

    /// Returns the number of bytes that the kept JSON takes, after compression.
    ///
    /// The metadata and the shared dictionaries are not counted. Metrics sum this over a store.
    pub fn n_bytes(&self) -> usize {
        match &self.text {
            Text::Plain(json) => json.len(),
            Text::Compressed(compressed) => compressed.n_bytes(),
        }
    }

    /// Returns the object as the type `K`.
    ///
    /// The decoded value is cached for a short while (see [`DECODED_BYTES_MAX`](super::DECODED_BYTES_MAX)), so
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
        let present = decode_cache::get(self.id);
        let is_new = present.is_none();
        if let Some(Ok(value)) = present.map(Arc::downcast::<T>) {
            return Ok(value);
        }
        let json = self.json();
        let value: Arc<T> = Arc::new(self.read(&json, kind)?);
        // If another type was cached first, this one is decoded at each read.
        if is_new {
            decode_cache::insert(self.id, json.len(), value.clone());
        }
        Ok(value)
    }

    /// Returns `true` while the decoded value is cached.
    #[cfg(test)]
    pub(crate) fn is_decoded(&self) -> bool {
        decode_cache::get(self.id).is_some()
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
    fn broken_object_names_its_kind() {
        for json in [r#"{"metadata":{"name":3}}"#, r#"{"metadata":{}}"#, r#"{"metadata":null}"#, "{}", "", "[]", "{"] {
            let error = Stored::accept(&Kind::of::<Pod>(), json).unwrap_err();
            assert!(error.to_string().starts_with("Pod "), "{json}: {error}");
        }
    }

    #[test]
    fn list_item_gets_its_missing_kind() {
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
            let stored = Stored::accept_item(&kind, json, &FieldMask::whole(), |_| None).unwrap().unwrap_err();
            assert_eq!(stored.json(), expected);
        }
    }

    #[test]
    fn overhead_of_an_object_is_within_its_figures() {
        assert_eq!(size_of::<Stored>(), 184);
    }

    #[test]
    fn decoded_object_is_shared_for_a_while() {
        let (kind, deduplicator) = (Kind::of::<Pod>(), Deduplicator::default());
        let env = format!(r#"[{{"name":"A","value":"{}"}}]"#, "b".repeat(500));
        let json = format!(
            r#"{{"metadata":{{"name":"a"}},"spec":{{"containers":[{{"name":"c","image":"d","env":{env}}}]}}}}"#
        );
        let stored = Stored::accept(&kind, &json).unwrap().deduplicate(&deduplicator, None);
        assert!(stored.n_bytes() < json.len() / 4 && stored.json() == json);
        let one = stored.decode::<Pod>().unwrap();
        assert!(Arc::ptr_eq(&one, &stored.decode::<Pod>().unwrap()));
        let other: Arc<serde_json::Value> = stored.decode_as("Pod").unwrap();
        assert_eq!(other["metadata"]["name"], "a");
    }
}
