//! Labels as one JSON string, because a map of owned strings takes half a kilobyte per object.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// All labels of an object, sorted by key.
///
/// They are held as one JSON string that equal label sets of a store share. Looking a label up parses
/// that string, so take [`to_map`](Self::to_map) once if you need several.
///
/// ```
/// use kctl_runtime::object::Labels;
///
/// let labels: Labels = serde_json::from_str(r#"{"tier": "web", "app": "shop"}"#)?;
/// assert_eq!(labels.get("app").as_deref(), Some("shop"));
/// assert_eq!(labels.get("zone"), None);
/// assert_eq!(serde_json::to_string(&labels)?, r#"{"app":"shop","tier":"web"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Labels(Arc<str>);

impl Labels {
    /// Returns `true` if the object has no labels.
    pub fn is_empty(&self) -> bool {
        *self.0 == *"{}"
    }

    /// Returns the labels as a map.
    ///
    /// ```
    /// use kctl_runtime::object::Labels;
    ///
    /// let labels: Labels = serde_json::from_str(r#"{"app": "shop", "tier": "web"}"#)?;
    /// let map = labels.to_map();
    /// assert_eq!((map["app"].as_str(), map["tier"].as_str()), ("shop", "web"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let map = serde_json::from_str(&self.0);
        debug_assert!(map.is_ok(), "labels are written as they are read");
        map.unwrap_or_default()
    }

    /// Returns the value of one label, or `None` if the object does not have it. It parses all labels: for several
    /// of them call [`to_map`](Self::to_map) once.
    pub fn get(&self, name: &str) -> Option<String> {
        self.to_map().remove(name)
    }

    /// Returns the JSON string, to be replaced by an equal one that is shared.
    pub(super) fn text(&mut self) -> &mut Arc<str> {
        &mut self.0
    }
}

impl Default for Labels {
    fn default() -> Self {
        Self("{}".into())
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.0).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Pairs)
    }
}

/// A string that is borrowed from the input unless it has escapes.
#[derive(Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = Labels;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("labels")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
        let mut pairs: BTreeMap<Text<'de>, Text<'de>> = BTreeMap::new();
        while let Some((name, value)) = map.next_entry()? {
            pairs.insert(name, value);
        }
        let text = serde_json::to_string(&pairs).map_err(serde::de::Error::custom)?;
        Ok(Labels(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted() {
        let cases = [
            (r#"{"b":"2","a":"1"}"#, r#"{"a":"1","b":"2"}"#),
            (r#" { "\u0061" : "é\"" } "#, r#"{"a":"é\""}"#),
            (r#"{"a":"1","a":"2"}"#, r#"{"a":"2"}"#),
            ("{}", "{}"),
        ];
        for (json, expected) in cases {
            let labels: Labels = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&labels).unwrap(), expected);
            assert_eq!(labels.to_map(), serde_json::from_str(json).unwrap());
            assert_eq!(labels.is_empty(), expected == "{}");
            assert_eq!(labels.get("a"), labels.to_map().get("a").cloned());
        }
        for json in [r#"{"a":1}"#, "[]", r#""a""#, r#"{"a":null}"#] {
            assert!(serde_json::from_str::<Labels>(json).is_err(), "{json}");
        }
    }
}
