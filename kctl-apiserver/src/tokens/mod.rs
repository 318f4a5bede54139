//! Service account tokens: decodes a JSON Web Token to the caller that it identifies, and checks that it is still
//! valid. The server stores nothing about an issued token.
//!
//! Upstream: `pkg/serviceaccount/claims.go` and `pkg/serviceaccount/jwt.go`.

mod legacy;
mod signer;

use std::collections::HashSet;

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use kctl_apimachinery::time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::{
    legacy::{ACCOUNT_NAME, ACCOUNT_UID, LAST_USED, TOKEN_TYPE, sign_secret_token},
    signer::{SharedSigner, Signer, SignerError},
};
use crate::{
    kinds::{self, core::service_account},
    registry::Kind,
    request::{Caller, User},
    store::{Key, Store},
};

/// The issuer of tokens, and the audience of tokens that request none.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";
/// The time after its expiry for which a token is accepted, because clocks differ (`jwt.DefaultLeeway`).
const LEEWAY_SECONDS: i64 = 60;
/// The prefix of keys in `extra` of a token's user.
const EXTRA: &str = "authentication.kubernetes.io/";

/// The claims of a token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Claims {
    /// The audiences for which the token is valid.
    #[serde(default)]
    pub(crate) aud: Vec<String>,
    /// The expiry, in seconds since the epoch.
    pub(crate) exp: i64,
    /// The time of issue, in seconds since the epoch.
    pub(crate) iat: i64,
    /// The issuer, always `ISSUER`.
    pub(crate) iss: String,
    /// The id of the token, which audit events show as `credential-id`.
    pub(crate) jti: String,
    /// The private claims.
    #[serde(rename = "kubernetes.io")]
    pub(crate) about: TokenClaims,
    /// The time from which the token is valid, in seconds since the epoch.
    pub(crate) nbf: i64,
    /// `system:serviceaccount:NAMESPACE:NAME`.
    pub(crate) sub: String,
}

/// The objects in the private claims: the account, and the object to which the token is bound.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TokenClaims {
    /// The namespace of the account, the Pod and the Secret.
    pub(crate) namespace: String,
    /// The node of the Pod, or the bound Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Named>,
    /// The bound Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<Named>,
    /// The bound Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Named>,
    /// Name and uid must match the stored account.
    pub(crate) serviceaccount: Named,
    /// The expiry that the Pod requested, if the token lives longer for old clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warnafter: Option<i64>,
}

/// A reference to an object by name and uid. If another object gets the name, the token is no longer valid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    /// The name. The object is in the namespace of the claims, unless it is a Node.
    pub(crate) name: String,
    /// Empty for a node that did not exist when the token was issued.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
}

impl Named {
    /// Reads name and uid of an object.
    pub(crate) fn from_object(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        Self { name: text("name"), uid: text("uid") }
    }
}

/// The bearer of a valid token.
#[derive(Debug)]
pub(crate) struct Bearer {
    /// The account with its groups and extra fields.
    pub(crate) caller: Caller,
    /// The requested audiences that the token is valid for.
    pub(crate) audiences: Vec<String>,
    /// The Secret that contains the token, if it is a legacy token.
    pub(crate) secret: Option<Key>,
}

/// Authenticates a token for one of the audiences; an empty list means [`ISSUER`] (`JWTTokenAuthenticator` of
/// `pkg/serviceaccount/jwt.go`). A deleted account invalidates its tokens at once: nothing is cached, and all objects
/// are read from the store. Fails with the reason for people.
pub(crate) fn bearer(
    store: &Store,
    signer: &SharedSigner,
    token: &str,
    audiences: &[String],
) -> Result<Bearer, String> {
    let invalid = |why: String| format!("invalid bearer token: {why}");
    let payload = signed_claims(signer, token).ok_or_else(|| invalid("not signed by this server".into()))?;
    let own = [ISSUER.to_owned()];
    let audiences = if audiences.is_empty() { &own } else { audiences };
    let fitting = |meant: &[String]| {
        let all: HashSet<&String> = meant.iter().collect();
        let fitting: Vec<String> = audiences.iter().filter(|audience| all.contains(audience)).cloned().collect();
        let other = || invalid(format!("audiences {meant:?} are not among {audiences:?}"));
        if fitting.is_empty() { Err(other()) } else { Ok(fitting) }
    };
    if payload["iss"] == legacy::ISSUER {
        let claims: legacy::Claims = serde_json::from_value(payload).map_err(|why| invalid(why.to_string()))?;
        let audiences = fitting(&own)?;
        claims.check_secret(store, token).map_err(invalid)?;
        return Ok(Bearer { caller: claims.caller(), audiences, secret: Some(claims.secret()) });
    }
    let claims: Claims = serde_json::from_value(payload).map_err(|why| invalid(why.to_string()))?;
    let audiences = fitting(&claims.aud)?;
    check_claims(store, &claims).map_err(invalid)?;
    Ok(Bearer { caller: caller(&claims), audiences, secret: None })
}

