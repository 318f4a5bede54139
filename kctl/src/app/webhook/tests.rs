//! Tests of served webhooks: their configuration, readiness and shutdown.

use super::*;

#[cfg(feature = "dev")]
mod drain;
#[cfg(feature = "karmada")]
mod interpreters;
#[cfg(feature = "dev")]
mod readiness;

#[cfg(feature = "karmada")]
pub(super) use interpreters::app;
