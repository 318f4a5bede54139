//! An external call that is not idempotent: each call sends an invoice, whose number is recorded afterwards.

use std::collections::BTreeMap;

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{External, program, rule},
    site::{A_AND_B, Site, ask, reached_with},
};

/// Invoices that were sent: number → purpose.
type Invoices = External<BTreeMap<usize, String>>;

/// Sends an invoice, and returns its number.
fn send(invoices: &Invoices, what_for: &str) -> String {
    invoices.with(|sent| {
        let number = sent.len() + 1;
        sent.insert(number, what_for.into());
        number.to_string()
    })
}

/// Sends an invoice with an idempotency key: a second call with the same key sends nothing.
fn send_once(invoices: &Invoices, key: &str) -> String {
    let known = invoices.with(|sent| sent.iter().find(|(_, what_for)| *what_for == key).map(|(number, _)| *number));
    known.map_or_else(|| send(invoices, key), |number| number.to_string())
}

/// Sends an invoice if the status has none.
#[controller(of = Site)]
struct Bug {
    invoices: Invoices,
}

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let number = match site.made() {
            Some(number) => number,
            None => send(&self.invoices, &site.uid().unwrap_or_default()),
        };
        cx.patch_status(reached_with(&site, number)).await?;
        Ok(Action::await_change())
    }
}

/// Uses the UID of the site as idempotency key.
#[controller(of = Site)]
struct Twin {
    invoices: Invoices,
}

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let number = send_once(&self.invoices, &site.uid().unwrap_or_default());
        cx.patch_status(reached_with(&site, number)).await?;
        Ok(Action::await_change())
    }
}

fn case(app: fn() -> App) -> Scenario {
    let invoices = Invoices::default();
    Scenario::new(app)
        .objects(A_AND_B)
        .step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
        .invariant("one invoice for each site", rule(move |_state| invoices.with(|sent| once(sent))))
}

fn once(sent: &BTreeMap<usize, String>) -> Result<(), String> {
    for what_for in sent.values() {
        let n = sent.values().filter(|other| *other == what_for).count();
        if n > 1 {
            return Err(format!("{n} invoices for {what_for}"));
        }
    }
    Ok(())
}

pub(crate) fn bug() -> Scenario {
    case(|| program(|invoices| Bug { invoices }))
}

pub(crate) fn twin() -> Scenario {
    case(|| program(|invoices| Twin { invoices }))
}
