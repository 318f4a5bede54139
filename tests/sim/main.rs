//! The examples under the simulator.

mod examples;
