//! Controllers with one real-world bug each, and their corrected twins.

mod after_lease;
mod case;
mod deletion_ignored;
mod done_too_early;
mod edge_triggered;
mod error_as_absence;
mod external_twice;
mod finalizer_kept;
mod generated_name;
mod missed_delete;
mod missing_finalizer;
mod owner_by_name;
mod site;
mod stale_read;
mod status_each_time;
mod swallowed_error;

use case::Case;

/// A bug, and the same controller without it.
struct Planted {
    name: &'static str,
    bug: fn() -> Case,
    twin: fn() -> Case,
    /// Whether the bug shows where nothing fails.
    plain: bool,
}

macro_rules! planted {
    ($($name:ident $plain:ident),* $(,)?) => {
        const PLANTED: &[Planted] = &[$(Planted {
            name: stringify!($name), bug: $name::bug, twin: $name::twin, plain: stringify!($plain).as_bytes()[0] == b'p',
        }),*];
    };
}

planted! {
    after_lease hidden,
    deletion_ignored hidden,
    done_too_early hidden,
    edge_triggered hidden,
    error_as_absence hidden,
    external_twice hidden,
    finalizer_kept hidden,
    generated_name hidden,
    missed_delete hidden,
    missing_finalizer hidden,
    owner_by_name hidden,
    stale_read hidden,
    status_each_time plain,
    swallowed_error hidden,
}

#[tokio::test(start_paused = true)]
async fn bug_is_hidden_while_nothing_fails_and_its_twin_works() {
    let mut wrong = Vec::new();
    for Planted { name, bug, twin, plain } in PLANTED {
        let (seen, works) = (bug().calmly().await, twin().calmly().await);
        if seen.is_err() != *plain {
            wrong.push(format!("{name}: {seen:?}"));
        }
        if works.is_err() {
            wrong.push(format!("twin of {name}: {works:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
