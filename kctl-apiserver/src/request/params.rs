//! The query of a request, parsed as Go's `url.ParseQuery` does.
//!
//! Values are checked where they are used; a parameter that the verb does not know is ignored.

use std::collections::BTreeMap;

use kctl_apimachinery::url::{parse_query, path_unescape};

use crate::status::StatusError;

/// Values of the options of a request by name, decoded and in the order of the query. The first value of a repeated
/// option is used, apart from [`Params::values`]. Names are case-sensitive: `LabelSelector` is not `labelSelector`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params(BTreeMap<String, Vec<String>>);

/// Decodes the percent encoding of a path or of the key of an extra header. Invalid encoding is kept as it is.
pub(crate) fn decode(text: &str) -> String {
    path_unescape(text).unwrap_or_else(|| text.to_owned())
}

impl Params {
    /// Parses a query. Names are decoded too, so `label%53elector` is `labelSelector`. A name without `=` has the empty
    /// value, which counts as given.
    pub(crate) fn parse(query: &str) -> Self {
        Self(parse_query(query))
    }

    /// Returns all values of a repeatable parameter: `dryRun`, `command` of an `exec`, or `ports` of a `portforward`.
    pub(crate) fn values(&self, name: &str) -> &[String] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the first value of a parameter.
    fn first(&self, name: &str) -> Option<&str> {
        self.values(name).first().map(String::as_str)
    }

    /// Returns the value of a parameter, or the empty string. A caller that has to distinguish `?limit=` from an absent
    /// `limit` uses `is_present`.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.first(name).unwrap_or_default()
    }

    /// Removes a parameter that this server does not support.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Returns `true` if the parameter is present.
    pub(crate) fn is_present(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns `true` if the parameter is present and not `false` or `0` (`Convert_Slice_string_To_bool` of
    /// apimachinery). `?watch`, `?watch=` and `?watch=yes` are all true.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.first(name).is_some_and(|value| !["false", "0"].contains(&value.to_lowercase().as_str()))
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
        let Some(text) = self.first(name) else { return Ok(None) };
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
        assert!(!params.is_present("x"));
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
