//! The user of a request.

use std::collections::BTreeMap;

use serde::Deserialize;

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
    #[serde(default)]
    pub extra: BTreeMap<String, Vec<String>>,
}
