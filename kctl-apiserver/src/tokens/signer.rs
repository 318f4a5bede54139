//! The key that signs tokens: created for the first token, or stored in the folder of `--data`.
//!
//! Its public part is served at `/openid/v1/jwks`. Tokens are signed with ES256 (ECDSA on P-256 with SHA-256). The key
//! is created lazily, because most servers in tests issue no token.

use std::{
    io,
    path::Path,
    sync::{Arc, OnceLock},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use kctl_webhook::private_file;
use ring::{
    digest,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::x509::pem;

/// The file of the key in a folder: PKCS #8 as PEM.
const KEY_FILE: &str = "service-account.key";
/// The name of the algorithm in tokens: ECDSA on the curve P-256.
pub(super) const ALGORITHM: &str = "ES256";
/// The DER of a P-256 public key, up to its point.
const BEFORE_POINT: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// The length of each coordinate of the point in bytes. A type byte precedes them.
const COORDINATE_LEN: usize = 32;
/// PKCS #8, unencrypted.
const PEM_LABEL: &str = "PRIVATE KEY";

/// The reason why tokens cannot be signed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignerError {
    /// The system has no random numbers for a key or a signature.
    #[error("no key or signature for tokens: the machine gives no random numbers")]
    NoRandomness,
    /// The file has no valid key.
    #[error("{file}: no private key of ECDSA on P-256 in PKCS #8: {why}; remove the file for a new key")]
    KeyBroken { file: String, why: String },
    /// The file cannot be written.
    #[error("{file}: {error}; {}", private_file::remedy(error))]
    KeyUnkept { file: String, error: io::Error },
}

/// Signs tokens, and verifies its own signatures.
pub(crate) struct Signer {
    /// The private key never leaves this struct, apart from the file.
    pair: EcdsaKeyPair,
    /// The name of the key: a digest of it.
    id: String,
}

impl Signer {
    /// Creates a signer with a new key. Fails if the system has no random numbers.
    pub(crate) fn new() -> Result<Self, SignerError> {
        Self::from_document(&new_key()?).map_err(|_| SignerError::NoRandomness)
    }

    /// Returns a signer with the key in the file of a folder. Creates the file if it does not exist. Fails if the file
    /// is not a key, or cannot be written.
    pub(crate) fn load_or_create(folder: &Path) -> Result<Self, SignerError> {
        let path = folder.join(KEY_FILE);
        let file = path.display().to_string();
        let unkept = |error| SignerError::KeyUnkept { file: file.clone(), error };
        if let Some(text) = private_file::read(&path).map_err(unkept)? {
            let key = pem::blocks(&text).find(|block| block.label == PEM_LABEL);
            let signer = match key {
                Some(key) => Self::from_document(&key.der),
                None => Err(format!("there is no intact block {PEM_LABEL} in PEM")),
            };
            return signer.map_err(|why| SignerError::KeyBroken { file, why });
        }
        let document = new_key()?;
        private_file::write(&path, &pem::block(PEM_LABEL, &document)).map_err(unkept)?;
        Self::from_document(&document).map_err(|_| SignerError::NoRandomness)
    }

    /// Creates a signer from a PKCS #8 key.
    fn from_document(document: &[u8]) -> Result<Self, String> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document, &SystemRandom::new())
            .map_err(|why| why.to_string())?;
        let public: Vec<u8> = BEFORE_POINT.iter().chain(pair.public_key().as_ref()).copied().collect();
        let id = BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, &public));
        Ok(Self { pair, id })
    }

    /// Returns a token with these claims: head, claims and signature, separated by dots. Fails if the system has no
    /// random numbers.
    pub(crate) fn sign(&self, claims: &impl Serialize) -> Result<String, SignerError> {
        let head = json!({ "alg": ALGORITHM, "kid": self.id }).to_string();
        let claims = serde_json::to_vec(claims).map_err(|_| SignerError::NoRandomness)?;
        let signed = format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(head), BASE64_URL_SAFE_NO_PAD.encode(claims));
        let signature =
            self.pair.sign(&SystemRandom::new(), signed.as_bytes()).map_err(|_| SignerError::NoRandomness)?;
        Ok(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Returns `true` if this key made the signature.
    pub(crate) fn has_signed(&self, signed: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref());
        key.verify(signed, signature).is_ok()
    }

    /// Returns the document of `/openid/v1/jwks`: the public key for verifiers of tokens.
    pub(crate) fn keys(&self) -> Value {
        let point = &self.pair.public_key().as_ref()[1..];
        let (x, y) = point.split_at(COORDINATE_LEN);
        json!({ "keys": [{
            "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": ALGORITHM,
            "x": BASE64_URL_SAFE_NO_PAD.encode(x), "y": BASE64_URL_SAFE_NO_PAD.encode(y),
        }] })
    }
}

/// The signer of a server and its forks. A token of one is valid for all of them.
#[derive(Clone, Default)]
pub(crate) struct SharedSigner(Arc<OnceLock<Signer>>);

impl SharedSigner {
    /// Returns a signer with the key of a folder (see [`Signer::load_or_create`]). Fails if the file is not a key, or
    /// cannot be written.
    pub(crate) fn load_or_create(folder: &Path) -> Result<Self, SignerError> {
        Ok(Self(Arc::new(OnceLock::from(Signer::load_or_create(folder)?))))
    }

    /// Returns the signer. Two threads may create a key at the same time; the first key is kept. Fails if the machine
    /// provides no random numbers for a key.
    pub(crate) fn get(&self) -> Result<&Signer, SignerError> {
        if let Some(signer) = self.0.get() {
            return Ok(signer);
        }
        let made = Signer::new()?;
        Ok(self.0.get_or_init(|| made))
    }
}

/// Returns a new key in PKCS #8.
fn new_key() -> Result<Vec<u8>, SignerError> {
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
    document.map(|document| document.as_ref().to_vec()).map_err(|_| SignerError::NoRandomness)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::test_folder::TestFolder;

    #[test]
    fn persisted_key_verifies_earlier_signatures() {
        let folder = TestFolder::new("signer-kept");
        let first = Signer::load_or_create(&folder).unwrap();
        let token = first.sign(&json!({ "a": 1 })).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
        let restarted = Signer::load_or_create(&folder).unwrap();
        assert_eq!(restarted.keys(), first.keys());
        assert!(restarted.has_signed(signed.as_bytes(), &signature));
        assert!(!Signer::new().unwrap().has_signed(signed.as_bytes(), &signature));
        assert!(!restarted.has_signed(b"something else", &signature));
        #[cfg(unix)]
        {
            let mode = fs::metadata(folder.join(KEY_FILE)).unwrap();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o600);
        }
    }

    #[test]
    fn file_without_a_key_is_reported_and_kept() {
        let folder = TestFolder::new("signer-broken");
        let rsa = pem::block(PEM_LABEL, &[0x30, 0x82, 0x01, 0x55]);
        for (text, why) in [("", "there is no"), ("nonsense", "there is no"), (rsa.as_str(), "remove the file")] {
            fs::write(folder.join(KEY_FILE), text).unwrap();
            let error = Signer::load_or_create(&folder).err().unwrap().to_string();
            assert!(error.contains(why) && error.contains(KEY_FILE), "{error}");
            assert_eq!(fs::read_to_string(folder.join(KEY_FILE)).unwrap(), text);
        }
    }
}
