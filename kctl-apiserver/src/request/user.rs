//! The user of a request, with name, groups and further attributes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The user of requests without credentials.
pub(crate) const ANONYMOUS: &str = "system:anonymous";
/// The group of the anonymous user.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of all other users.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group whose users may do everything.
pub(crate) const ADMINISTRATORS: &str = "system:masters";

/// The user of a request, as authentication identified it.
///
/// RBAC compares name and groups exactly. The server adds the group `system:authenticated`, so callers need not name
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct User {
    /// The name, such as `system:serviceaccount:default:podset`.
    pub name: String,
    /// The names of the user's groups.
    pub groups: Vec<String>,
}

impl User {
    /// Returns a user without groups, who may do what RBAC grants to the name.
    ///
    /// ```
    /// use kctl_apiserver::User;
    ///
    /// let user = User::new("jane").in_group("developers");
    /// assert_eq!(user.groups, ["developers"]);
    /// ```
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), groups: Vec::new() }
    }

    /// Returns the user of a `ServiceAccount`, with the groups that kube-apiserver gives to one.
    ///
    /// ```
    /// use kctl_apiserver::User;
    ///
    /// let user = User::service_account("shop", "podset");
    /// assert_eq!(user.name, "system:serviceaccount:shop:podset");
    /// assert_eq!(user.groups[1], "system:serviceaccounts:shop");
    /// ```
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(format!("system:serviceaccount:{namespace}:{name}"))
            .in_group("system:serviceaccounts")
            .in_group(format!("system:serviceaccounts:{namespace}"))
            .in_group(AUTHENTICATED)
    }

    /// Adds a group, whose permissions the user has as well.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Returns a user with all permissions. It is in `system:masters`, which the authorizer allows everything without
    /// rules.
    pub fn admin() -> Self {
        Self { name: "kubernetes-admin".into(), groups: vec![ADMINISTRATORS.into(), AUTHENTICATED.into()] }
    }

    /// Returns the user of requests without credentials. It is not in `system:authenticated`, so roles for all users
    /// with credentials do not apply to it.
    pub(crate) fn anonymous() -> Self {
        Self::new(ANONYMOUS).in_group(UNAUTHENTICATED)
    }

    /// Adds the group `system:authenticated`, unless the user is in it or is anonymous. Like upstream's
    /// `AuthenticatedGroupAdder` (`k8s.io/apiserver/pkg/authentication/group`).
    pub(crate) fn with_group(mut self) -> Self {
        if !self.groups.iter().any(|group| [AUTHENTICATED, UNAUTHENTICATED].contains(&group.as_str())) {
            self.groups.push(AUTHENTICATED.into());
        }
        self
    }
}

/// A user with the further attributes that authentication found. These grant no permissions. Reviews and webhooks get
/// them as `userInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The name and groups, on which authorization decides.
    pub(crate) user: User,
    /// The uid of the user; empty for most.
    pub(crate) uid: String,
    /// Further values by key, such as `authentication.kubernetes.io/credential-id`; empty for most.
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl From<User> for Caller {
    fn from(user: User) -> Self {
        Self { user, uid: String::new(), extra: BTreeMap::new() }
    }
}

impl Caller {
    /// Returns the user as reviews write it. Fields that are empty are left out, as in the JSON of `UserInfo` of
    /// `authentication.k8s.io`.
    pub(crate) fn user_info(&self) -> Value {
        let mut info = json!({ "username": self.user.name, "groups": self.user.groups });
        if !self.uid.is_empty() {
            info["uid"] = self.uid.clone().into();
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }
}
