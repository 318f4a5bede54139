//! Chooses the port of a server. The folder of `--data` stores it, so that kubeconfigs remain valid after a restart.
//!
//! The file contains the number and a line feed. It has mode 0600, like the other files next to the journal.

use std::{io, path::Path};

use kctl_webhook::private_file;
use tokio::net::TcpListener;

use super::ServeOptions;

/// The file with the port of the last start.
const FILE: &str = "port";

/// Listens on the requested port. If that is 0, the port of the last start is tried first.
///
/// | requested | file | port |
/// | --- | --- | --- |
/// | 0 | none | any free one, which the file gets |
/// | 0 | 6443 | 6443, or any free one if that is in use |
/// | 8443 | 6443 | 8443, which replaces the one in the file |
///
/// # Errors
/// Fails if the address is in use, or if the file has no valid port or can't be written.
pub(super) async fn bind(options: ServeOptions, folder: Option<&Path>) -> io::Result<TcpListener> {
    let file = folder.map(|folder| folder.join(FILE));
    let last_port = file.as_deref().map(read).transpose()?.flatten();
    let listener = match last_port {
        Some(last_port) if options.port == 0 => listen_on_last_port(options, last_port).await?,
        _ => listen(options).await?,
    };
    let port = listener.local_addr()?.port();
    if let Some(file) = file.filter(|_| last_port != Some(port)) {
        private_file::write(&file, &format!("{port}\n"))
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
    }
    Ok(listener)
}

/// Listens on the port of the last start, or on a free one if that is in use. A warning names the old port: clients
/// with an older kubeconfig would reach another server.
async fn listen_on_last_port(options: ServeOptions, last_port: u16) -> io::Result<TcpListener> {
    match listen(ServeOptions { port: last_port, ..options }).await {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            tracing::warn!("port {last_port} of the last start is in use: earlier kubeconfigs point to another server");
            listen(options).await
        }
        listened => listened,
    }
}

/// Listens on an address and port.
async fn listen(options: ServeOptions) -> io::Result<TcpListener> {
    TcpListener::bind((options.address, options.port)).await.map_err(|error| with_advice(options, &error))
}

/// Reads the port of the last start. An empty file or the number 0 is an error and does not select a free port. The
/// message says how to fix the file.
fn read(file: &Path) -> io::Result<Option<u16>> {
    let Some(text) = private_file::read(file)? else { return Ok(None) };
    let port = text.trim().parse().ok().filter(|port| *port != 0);
    let broken = || {
        let why = format!("{}: {:?} is not a port; remove the file for any free one", file.display(), text.trim());
        io::Error::new(io::ErrorKind::InvalidData, why)
    };
    port.map(Some).ok_or_else(broken)
}

/// Returns the error with advice for the user.
fn with_advice(options: ServeOptions, error: &io::Error) -> io::Error {
    let ServeOptions { address, port } = options;
    let problem = match error.kind() {
        io::ErrorKind::AddrInUse => "in use; stop what uses it, or choose another: 0 is any free port".into(),
        io::ErrorKind::PermissionDenied => "this process may not listen there; choose one above 1023".into(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have the address; choose one that it has".into(),
        _ => error.to_string(),
    };
    io::Error::new(error.kind(), format!("port {port} of {address}: {problem}"))
}