/// Returns the claims of a token that this server has issued and signed.
fn signed_claims(signer: &SharedSigner, token: &str) -> Option<Value> {
    let (signed, signature) = token.rsplit_once('.')?;
    let (head, claims) = signed.split_once('.')?;
    // Go ignores the unused bits of the last byte.
    let lenient = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone);
    let engine = GeneralPurpose::new(&alphabet::URL_SAFE, lenient);
    let decoded = |part: &str| engine.decode(part).ok();
    let head: Value = serde_json::from_slice(&decoded(head)?).ok()?;
    let (claims, signature) = (decoded(claims)?, decoded(signature)?);
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    // The server has no key for other algorithms. `alg: none` is rejected here as well. The signature comes last,
    // because its check is expensive.
    let may_be_own = head["alg"] == signer::ALGORITHM && [ISSUER, legacy::ISSUER].iter().any(|it| claims["iss"] == *it);
    (may_be_own && signer.get().ok()?.has_signed(signed.as_bytes(), &signature)).then_some(claims)
}

/// Checks the times of a token, and that the account and the bound object still exist. Bounds are inclusive, with a
/// leeway of 60 seconds on both sides.
fn check_claims(store: &Store, claims: &Claims) -> Result<(), String> {
    let now = store.clock.now().as_second();
    if now > claims.exp + LEEWAY_SECONDS || now < claims.nbf - LEEWAY_SECONDS {
        return Err("the token has expired or is not valid yet".into());
    }
    let exists = |kind: &Kind, namespace: &str, claimed: &Named| {
        let stored = store.object(kind, namespace, &claimed.name);
        let is_same =
            |object: &Value| Named::from_object(object).uid == claimed.uid && !is_deletion_past_leeway(object, now);
        if stored.is_some_and(|object| is_same(&object)) {
            return Ok(());
        }
        Err(format!("{} {:?} of the token was deleted or replaced", kind.kind, claimed.name))
    };
    let TokenClaims { namespace, node, pod, secret, serviceaccount, .. } = &claims.about;
    exists(&service_account::KIND, namespace, serviceaccount)?;
    // The node of a bound Pod is informational and is not checked.
    let node = node.as_ref().filter(|_| pod.is_none());
    let bound = [
        (&kinds::core::secret::KIND, namespace.as_str(), secret.as_ref()),
        (&kinds::core::pod::KIND, namespace, pod.as_ref()),
        (&kinds::core::node::KIND, "", node),
    ];
    bound
        .into_iter()
        .try_for_each(|(kind, namespace, claimed)| claimed.map_or(Ok(()), |it| exists(kind, namespace, it)))
}

/// Returns `true` if the deletion timestamp of an object is more than the leeway ago.
fn is_deletion_past_leeway(object: &Value, now: i64) -> bool {
    let deleted = object["metadata"]["deletionTimestamp"].as_str().and_then(time::parse);
    deleted.is_some_and(|deleted| deleted.as_second() < now - LEEWAY_SECONDS)
}

/// Returns an account as a user.
fn user(namespace: &str, account: &Named) -> Caller {
    Caller { uid: account.uid.clone(), ..Caller::from(User::service_account(namespace, &account.name)) }
}

/// Returns the caller that the token identifies. Extra fields name the Pod and the node, which admission and audit use.
fn caller(claims: &Claims) -> Caller {
    let TokenClaims { namespace, node, pod, serviceaccount: account, .. } = &claims.about;
    let mut caller = user(namespace, account);
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() {
            caller.extra.insert(format!("{EXTRA}{key}"), vec![value.to_owned()]);
        }
    };
    add("credential-id", &format!("JTI={}", claims.jti));
    for (kind, named) in [("pod", pod), ("node", node)] {
        if let Some(named) = named {
            add(&format!("{kind}-name"), &named.name);
            add(&format!("{kind}-uid"), &named.uid);
        }
    }
    caller
}

/// Returns `/.well-known/openid-configuration`: the issuer, and the URL of its keys.
pub(crate) fn configuration(host: &str) -> Value {
    serde_json::json!({
        "issuer": ISSUER,
        "jwks_uri": format!("https://{host}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [signer::ALGORITHM],
    })
}

#[cfg(test)]
mod tests;
