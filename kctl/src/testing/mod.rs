//! Runs an app on an API server of its own, for tests.

mod emitted;
mod refusal;
mod role;
mod trial;

use std::time::Duration;

use kctl_runtime::reconcile::Result;
use kube::Client;

pub use emitted::check_grants;
#[doc(hidden)]
pub use emitted::{Emitted, Granted, Probe, Refused};
pub(crate) use refusal::Refusals;
pub use role::{check_role, check_role_on_cluster};
pub use trial::Trial;

use crate::{App, app::World};

/// An app that runs on an embedded API server. Under `#[tokio::test(start_paused = true)]` no time passes.
pub struct TestServer(World);

impl TestServer {
    /// Starts the server, installs the definitions of the app's kinds and runs its controllers.
    ///
    /// # Errors
    /// When a controller cannot be made or a definition is refused.
    pub async fn start(app: App) -> Result<Self> {
        Ok(Self(World::start(&app).await?))
    }

    /// A client of the server.
    pub fn client(&self) -> Client {
        self.0.client.clone()
    }

    /// A client of another cluster (`App::cluster`).
    pub fn cluster(&self, name: &str) -> Option<Client> {
        self.0.others.iter().find(|other| other.name == name).map(|other| other.client.clone())
    }

    /// The API server itself: what was requested, what is stored.
    pub fn server(&self) -> &kctl_apiserver::ApiServer {
        &self.0.server
    }

    /// Returns once nothing is left to do.
    ///
    /// # Errors
    /// When something is left after a minute: it names what fails.
    pub async fn idle(&self) -> Result<()> {
        self.0.idle(Duration::from_secs(60)).await
    }
}
