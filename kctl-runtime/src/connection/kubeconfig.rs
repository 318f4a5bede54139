//! Reads a kubeconfig as kubectl does: an empty string counts as unset, and only one of several credentials is used.
//!
//! kube takes most fields literally. The rules here follow client-go (`tools/clientcmd/client_config.go` and
//! `transport/config.go`); each case was compared with kubectl 1.36.
//!
//! | The user has | kubectl and kctl use |
//! |---|---|
//! | a token and a readable `tokenFile` | the file |
//! | a token or a user name, and a plugin | the token or the user name |
//! | a client certificate and an `exec` plugin | the certificate |
//! | a key without a certificate | neither |
//! | a user name without a password | an empty password |
//! | a token and a user name | an error |
//! | `auth-provider` and `exec` | an error |
//! | a certificate without a key | an error |

use std::path::{MAIN_SEPARATOR, PathBuf};

use kube::config::{AuthInfo, Cluster, Kubeconfig};
use serde_json::Value;

/// Credentials of a kubeconfig user that contradict each other. kubectl rejects them as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// The user has a token and a user name.
    #[error("the user of the kubeconfig has both a token and a username: remove one of them")]
    TokenAndUsername,
    /// The user has an `auth-provider` and an `exec` plugin.
    #[error("the user of the kubeconfig has both `auth-provider` and `exec`: remove `auth-provider`")]
    TwoPlugins,
    /// The user has a client certificate without its key.
    #[error(
        "the user of the kubeconfig has a client certificate without its key: set `client-key` or `client-key-data`"
    )]
    NoKey,
}

/// Returns the existing files that kubectl merges without `--kubeconfig`: those in `KUBECONFIG`, or else `~/.kube/config`.
///
/// The first file wins. As for kubectl, a missing file of `KUBECONFIG` is skipped; kube's `Kubeconfig::read` fails there.
/// The list is empty if no file exists.
///
/// ```
/// let files = kctl_runtime::connection::kubeconfig::default_files();
/// assert!(files.iter().all(|file| file.exists()));
/// ```
#[must_use]
pub fn default_files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = match std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
        Some(list) => std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => std::env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
    };
    files.retain(|file| file.exists());
    files
}

/// Removes empty strings from the clusters and contexts of a kubeconfig.
///
/// Users are handled by [`choose_credentials`]. Call it before `Config::from_custom_kubeconfig`.
///
/// ```
/// use kctl_runtime::connection::kubeconfig::unset_empty;
///
/// let mut kubeconfig = kube::config::Kubeconfig::from_yaml(r#"
/// current-context: dev
/// contexts: [{name: dev, context: {cluster: dev, namespace: ""}}]
/// "#)?;
/// unset_empty(&mut kubeconfig);
/// let context = kubeconfig.contexts[0].context.as_ref();
/// assert_eq!(context.and_then(|context| context.namespace.as_deref()), None);
/// # Ok::<_, kube::config::KubeconfigError>(())
/// ```
pub fn unset_empty(kubeconfig: &mut Kubeconfig) {
    unset(&mut kubeconfig.current_context);
    for context in kubeconfig.contexts.iter_mut().filter_map(|named| named.context.as_mut()) {
        unset(&mut context.namespace);
        unset(&mut context.user);
    }
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        let Cluster { certificate_authority, certificate_authority_data, proxy_url, tls_server_name, .. } = cluster;
        unset_path(certificate_authority);
        for field in [certificate_authority_data, proxy_url, tls_server_name] {
            unset(field);
        }
    }
}

/// Keeps only the credentials of a user that kubectl would use.
///
/// A token or a user name wins over plugins, a certificate over an `exec` plugin, and the token of a readable
/// file over one in the kubeconfig. [`client`](super::client) calls it.
///
/// ```
/// use kctl_runtime::connection::kubeconfig::choose_credentials;
///
/// let mut user: kube::config::AuthInfo = serde_json::from_value(serde_json::json!({
///     "token": "secret",
///     "exec": { "command": "login" },
/// }))?;
/// choose_credentials(&mut user)?;
/// assert!(user.exec.is_none() && user.token.is_some());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`CredentialsError`] if they contradict each other.
pub fn choose_credentials(auth: &mut AuthInfo) -> Result<(), CredentialsError> {
    unset_empty_credentials(auth);
    let has_token = auth.token.is_some() || auth.token_file.is_some();
    let has_certificate = auth.client_certificate.is_some() || auth.client_certificate_data.is_some();
    let has_key = auth.client_key.is_some() || auth.client_key_data.is_some();
    if has_token && auth.username.is_some() {
        return Err(CredentialsError::TokenAndUsername);
    }
    if auth.exec.is_some() && auth.auth_provider.is_some() {
        return Err(CredentialsError::TwoPlugins);
    }
    match (has_certificate, has_key) {
        (true, false) => return Err(CredentialsError::NoKey),
        (false, true) => (auth.client_key, auth.client_key_data) = (None, None),
        _ => {}
    }
    if auth.username.is_none() {
        auth.password = None;
    } else if auth.password.is_none() {
        auth.password = Some(String::new().into());
    }
    // A plugin runs only if no other credential is set.
    if has_token || auth.username.is_some() || has_certificate {
        auth.exec = None;
    }
    if has_token || auth.username.is_some() {
        auth.auth_provider = None;
    }
    if auth.token.is_some() {
        // The token of the file may have been rotated, so it wins as long as the file can be read.
        let is_read = |file: &String| std::fs::read_to_string(file).is_ok_and(|token| !token.trim().is_empty());
        if auth.token_file.as_ref().is_some_and(is_read) {
            auth.token = None;
        } else {
            auth.token_file = None;
        }
    }
    Ok(())
}

