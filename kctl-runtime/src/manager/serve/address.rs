//! Addresses as flags have them: `:8081`, `127.0.0.1:8080`, `0` for none.

use std::{io, net::SocketAddr};

use tokio::net::TcpListener;

/// Why an address cannot be listened on.
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
/// # Errors
/// The address is invalid; the error names flag and address.
pub fn check_address(flag: &'static str, address: &str) -> Result<(), BindError> {
    port(flag, address).map(drop)
}

/// The port of an address; `None` where nobody is to listen.
fn port(flag: &'static str, address: &str) -> Result<Option<u16>, BindError> {
    if ["", "0"].contains(&address) {
        return Ok(None);
    }
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let problem = "not an address; write for example `:8080`, or `0` for none";
    port.map(Some).ok_or_else(|| BindError { flag, address: address.into(), problem: problem.into(), source: None })
}

/// Listens on the address of a flag. Returns `None` for `0` and for an empty string. An address without a host, such as `:8080`, means all
/// addresses of the machine.
///
/// # Errors
/// The address is invalid or in use; the error names flag and address.
pub async fn bind(flag: &'static str, address: &str) -> Result<Option<TcpListener>, BindError> {
    let Some(port) = port(flag, address)? else { return Ok(None) };
    let failed = |problem: String, source| BindError { flag, address: address.into(), problem, source };
    let listener = if address.starts_with(':') {
        match TcpListener::bind(SocketAddr::new([0_u16; 8].into(), port)).await {
            // A machine without IPv6.
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
            io::ErrorKind::AddrInUse => format!("port {port} is in use; stop what uses it, or choose another one"),
            io::ErrorKind::PermissionDenied => {
                format!("this process may not listen on port {port}; choose one above 1023")
            }
            _ => "this machine cannot listen there".into(),
        };
        failed(problem, Some(error))
    })
}
