//! Strings of the metadata that are mostly numbers: uids, resourceVersions and times in a few bytes each.
//!
//! A string with another spelling is kept as it is, so printing always returns the original.

use std::fmt;

use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The length of a UUID as text, and where in it the dashes are.
const UUID_LEN: usize = 36;
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// A `metadata.uid`: sixteen bytes for a UUID in lower case, as API servers assign them.
///
/// Any other string is kept unchanged. A `Uid` compares with `str` and `String`.
///
/// ```
/// use kctl_runtime::object::Uid;
///
/// let uid = Uid::from("6d4b75cb-0000-4000-8000-00000000002a");
/// assert_eq!(uid, *"6d4b75cb-0000-4000-8000-00000000002a");
/// assert_eq!(Uid::from("not-a-uuid").to_string(), "not-a-uuid");
/// assert!(Uid::default().is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Uid(UidRepr);

/// A UUID as bytes, or another string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum UidRepr {
    Uuid([u8; 16]),
    Other(Box<str>),
}

impl Uid {
    /// Returns `true` if the object has no uid, as before its creation.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, UidRepr::Other(text) if text.is_empty())
    }
}

impl Default for Uid {
    fn default() -> Self {
        Self(UidRepr::Other("".into()))
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(uuid(text).map_or_else(|| UidRepr::Other(text.into()), UidRepr::Uuid))
    }
}

/// Returns the bytes of a UUID in lower case. Upper case would not print as it was read.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let text: &[u8; UUID_LEN] = text.as_bytes().try_into().ok()?;
    let (mut bytes, mut n_digits) = ([0; 16], 0);
    for (index, digit) in text.iter().enumerate() {
        let value = match digit {
            b'-' if DASHES.contains(&index) => continue,
            _ if DASHES.contains(&index) => return None,
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        bytes[n_digits / 2] = bytes[n_digits / 2] << 4 | value;
        n_digits += 1;
    }
    debug_assert_eq!(n_digits, 2 * bytes.len(), "a UUID has two digits for each byte besides its dashes");
    Some(bytes)
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(&*String::deserialize(deserializer)?))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = match &self.0 {
            UidRepr::Uuid(bytes) => bytes,
            UidRepr::Other(text) => return f.pad(text),
        };
        let mut text = [b'-'; UUID_LEN];
        let indices = (0..UUID_LEN).filter(|index| !DASHES.contains(index));
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        for (index, digit) in indices.zip(digits) {
            text[index] = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        }
        f.pad(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// A `metadata.resourceVersion`.
///
/// Up to Kubernetes 1.34 the API promised only that equal versions are the same state. Since 1.35 it is
/// a decimal number that grows with each write of the kind (KEP-5504); [`number`](Self::number) returns
/// it. An API server that uses other strings still works: its versions are compared for equality.
///
/// ```
/// use kctl_runtime::object::Version;
///
/// let (old, new) = (Version::from("99"), Version::from("100"));
/// assert!(old.number() < new.number());
/// assert_eq!(Version::from("a1b2").number(), None);
/// assert_eq!(new, *"100");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version(VersionRepr);

/// A decimal number, or another string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum VersionRepr {
    Number(u64),
    Other(Box<str>),
}

impl Version {
    /// Returns `true` if the object has no version, as in the response to a dry run of a create.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the version as a number, `None` if it is not one.
    ///
    /// ```
    /// use kctl_runtime::object::Version;
    ///
    /// assert_eq!(Version::from("4711").number(), Some(4711));
    /// assert_eq!(Version::default().number(), None);
    /// ```
    pub fn number(&self) -> Option<u64> {
        match &self.0 {
            VersionRepr::Number(number) => Some(*number),
            VersionRepr::Other(text) => text.parse().ok(),
        }
    }

    /// Returns `true` if the version is empty, as [`is_none`](Self::is_none).
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, VersionRepr::Other(text) if text.is_empty())
    }
}

impl Default for Version {
    fn default() -> Self {
        Self(VersionRepr::Other("".into()))
    }
}

