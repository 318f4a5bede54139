//! The source of times that a kubelet or a controller writes into objects.

use k8s_openapi::jiff::Timestamp;
use kctl_apimachinery::time;
use kctl_apiserver::ApiServer;

/// The clock of the machine or of an embedded API server.
#[derive(Clone)]
pub(crate) enum Clock {
    /// The clock of the machine, for servers of other processes.
    Machine,
    /// The clock of an embedded server, which may be simulated.
    Server(ApiServer),
}

impl Clock {
    /// Returns the present time.
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Self::Machine => Timestamp::now(),
            Self::Server(server) => server.now(),
        }
    }

    /// Returns the present time in whole seconds, as `metav1.Time` has it.
    pub(crate) fn seconds(&self) -> String {
        time::seconds(self.now())
    }
}
