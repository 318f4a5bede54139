//! The options of the debug page, and its listener.

use std::net::SocketAddr;

use kctl_runtime::{
    manager::{
        Manager,
        serve::{bind, check_address},
    },
    reconcile::{Error, Result},
};
use tokio::net::TcpListener;

/// The address of the debug page, and its allowed hosts.
#[derive(clap::Args, Default)]
pub(super) struct DebugOptions {
    /// Serve `/debug/` on this address: a page about controllers, queues, caches and recent reconciles; 0 turns it off
    /// [default: 0, and a free port of 127.0.0.1 in `dev`]
    #[arg(long, value_name = "ADDRESS", help_heading = "Page for people", verbatim_doc_comment)]
    debug_bind_address: Option<String>,
    /// Allow browsers to request the page by this host name or address; required if the address is not loopback; can be repeated.
    /// The page has no password and shows object names and errors
    #[arg(long, value_name = "HOST", help_heading = "Page for people")]
    debug_allow_host: Vec<String>,
}

/// The listener of the page, and the hosts that it answers to.
pub(super) struct DebugPage {
    listener: Option<TcpListener>,
    hosts: Vec<String>,
}

impl DebugOptions {
    /// Finds mistakes before anything listens. Host names are resolved later.
    pub(super) fn check(&self) -> Result<()> {
        let address = self.debug_bind_address.as_deref().unwrap_or_default();
        check_address("--debug-bind-address", address)?;
        let is_for_all =
            address.starts_with(':') || address.parse().is_ok_and(|address: SocketAddr| !address.ip().is_loopback());
        if is_for_all { self.check_exposure(address) } else { Ok(()) }
    }

    /// Returns an error if other machines could read the page and no host is allowed: the page has
    /// no password.
    fn check_exposure(&self, address: &str) -> Result<()> {
        if !self.debug_allow_host.is_empty() {
            return Ok(());
        }
        Err(Error::from(format!(
            "--debug-bind-address={address}: other machines could read the page; write for example \
             127.0.0.1:8082 (`kubectl port-forward` reaches it), or name the host that browsers use with \
             --debug-allow-host"
        )))
    }

    /// Listens on the address of the option, or on `usual` without one.
    pub(super) async fn listen(&self, usual: &str) -> Result<DebugPage> {
        let address = self.debug_bind_address.as_deref().unwrap_or(usual);
        let listener = bind("--debug-bind-address", address).await?;
        let local =
            listener.as_ref().is_none_or(|listener| listener.local_addr().is_ok_and(|at| at.ip().is_loopback()));
        if !local {
            self.check_exposure(address)?;
        }
        Ok(DebugPage { listener, hosts: self.debug_allow_host.clone() })
    }
}

impl DebugPage {
    /// Adds the page to a manager, and prints its URL.
    pub(super) fn serve(self, app: &str, manager: Manager) -> Manager {
        let Some(listener) = self.listener else { return manager };
        if let Ok(address) = listener.local_addr() {
            print_or_log!("{app}: debug page at http://{address}/debug/");
        }
        manager.serve_debug(listener, self.hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn page_leaves_loopback_only_for_a_named_host() {
        let cases = [
            (None, vec![], Ok(false)),
            (Some("0"), vec![], Ok(false)),
            (Some("127.0.0.1:0"), vec![], Ok(true)),
            (Some("localhost:0"), vec![], Ok(true)),
            (Some(":0"), vec![], Err("other machines could read")),
            (Some("0.0.0.0:0"), vec![], Err("--debug-allow-host")),
            (Some("0.0.0.0:0"), vec!["debug.example".to_owned()], Ok(true)),
            (Some("nowhere"), vec![], Err("--debug-bind-address=nowhere")),
        ];
        for (address, hosts, expected) in cases {
            let options = DebugOptions { debug_bind_address: address.map(Into::into), debug_allow_host: hosts.clone() };
            match (options.listen("0").await, expected) {
                (Ok(page), Ok(listens)) => assert_eq!(page.listener.is_some(), listens, "{address:?} {hosts:?}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (page, expected) => panic!("{address:?} {hosts:?}: {:?}, not {expected:?}", page.is_ok()),
            }
        }
    }
}
