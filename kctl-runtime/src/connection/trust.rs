//! Verifies servers as Go does: a serving certificate that is among the authorities of a kubeconfig is trusted.

use std::sync::Arc;

use kctl_webhook::trust::Trust;
use kube::Config;
use tokio_rustls::rustls::{ClientConfig, crypto::ring, pki_types::CertificateDer};

/// Installs the verifier if the configuration has authorities and verifies certificates.
///
/// Without authorities the system's roots count, and `insecure-skip-tls-verify` accepts everything: both keep the
/// setup that kube made. So does an authority that is not a certificate, which the client reports by itself.
pub(super) fn with_serving_certificates(config: &Config, mut tls: ClientConfig) -> ClientConfig {
    let roots = config.root_cert.as_ref().filter(|_| !config.accept_invalid_certs);
    let authorities = roots.map(|roots| roots.iter().map(|der| CertificateDer::from(der.clone())).collect());
    let trust = authorities.and_then(|all| Trust::new(all, Arc::new(ring::default_provider())).ok());
    if let Some(trust) = trust {
        tls.dangerous().set_certificate_verifier(Arc::new(trust));
    }
    tls
}
