//! The invariants of the control loop, as far as they show from outside, on the embedded API server under paused time.
