//! Legacy tokens in Secrets of type `kubernetes.io/service-account-token`.
//!
//! They do not expire, and are valid as long as their Secret (`pkg/serviceaccount/legacy.go`).

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Named, SharedSigner, SignerError, user};
use crate::{
    deletion::is_being_deleted,
    kinds::core::{secret, service_account},
    registry::Kind,
    request::Caller,
    store::{Key, Store},
};

/// The issuer of such tokens.
pub(super) const ISSUER: &str = "kubernetes/serviceaccount";
/// The type of the Secrets.
pub(crate) const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";
/// The annotation of a Secret with the name of its `ServiceAccount`.
pub(crate) const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
/// The annotation of a Secret with the uid of its `ServiceAccount`.
pub(crate) const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// The label with the day on which the token was last used.
pub(crate) const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// The label that makes a token invalid, written by the legacy token cleaner of a cluster or by hand.
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// The claims of such a token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Claims {
    iss: String,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    namespace: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    secret: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    account: String,
    /// The uid of the `ServiceAccount`, which must still have it.
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    uid: String,
    sub: String,
}

/// Returns a token for an account. It is valid as long as the Secret of this name contains it.
pub(crate) fn sign_secret_token(signer: &SharedSigner, account: &Value, secret: &str) -> Result<String, SignerError> {
    let Named { name, uid } = Named::from_object(account);
    let namespace = account["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    let claims = Claims {
        iss: ISSUER.into(),
        sub: format!("system:serviceaccount:{namespace}:{name}"),
        namespace,
        secret: secret.into(),
        account: name,
        uid,
    };
    signer.get()?.sign(&claims)
}

impl Claims {
    /// Checks that the Secret still contains the token, and that the account is still the one for which the token was
    /// issued.
    pub(super) fn check_secret(&self, store: &Store, token: &str) -> Result<(), String> {
        let Self { namespace, secret, account, .. } = self;
        if self.sub != format!("system:serviceaccount:{namespace}:{account}") {
            return Err("the claim sub is not the name of the ServiceAccount".into());
        }
        let live =
            |kind: &Kind, name: &str| store.object(kind, namespace, name).filter(|object| !is_being_deleted(object));
        let contains_token = |secret: &Value| {
            let stored = BASE64_STANDARD.decode(secret["data"]["token"].as_str().unwrap_or_default());
            stored.is_ok_and(|stored| stored == token.as_bytes())
        };
        let Some(stored_secret) = live(&secret::KIND, secret).filter(|stored| contains_token(stored)) else {
            return Err(format!("Secret {namespace}/{secret} does not contain the token"));
        };
        let stored_account = live(&service_account::KIND, account);
        if stored_account.is_none_or(|stored| Named::from_object(&stored).uid != self.uid) {
            return Err(format!("ServiceAccount {namespace}/{account} was deleted or replaced"));
        }
        if !stored_secret["metadata"]["labels"][INVALID_SINCE].as_str().unwrap_or_default().is_empty() {
            return Err(format!("Secret {namespace}/{secret} is marked invalid by its label {INVALID_SINCE}"));
        }
        Ok(())
    }

    /// Returns the caller that the token identifies.
    pub(super) fn caller(&self) -> Caller {
        user(&self.namespace, &Named { name: self.account.clone(), uid: self.uid.clone() })
    }

    /// Returns the key of the Secret.
    pub(super) fn secret(&self) -> Key {
        (self.namespace.clone(), self.secret.clone())
    }
}
