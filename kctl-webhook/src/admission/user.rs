//! The user of a request.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// The user that sent the request.
///
/// A controller is a service account: `system:serviceaccount:NAMESPACE:NAME`. With impersonation it
/// is the impersonated user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct User {
    /// The name, such as `system:serviceaccount:default:web`.
    #[serde(default, rename = "username")]
    pub name: String,
    /// The uid; empty if the authenticator knows none.
    #[serde(default)]
    pub uid: String,
    /// The groups, such as `system:masters`.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Additional attributes from the authenticator.
    #[serde(default, deserialize_with = "read_extra")]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Reads null as an empty list, because Go writes a nil slice as null.
fn read_extra<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    let extra = BTreeMap::<String, Option<Vec<String>>>::deserialize(deserializer)?;
    Ok(extra.into_iter().map(|(name, values)| (name, values.unwrap_or_default())).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_attribute_has_no_values() {
        let user = User::deserialize(json!({ "username": "ann", "extra": { "scopes": ["a"], "team": null } })).unwrap();
        let expected = [("scopes".to_owned(), vec!["a".to_owned()]), ("team".to_owned(), Vec::new())];
        assert_eq!(user.extra, BTreeMap::from(expected));
    }
}
