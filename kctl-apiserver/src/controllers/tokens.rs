//! Fills in Secrets of type `kubernetes.io/service-account-token`, and deletes those without an account
//! (`tokens_controller.go` of `pkg/controller/serviceaccount`).
//!
//! A client creates such a Secret with the annotation `kubernetes.io/service-account.name`:
//!
//! | key | value |
//! |---|---|
//! | `token` | a token of the account that does not expire |
//! | `namespace` | the namespace of the Secret |
//! | `ca.crt` | the certificate authority of the server, once it listens |
//!
//! The token is valid as long as the Secret exists and contains it.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use crate::{
    deletion::{Grace, Propagation, is_being_deleted},
    key,
    kinds::core::{secret, service_account},
    lifecycle::{self, Writer},
    registry::kind::Subresource,
    status::GroupResource,
    store::{Event, Key, Store},
    tokens::{self, ACCOUNT_NAME, ACCOUNT_UID, LAST_USED, SharedSigner, TOKEN_TYPE},
};

/// Writes as kube-controller-manager.
const WRITER: Writer = Writer::for_manager(Subresource::Main);
/// The field manager of labels, which the API server writes itself.
const SERVER: Writer = Writer { manager: "kube-apiserver", subresource: Subresource::Main };

/// Work of this controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TokenWork {
    /// A Secret of the type was created or changed.
    Secret(Key),
    /// A Secret of the type was deleted. The account may still list it in `secrets`. `uid` is the uid of the account,
    /// empty if the Secret has none.
    Removed { account: Key, uid: String, secret: String },
    /// A `ServiceAccount` was deleted.
    Account(Key),
}

/// Returns the work that a change causes. A new account causes no work: a Secret that names no existing account is
/// deleted as soon as it is created.
pub(super) fn work_for_event(resource: &GroupResource, event: &Event) -> Option<TokenWork> {
    if service_account::KIND.is_of(resource) {
        return event.deleted.then(|| TokenWork::Account(event.key.clone()));
    }
    if !secret::KIND.is_of(resource) {
        return None;
    }
    let secret = event.object.value();
    if secret["type"] != TOKEN_TYPE {
        return None;
    }
    if !event.deleted {
        return Some(TokenWork::Secret(event.key.clone()));
    }
    let annotation = |name: &str| secret["metadata"]["annotations"][name].as_str().map(str::to_owned);
    let account = (event.key.0.clone(), annotation(ACCOUNT_NAME)?);
    let uid = annotation(ACCOUNT_UID).unwrap_or_default();
    Some(TokenWork::Removed { account, uid, secret: event.key.1.clone() })
}

/// Returns the resource `secrets`.
fn secrets() -> GroupResource {
    secret::KIND.group_resource()
}

/// Returns the work for all Secrets of the type, for a start with existing objects.
pub(super) fn initial_work(store: &Store) -> Vec<TokenWork> {
    let resource = secrets();
    let secrets = store.objects(&resource, None).filter(|secret| secret["type"] == TOKEN_TYPE);
    secrets.map(|secret| TokenWork::Secret(key::object_key(&secret))).collect()
}

/// The parts of a token Secret that the server adds.
pub(super) struct Issuer<'a> {
    /// Signs the tokens.
    pub(super) signer: &'a SharedSigner,
    /// `ca.crt` of the Secret; absent before the server listens.
    pub(super) root_ca: Option<&'a str>,
}

/// Does one piece of work.
pub(super) fn sync(store: &mut Store, issuer: &Issuer<'_>, work: TokenWork) {
    match work {
        TokenWork::Secret(key) => sync_secret(store, issuer, &key),
        TokenWork::Removed { account, uid, secret } => forget_reference(store, &account, &uid, &secret),
        TokenWork::Account(account) => {
            let account_secrets: Vec<Key> = store
                .objects(&secrets(), Some(&account.0))
                .filter(|secret| secret["type"] == TOKEN_TYPE)
                .filter(|secret| secret["metadata"]["annotations"][ACCOUNT_NAME] == account.1.as_str())
                .map(|secret| key::object_key(&secret))
                .collect();
            for key in account_secrets {
                sync_secret(store, issuer, &key);
            }
        }
    }
}

