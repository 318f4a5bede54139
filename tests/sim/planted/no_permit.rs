//! A write permit that always grants: the program writes until it notices that it has lost its Lease, and a write in
//! flight then arrives under the next leader. The controller itself is correct; no API lets users bypass the permit.

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
    case().without_fencing()
}

pub(crate) fn twin() -> Scenario {
    case()
}
