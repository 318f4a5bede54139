//! A leader that continues after it lost its Lease: the upload runs in a separate task, so it ends neither with the
//! reconcile nor with the leadership, while the next leader uploads as well.

use std::sync::atomic::{AtomicI32, Ordering};

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{External, program},
    site::{A, Site, ask, reached},
};

/// Number of parts of an upload.
const PARTS: usize = 6;
/// Duration of the upload of a part.
const PART: Duration = Duration::from_secs(5);

/// A bucket that accepts uploads from any program.
#[derive(Default)]
struct Bucket {
    /// Number of programs that have connected.
    programs: usize,
    /// The program that uploaded each part, in order.
    parts: Vec<usize>,
    /// The last version whose upload was completed.
    version: i32,
}

/// A program's connection to the bucket.
#[derive(Clone)]
struct Connection {
    bucket: External<Bucket>,
    program: usize,
}

impl Connection {
    fn new(bucket: External<Bucket>) -> Self {
        let program = bucket.with(|bucket| {
            bucket.programs += 1;
            bucket.programs
        });
        Self { bucket, program }
    }

    fn has(&self, version: i32) -> bool {
        self.bucket.with(|bucket| bucket.version >= version)
    }

    async fn upload(&self, version: i32) {
        for _part in 0..PARTS {
            tokio::time::sleep(PART).await;
            self.bucket.with(|bucket| bucket.parts.push(self.program));
        }
        self.bucket.with(|bucket| bucket.version = version);
    }
}

/// Starts uploads without waiting for them.
#[controller(of = Site)]
struct Bug {
    connection: Connection,
    /// The newest version whose upload was started.
    started: AtomicI32,
}

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let version = site.spec.version;
        if self.connection.has(version) {
            cx.patch_status(reached(&site)).await?;
        } else if self.started.swap(version, Ordering::Relaxed) < version {
            let connection = self.connection.clone();
            tokio::spawn(async move { connection.upload(version).await });
        }
        Ok(Action::await_change())
    }
}

/// Uploads within the reconcile, which ends with the leadership.
#[controller(of = Site)]
struct Twin {
    connection: Connection,
}

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let version = site.spec.version;
        if !self.connection.has(version) {
            self.connection.upload(version).await;
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

fn case(app: fn() -> App) -> Scenario {
    let bucket = External::<Bucket>::default();
    Scenario::new(app)
        .objects(A)
        .instances(2)
        // The bucket has no fence, so the twin could upload one more part after a freeze.
        .without_freezes()
        // Only the uploads matter here, so the statuses are not compared.
        .ignoring("/status")
        .step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
        .invariant("no program uploads after another has begun", move |_| bucket.with(|b| in_turn(&b.parts)))
}

fn in_turn(parts: &[usize]) -> Result<(), String> {
    let mut turns = parts.to_vec();
    turns.dedup();
    let again = (1..turns.len()).find(|&turn| turns[..turn].contains(&turns[turn]));
    again.map_or(Ok(()), |turn| Err(format!("program {} continues after others: {parts:?}", turns[turn])))
}

pub(crate) fn bug() -> Scenario {
    case(|| program(|bucket| Bug { connection: Connection::new(bucket), started: AtomicI32::new(0) }))
}

pub(crate) fn twin() -> Scenario {
    case(|| program(|bucket| Twin { connection: Connection::new(bucket) }))
}