impl From<&str> for Version {
    fn from(text: &str) -> Self {
        // `+1` and `01` would print as `1`, so they are kept as strings.
        let is_plain = text.len() == 1 || text.starts_with(|first: char| first.is_ascii_digit() && first != '0');
        let number = text.parse().ok().filter(|_| is_plain && text.starts_with(|first: char| first.is_ascii_digit()));
        Self(number.map_or_else(|| VersionRepr::Other(text.into()), VersionRepr::Number))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            VersionRepr::Number(number) => write!(f, "{number}"),
            VersionRepr::Other(text) => f.write_str(text),
        }
    }
}

/// A time of the metadata: RFC 3339 in whole seconds and UTC, as API servers write it.
///
/// A time with another spelling is kept as it is. Earlier times are less than later ones, if both have
/// the usual spelling.
///
/// ```
/// use kctl_runtime::object::Time;
///
/// let (before, after) = (Time::from("2026-11-20T00:00:00Z"), Time::from("2026-11-20T00:00:01Z"));
/// assert!(before < after);
/// assert_eq!(after.to_string(), "2026-11-20T00:00:01Z");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(TimeRepr);

/// Seconds since 1970, or a string with another spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum TimeRepr {
    Seconds(i64),
    Other(Box<str>),
}

impl From<&str> for Time {
    fn from(text: &str) -> Self {
        let seconds = text.parse::<Timestamp>().ok().filter(|time| time.to_string() == text).map(Timestamp::as_second);
        Self(seconds.map_or_else(|| TimeRepr::Other(text.into()), TimeRepr::Seconds))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            TimeRepr::Seconds(seconds) => Timestamp::from_second(*seconds).map_err(|_| fmt::Error)?.fmt(f),
            TimeRepr::Other(text) => f.write_str(text),
        }
    }
}

/// Implements the comparison with strings and the serialization as a string.
macro_rules! text {
    ($($short:ty),*) => {$(
        impl PartialEq<str> for $short {
            fn eq(&self, other: &str) -> bool {
                let other = Self::from(other);
                *self == other
            }
        }
        impl PartialEq<String> for $short {
            fn eq(&self, other: &String) -> bool {
                *self == **other
            }
        }
        impl PartialEq<$short> for String {
            fn eq(&self, other: &$short) -> bool {
                *other == **self
            }
        }
        impl Serialize for $short {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}
text!(Uid, Version, Time);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_round_trip_and_numbers_are_compact() {
        let cases = [
            ("6d4b75cb-0000-4000-8000-00000000002a", true),
            ("6D4B75CB-0000-4000-8000-00000000002A", false),
            ("6d4b75cb-0000-4000-8000-0000000000-a", false),
            ("6d4b75cb00000-4000-8000-00000000002a", false),
            ("6d4b75cb-0000-4000-8000-00000000002", false),
            ("é", false),
            ("", false),
        ];
        for (text, is_short) in cases {
            let uid = Uid::from(text);
            assert_eq!((uid.to_string().as_str(), matches!(uid.0, UidRepr::Uuid(_))), (text, is_short));
            assert!(uid == *text && uid.is_empty() == text.is_empty(), "{text}");
        }
        let cases = [
            ("0", true),
            ("18446744073709551615", true),
            ("18446744073709551616", false),
            ("+1", false),
            ("01", false),
            ("+", false),
            ("a1", false),
            ("", false),
        ];
        for (text, is_short) in cases {
            let version = Version::from(text);
            assert_eq!((version.to_string().as_str(), matches!(version.0, VersionRepr::Number(_))), (text, is_short));
            assert_eq!((version.number(), version.is_empty()), (text.parse().ok(), text.is_empty()), "{text}");
        }
        let cases = [
            ("2026-11-20T00:00:00Z", true),
            ("1969-12-31T23:59:59Z", true),
            ("2026-11-20T00:00:00.000000Z", false),
            ("2026-11-20T00:00:00+00:00", false),
            ("2026-11-20t00:00:00z", false),
            ("yesterday", false),
        ];
        for (text, is_short) in cases {
            let time = Time::from(text);
            assert_eq!((time.to_string().as_str(), matches!(time.0, TimeRepr::Seconds(_))), (text, is_short));
        }
        assert_eq!((size_of::<Uid>(), size_of::<Version>(), size_of::<Time>()), (24, 16, 16));
    }

    #[test]
    fn later_time_is_greater() {
        let times = ["1969-12-31T23:59:59Z", "2026-11-20T00:00:00Z", "2026-11-20T00:00:01Z"].map(Time::from);
        assert!(times.is_sorted());
    }
}
