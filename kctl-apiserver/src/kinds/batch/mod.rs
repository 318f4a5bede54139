//! Kinds of `batch`.
//!
//! The validation of a Job is shared with the Job template of a `CronJob`.

pub(crate) mod cron_job;
pub(crate) mod job;