/// Removes empty strings from the credentials of a user.
fn unset_empty_credentials(auth: &mut AuthInfo) {
    // `SecretString` hides its content, so the serialized values are compared.
    let fields = serde_json::to_value(&*auth).unwrap_or_default();
    let is_empty = |name: &str| fields.get(name).and_then(Value::as_str) == Some("");
    for (field, name) in
        [(&mut auth.password, "password"), (&mut auth.token, "token"), (&mut auth.client_key_data, "client-key-data")]
    {
        field.take_if(|_| is_empty(name));
    }
    for field in [&mut auth.username, &mut auth.client_certificate_data, &mut auth.impersonate] {
        unset(field);
    }
    for field in [&mut auth.token_file, &mut auth.client_certificate, &mut auth.client_key] {
        unset_path(field);
    }
}

fn unset(field: &mut Option<String>) {
    field.take_if(|text| text.is_empty());
}

/// Removes an empty path. kube joins it with the folder of the kubeconfig, so it ends with a separator.
fn unset_path(field: &mut Option<String>) {
    field.take_if(|path| path.is_empty() || path.ends_with(MAIN_SEPARATOR));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the credential fields of a user that are kept.
    fn chosen(user: Value) -> Result<Vec<String>, CredentialsError> {
        let mut auth: AuthInfo = serde_json::from_value(user).unwrap();
        choose_credentials(&mut auth)?;
        let fields = serde_json::to_value(&auth).unwrap();
        Ok(fields.as_object().unwrap().keys().cloned().collect())
    }

    #[test]
    fn credentials_count_as_they_do_for_kubectl() {
        let file = std::env::temp_dir().join(format!("kctl-credentials-{}", std::process::id()));
        std::fs::write(&file, "token").unwrap();
        let (file, absent) = (file.to_str().unwrap(), "/nowhere/token");
        let exec = json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "plugin" });
        let oidc = json!({ "name": "oidc", "config": { "id-token": "t" } });
        let cases: [(Value, Result<&[&str], CredentialsError>); 19] = [
            (json!({ "token": "", "tokenFile": "", "username": "", "password": "", "as": "" }), Ok(&[])),
            (json!({ "token": "", "exec": exec }), Ok(&["exec"])),
            (json!({ "username": "", "password": "p", "exec": exec }), Ok(&["exec"])),
            (json!({ "client-certificate-data": "", "client-key-data": "", "exec": exec }), Ok(&["exec"])),
            (json!({ "client-certificate": "/home/me/.kube/", "client-key": "", "exec": exec }), Ok(&["exec"])),
            (json!({ "token": "t", "exec": exec }), Ok(&["token"])),
            (json!({ "tokenFile": file, "exec": exec }), Ok(&["tokenFile"])),
            (json!({ "username": "u", "exec": exec }), Ok(&["password", "username"])),
            (
                json!({ "client-certificate-data": "c", "client-key-data": "k", "exec": exec }),
                Ok(&["client-certificate-data", "client-key-data"]),
            ),
            (
                json!({ "client-certificate": "c", "client-key": "k", "token": "t" }),
                Ok(&["client-certificate", "client-key", "token"]),
            ),
            (json!({ "token": "t", "tokenFile": file }), Ok(&["tokenFile"])),
            (json!({ "token": "t", "tokenFile": absent }), Ok(&["token"])),
            (json!({ "tokenFile": absent }), Ok(&["tokenFile"])),
            (json!({ "token": "t", "auth-provider": oidc }), Ok(&["token"])),
            (json!({ "client-key-data": "k", "token": "t" }), Ok(&["token"])),
            (json!({ "token": "t", "username": "u", "password": "p" }), Err(CredentialsError::TokenAndUsername)),
            (json!({ "auth-provider": oidc, "exec": exec }), Err(CredentialsError::TwoPlugins)),
            (json!({ "client-certificate": "c" }), Err(CredentialsError::NoKey)),
            (json!({ "client-certificate-data": "c", "client-key": "", "token": "t" }), Err(CredentialsError::NoKey)),
        ];
        for (user, expected) in cases {
            let expected = expected.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(chosen(user.clone()), expected, "{user}");
        }
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn empty_strings_count_as_unset() {
        let mut kubeconfig = Kubeconfig::from_yaml(
            r#"{current-context: "", contexts: [{name: a, context: {cluster: a, user: "", namespace: ""}}], clusters: [{name: a,
            cluster: {server: "https://a", certificate-authority: "", certificate-authority-data: "", tls-server-name: "", proxy-url: ""}}]}"#,
        )
        .unwrap();
        unset_empty(&mut kubeconfig);
        let left = serde_json::to_value(&kubeconfig).unwrap();
        let expected = json!({ "users": [], "contexts": [{ "name": "a", "context": { "cluster": "a", "user": null } }],
            "clusters": [{ "name": "a", "cluster": { "server": "https://a" } }] });
        assert_eq!(left, expected);
    }
}