/// Completes a Secret, or deletes it if its account does not exist or has another uid. An account with the same name
/// and another uid is another account. The Secret must not get its tokens.
fn sync_secret(store: &mut Store, issuer: &Issuer<'_>, key: &Key) {
    let group_resource = secrets();
    let Some(secret) = store.get(&group_resource, key).filter(|secret| secret["type"] == TOKEN_TYPE) else { return };
    let annotation = |name: &str| secret["metadata"]["annotations"][name].as_str().unwrap_or_default();
    let account = store.object(&service_account::KIND, &key.0, annotation(ACCOUNT_NAME));
    let uid = annotation(ACCOUNT_UID);
    let Some(account) = account.filter(|account| uid.is_empty() || account["metadata"]["uid"] == uid) else {
        if !is_being_deleted(&secret)
            && let Some(resource) = store.registry.any_version(&group_resource)
        {
            lifecycle::delete(store, &resource, key, &secret, Propagation::Background, Grace::Default);
        }
        return;
    };
    if let Some(new) = complete_secret(issuer, key, &account, &secret) {
        WRITER.write(store, &group_resource, key, &secret, new);
    }
}

/// Returns the Secret with the data that it lacks; `None` if it lacks nothing. Keys that the client has set are kept,
/// apart from `ca.crt`. A failure to sign is logged, and the Secret gets no token.
fn complete_secret(issuer: &Issuer<'_>, key: &Key, account: &Value, secret: &Arc<Value>) -> Option<Value> {
    let encoded = |text: &str| Value::from(BASE64_STANDARD.encode(text));
    let is_empty = |field: &str| secret["data"][field].as_str().unwrap_or_default().is_empty();
    let mut new = Value::clone(secret);
    if let Some(authority) = issuer.root_ca {
        new["data"]["ca.crt"] = encoded(authority);
    }
    if is_empty("namespace") {
        new["data"]["namespace"] = encoded(&key.0);
    }
    if is_empty("token") {
        let token = tokens::sign_secret_token(issuer.signer, account, &key.1).inspect_err(|error| {
            tracing::error!(%error, secret = %format!("{}/{}", key.0, key.1), "failed to sign a token for a Secret");
        });
        new["data"]["token"] = encoded(&token.ok()?);
    }
    if new == **secret {
        return None;
    }
    new["metadata"]["annotations"][ACCOUNT_NAME] = account["metadata"]["name"].clone();
    new["metadata"]["annotations"][ACCOUNT_UID] = account["metadata"]["uid"].clone();
    Some(new)
}

/// Removes a deleted Secret from the list of its account (`removeSecretReference`). A Secret that was created again
/// under the same name keeps the reference, and so does an account with another uid than the Secret names.
fn forget_reference(store: &mut Store, account: &Key, uid: &str, secret: &str) {
    let resource = service_account::KIND.group_resource();
    let Some(existing) = store.get(&resource, account) else { return };
    let is_other = !uid.is_empty() && existing["metadata"]["uid"] != uid;
    if is_other || store.get(&secrets(), &(account.0.clone(), secret.to_owned())).is_some() {
        return;
    }
    let mut new = Value::clone(&existing);
    let Some(references) = new["secrets"].as_array_mut() else { return };
    references.retain(|reference| reference["name"] != secret);
    if references.is_empty() {
        new.as_object_mut().map(|account| account.remove("secrets"));
    }
    if new != *existing {
        WRITER.write(store, &resource, account, &existing, new);
    }
}

/// Labels a Secret with the day on which its token was last used (`patchSecretWithLastUsedDate` of
/// `pkg/serviceaccount/legacy.go`). It is written at most once a day for each Secret, so that requests do not become
/// writes.
pub(crate) fn label_used(store: &mut Store, key: &Key) {
    let resource = secrets();
    let Some(secret) = store.get(&resource, key) else { return };
    let today = store.clock.now().strftime("%Y-%m-%d").to_string();
    if secret["metadata"]["labels"][LAST_USED] == today.as_str() {
        return;
    }
    let mut new = Value::clone(&secret);
    new["metadata"]["labels"][LAST_USED] = today.into();
    SERVER.write(store, &resource, key, &secret, new);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clock::Clock;

    #[test]
    fn other_account_keeps_reference() {
        let resource = service_account::KIND.group_resource();
        let key = ("default".to_owned(), "a".to_owned());
        let mut store = Store::new(crate::kinds::built_in(), Clock::System, 0);
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": "a", "namespace": "default", "uid": "new" }, "secrets": [{ "name": "s" }],
        });
        store.put(&resource, key.clone(), account);
        let secrets_after = |store: &mut Store, uid: &str| {
            forget_reference(store, &key, uid, "s");
            store.get(&resource, &key).unwrap()["secrets"].clone()
        };
        assert_eq!(secrets_after(&mut store, "old"), json!([{ "name": "s" }]));
        assert_eq!(secrets_after(&mut store, "new"), Value::Null);
    }
}
