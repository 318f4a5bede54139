//! A program whose write permit grants always: it writes until it notices that it has lost its lease, and a write that is on its
//! way then arrives under the next leader. Its controller is as it should be; nothing that users can write goes past the permit.

use kctl::{prelude::*, testing::Scenario};

use crate::site::{A, ask, sites};

fn case() -> Scenario {
    Scenario::new(|| App::new("planted").controller::<sites>())
        .objects(A)
        .instances(3)
        .step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
        .step("ask for version 3", |client| async move { ask(&client, "a", 3).await })
}

pub(crate) fn bug() -> Scenario {
    case().unfenced()
}

pub(crate) fn twin() -> Scenario {
    case()
}
