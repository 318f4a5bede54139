//! The query of a request, parsed as Go's `url.ParseQuery` does.
//!
//! As in Go, a pair with a semicolon is dropped, and the other pairs are kept. Values are checked where they are used;
//! a parameter that the verb does not know is ignored.

use std::collections::HashMap;

use crate::status::StatusError;

/// Options of a request by name. The first value of a repeated option is used. Names are case-sensitive:
/// `LabelSelector` is not `labelSelector`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    /// The first value of each parameter.
    first: HashMap<String, String>,
    /// The query as it was sent, for parameters that may be repeated.
    query: String,
}

/// Decodes percent encoding. A `%` that is not followed by two hexadecimal digits is kept, where Go would reject the
/// pair or the path. Bytes that are not UTF-8 become U+FFFD. A `+` is kept: only the caller knows if it is in a query.
pub(crate) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut position = 0;
    while position < bytes.len() {
        let hex = (bytes[position] == b'%').then(|| text.get(position + 1..position + 3)).flatten();
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            decoded.push(byte);
            position += 3;
        } else {
            decoded.push(bytes[position]);
            position += 1;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Returns the name-value pairs of a query, without decoding them. A name without `=` has the empty value, which counts
/// as given.
fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    // Go rejects pairs with a semicolon, which used to be a separator.
    let parts = query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
    parts.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

impl Params {
    /// Parses a query. Names are decoded too, so `label%53elector` is `labelSelector`.
    pub(crate) fn parse(query: &str) -> Self {
        let mut first = HashMap::new();
        for (name, value) in pairs(query) {
            first.entry(decode(name)).or_insert_with(|| decode(&value.replace('+', " ")));
        }
        Self { first, query: query.to_owned() }
    }

    /// Returns all decoded values of a repeatable parameter, in the order of the query. Such parameters are `dryRun`,
    /// `command` of an `exec` and `ports` of a `portforward`.
    pub(crate) fn values(&self, name: &str) -> Vec<String> {
        let own = pairs(&self.query).filter(|(key, _)| decode(key) == name);
        own.map(|(_, value)| decode(&value.replace('+', " "))).collect()
    }

    /// Returns the value of a parameter, or the empty string. A caller that has to distinguish `?limit=` from an absent
    /// `limit` uses `is_present`.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.first.get(name).map_or("", String::as_str)
    }

    /// Removes a parameter that this server does not support. [`Self::values`] still returns its values.
    pub(crate) fn remove(&mut self, name: &str) {
        self.first.remove(name);
    }

    /// Returns `true` if the parameter is present.
    pub(crate) fn is_present(&self, name: &str) -> bool {
        self.first.contains_key(name)
    }

    /// Returns `true` if the parameter is present and not `false` or `0` (`Convert_Slice_string_To_bool` of
    /// apimachinery). `?watch`, `?watch=` and `?watch=yes` are all true.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.first.get(name).is_some_and(|value| !["false", "0"].contains(&value.to_lowercase().as_str()))
    }

    /// Returns the oldest revision that a read may return; `None` if it has to return the newest state. Without a
    /// `resourceVersion` a list is a quorum read, and so is the initial state of a watch. With `0`, any state is
    /// sufficient, as kube-apiserver serves it from its watch cache (`getWatchCacheResourceVersion` of `cacher.go`). A
    /// value that is not a number counts as absent here.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.text("resourceVersion").parse().ok()
    }

    /// Returns an integer parameter; `None` if it was not given. The value may have a sign. An empty one is not an
    /// integer.
    ///
    /// # Errors
    /// Fails with 400 if the value is not a 64-bit integer.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, StatusError> {
        let Some(text) = self.first.get(name) else { return Ok(None) };
        let invalid = |_| StatusError::bad_request(format!("{name}: must be a 64-bit integer, found {text:?}"));
        text.parse().map(Some).map_err(invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded() {
        let params = Params::parse("labelSelector=a%3Db%2C+c&watch&x=%zz&limit=7");
        assert_eq!(params.text("labelSelector"), "a=b, c");
        assert_eq!(params.text("x"), "%zz");
        assert!(params.flag("watch") && !params.flag("pretty"));
        assert_eq!(params.number("limit").unwrap(), Some(7));
        for query in ["limit=", "limit=x", "limit=9223372036854775808"] {
            assert_eq!(Params::parse(query).number("limit").unwrap_err().code, 400, "{query}");
        }
    }

    #[test]
    fn absent_version_means_the_newest_state() {
        let cases = [
            ("", None),
            ("limit=500", None),
            ("resourceVersion=0", Some(0)),
            ("resourceVersion=7&resourceVersionMatch=NotOlderThan", Some(7)),
            ("watch=true", None),
            ("watch=true&resourceVersion=0", Some(0)),
        ];
        for (query, expected) in cases {
            assert_eq!(Params::parse(query).oldest(), expected, "{query}");
        }
    }
}
