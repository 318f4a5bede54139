//! A marker, and the markers of one place, as data: `markers` reads them from the tokens of `#[kctl(…)]`.

use proc_macro2::Ident;

use super::json::Json;

/// One marker: `min_length = 1` is `minLength` of the schema later on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Marker {
    /// The name with its span: an error about the marker points there.
    pub(super) written: Ident,
    /// The name as users write it.
    pub(super) name: String,
    /// The value in the form of the marker: `true` for a flag, a list for `allowed`, an object for `rule`.
    pub(super) value: Json,
    /// The markers in the parentheses of `items(…)` and `values(…)`, with their spans. Other markers have none.
    pub(super) inner: Markers,
}

/// The markers of one place, in the order of the source. A marker that may be repeated is in the list several times.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Markers(pub(super) Vec<Marker>);

impl Markers {
    /// Returns the first marker of this name.
    pub(super) fn find(&self, name: &str) -> Option<&Marker> {
        self.0.iter().find(|marker| marker.name == name)
    }

    /// Returns the value of the first marker of this name.
    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        self.find(name).map(|marker| &marker.value)
    }

    /// Returns the name of the first marker of this name as the user wrote it, with its span.
    pub(super) fn get_ident(&self, name: &str) -> Option<&Ident> {
        self.find(name).map(|marker| &marker.written)
    }

    /// Returns `true` if there is a marker of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the value of a marker that is a number.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Json::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    /// Returns `true` without any marker.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
