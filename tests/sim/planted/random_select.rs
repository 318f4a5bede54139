//! A random branch: `tokio::select!` polls its branches in a random order, so each run creates the parts in another order.

use futures::future::BoxFuture;
use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::simple,
    site::{A, Site, reached, secret},
};

/// Number of parts that each branch yields.
const N_PARTS: u32 = 12;

/// Creates the parts of a site in this order.
#[controller(of = Site, owns = Secret(create))]
struct Branches {
    order: fn() -> BoxFuture<'static, Vec<u32>>,
}

impl Reconcile for Branches {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let there: Vec<_> = cx.owned::<Secret>().iter().map(|secret| secret.name_any()).collect();
        for name in (self.order)().await.into_iter().map(|part| format!("part-{part}")) {
            if !there.contains(&name) {
                cx.owned::<Secret>().create(secret(&name, "1")).or_get().await?;
            }
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Takes whichever branch is polled first.
async fn random_order() -> Vec<u32> {
    let (mut left, mut right, mut order) = (0..N_PARTS, N_PARTS..2 * N_PARTS, Vec::new());
    loop {
        tokio::select! {
            Some(part) = async { left.next() } => order.push(part),
            Some(part) = async { right.next() } => order.push(part),
            else => return order,
        }
    }
}

/// Takes the first branch as long as it yields parts.
async fn fixed_order() -> Vec<u32> {
    let (mut left, mut right, mut order) = (0..N_PARTS, N_PARTS..2 * N_PARTS, Vec::new());
    loop {
        tokio::select! {
            biased;
            Some(part) = async { left.next() } => order.push(part),
            Some(part) = async { right.next() } => order.push(part),
            else => return order,
        }
    }
}

pub(crate) fn bug() -> Scenario {
    Scenario::new(|| simple(|| Branches { order: || Box::pin(random_order()) })).objects(A)
}

pub(crate) fn twin() -> Scenario {
    Scenario::new(|| simple(|| Branches { order: || Box::pin(fixed_order()) })).objects(A)
}
