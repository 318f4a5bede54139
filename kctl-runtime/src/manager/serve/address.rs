//! Addresses as flags have them: `:8081`, `127.0.0.1:8080`, or `0` for no listener.

use std::{io, net::SocketAddr};

use tokio::net::TcpListener;

/// An address that cannot be listened on. The message has flag, address and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{flag}={address}: {problem}")]
pub struct BindError {
    flag: &'static str,
    address: String,
    problem: String,
    source: Option<io::Error>,
}

/// Checks the address of a flag without listening on it.
///
/// ```
/// use kctl_runtime::manager::serve::check_address;
///
/// assert!(check_address("--metrics-bind-address", ":8080").is_ok());
/// assert!(check_address("--metrics-bind-address", "0").is_ok()); // no listener
/// let error = check_address("--metrics-bind-address", "8080").unwrap_err();
/// assert!(error.to_string().starts_with("--metrics-bind-address=8080: "));
/// ```
///
/// # Errors
/// The address has no valid port; the error names flag and address.
pub fn check_address(flag: &'static str, address: &str) -> Result<(), BindError> {
    port(flag, address).map(drop)
}

/// Returns the port of an address, `None` for no listener.
fn port(flag: &'static str, address: &str) -> Result<Option<u16>, BindError> {
    if ["", "0"].contains(&address) {
        return Ok(None);
    }
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let problem = "not an address; write for example `:8080`, or `0` for none";
    port.map(Some).ok_or_else(|| BindError { flag, address: address.into(), problem: problem.into(), source: None })
}

/// Listens on the address of a flag.
///
/// Returns `None` for `0` and for an empty string. An address without a host, such as `:8080`, listens on
/// all addresses of the machine, IPv6 and IPv4. Port 0 after a host picks a free port.
///
/// # Errors
/// The address is invalid, in use or not permitted; the error names flag and address.
pub async fn bind(flag: &'static str, address: &str) -> Result<Option<TcpListener>, BindError> {
    let Some(port) = port(flag, address)? else { return Ok(None) };
    let failed = |problem: String, source| BindError { flag, address: address.into(), problem, source };
    let listener = if address.starts_with(':') {
        match TcpListener::bind(SocketAddr::new([0_u16; 8].into(), port)).await {
            // The machine has no IPv6 (97 is `EAFNOSUPPORT`).
            Err(error) if error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(97) => {
                TcpListener::bind(SocketAddr::new([0_u8; 4].into(), port)).await
            }
            other => other,
        }
    } else {
        TcpListener::bind(address).await
    };
    listener.map(Some).map_err(|error| {
        let problem = match error.kind() {
            io::ErrorKind::AddrInUse => format!("port {port} is in use; stop what uses it, or choose another port"),
            io::ErrorKind::PermissionDenied => {
                format!("this process may not listen on port {port}; choose one above 1023")
            }
            _ => "this machine cannot listen there".into(),
        };
        failed(problem, Some(error))
    })
}
