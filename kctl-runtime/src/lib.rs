//! The control loop: from the API server's lists and watches to the user's reconcile function and back, one module a stage.
//!
//! ```text
//! source → store → handler → queue → worker → reconcile → effect → API server
//! ```
//!
//! Every stage is a public API that can be used alone; `kctl` puts them together from the declaration of a controller.

pub mod connection;
mod echo;
pub mod effect;
pub mod handler;
pub mod key;
pub mod manager;
pub mod manifest;
mod marks;
pub mod object;
pub mod queue;
pub mod reconcile;
pub mod source;
pub mod spec;
pub mod store;
pub mod trace;
mod trim;
mod turns;
pub mod watches;
pub mod worker;

pub mod __private;
