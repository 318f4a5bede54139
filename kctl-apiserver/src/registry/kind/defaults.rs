//! The defaults of a kind, and when they are set.

use serde_json::Value;

/// Calls a function with the object, which lacks some parts during the call.
pub(crate) type DefaultRest = fn(&mut Value, &mut dyn FnMut(&mut Value));

/// The defaults of a kind. An update runs `keep_before` first. Then `set_rest` calls the function that decodes the
/// object and runs `set`. With `again_after_update`, `set_rest` and `set` run again after the strategy of an update.
pub(crate) struct Defaults {
    /// Returns the reason why a sent object can't be decoded.
    pub(crate) decode_error: fn(&Value) -> Option<String>,
    /// Copies fields of the stored object before an update gets its defaults.
    pub(crate) keep_before: fn(&Value, &mut Value),
    /// Sets the defaults (`SetDefaults_…`).
    pub(crate) set: fn(&mut Value),
    /// Sets defaults with the given function. Parts with separate code, such as schemas of a CRD, are taken out before.
    pub(crate) set_rest: DefaultRest,
    /// A field of the status that only the defaults of a new object set.
    pub(crate) set_once: Option<&'static str>,
    /// The strategy's changes require the defaults to be set again.
    pub(crate) again_after_update: bool,
    /// Defaults that are not set when an object is decoded, but when it is stored, by JSON pointer.
    pub(crate) later: &'static [(&'static str, Undecoded)],
}

impl Defaults {
    /// No field has a default.
    pub(crate) const DEFAULT: Self = Self {
        decode_error: |_| None,
        keep_before: |_, _| {},
        set: |_| {},
        set_rest: |object, default| default(object),
        set_once: None,
        again_after_update: false,
        later: &[],
    };
}

/// The decoded form of a field whose default is set when an object is stored, not when it is decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undecoded {
    /// The field is absent.
    Absent,
    /// The field has its default already.
    AsDefault,
    /// The field has this string.
    Text(&'static str),
}
