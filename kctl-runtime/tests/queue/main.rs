//! The work queue: one program, because each would compile and link the runtime again.

mod queue_end;
mod queue_keys;
mod queue_model;
mod queue_stats;
mod queue_threads;
mod queue_time;
