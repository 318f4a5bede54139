//! Webhooks that are served: their configuration, their readiness, and their end.

use super::*;

#[cfg(feature = "dev")]
mod drain;
#[cfg(feature = "karmada")]
mod interpreters;
#[cfg(feature = "dev")]
mod readiness;

#[cfg(feature = "karmada")]
pub(super) use interpreters::app;
