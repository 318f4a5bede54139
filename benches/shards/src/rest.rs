//! Measures the cost at rest of idle replicas: requests for Leases, and CPU of the API server and of the replicas.
//!
//! A kube-apiserver with etcd uses CPU without any client. So the same server is measured with the replicas, and again
//! after they have stopped. The difference is the cost of the replicas.

use std::time::Duration;

use tokio::time::sleep;

use crate::{
    Failure,
    journal::{between, now},
    stage::Stage,
};

/// Wait after the replicas have ended. The server closes their watches in this time.
const STOP_DELAY: Duration = Duration::from_secs(5);

/// The cost of idle replicas.
pub(crate) struct Rest {
    /// Number of replicas.
    n: usize,
    /// The server with the replicas.
    with: Usage,
    /// The server without replicas.
    without: Usage,
    /// Expected Lease updates per second, if each holder renews once per retry period.
    expected: f64,
}

/// Requests and CPU per second.
struct Usage {
    /// Lease requests per second, by verb.
    leases: Vec<(String, f64)>,
    /// CPU seconds per second of each process of the server, by its name.
    server: Vec<(&'static str, f64)>,
    /// CPU seconds per second of all replicas together.
    replicas: f64,
}

impl Rest {
    /// Measures the running replicas for some time once their slots have settled, then stops them and measures the
    /// server alone for as long.
    ///
    /// # Errors
    /// The slots don't settle, a process has ended by itself, or the server doesn't answer.
    pub(crate) async fn measure(stage: &mut Stage, time: Duration, expected: f64) -> Result<Self, Failure> {
        stage.wait_for_shares().await?;
        let n = stage.replicas.len();
        let with = Usage::during(stage, time).await?;
        stage.stop_all().await?;
        sleep(STOP_DELAY).await;
        let without = Usage::during(stage, time).await?;
        Ok(Self { n, with, without, expected })
    }

    /// Returns the lines of a table. Only the updates of Leases have an expected rate.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Self { n, with, without, expected } = self;
        let mut lines = vec![
            format!("| at rest | no replica | {n} replicas | difference | expected |"),
            "|---|---|---|---|---|".to_owned(),
        ];
        // The server is measured alone last, and its counts never disappear. So no verb is missing there.
        for (verb, alone) in &without.leases {
            let rate = value(&with.leases, verb);
            if rate > 0.0 || *alone > 0.0 {
                let expected = if verb == "PUT" { format!("{expected:.1}") } else { String::new() };
                let added = rate - alone;
                lines.push(format!("| Leases: {verb} per second | {alone:.2} | {rate:.2} | {added:.2} | {expected} |"));
            }
        }
        for (process, alone) in &without.server {
            let [alone, used] = [*alone, value(&with.server, process)].map(|cpu| cpu * 100.0);
            let added = used - alone;
            lines.push(format!("| CPU of {process}, % of a core | {alone:.2} | {used:.2} | {added:.2} | |"));
        }
        let replicas = with.replicas * 100.0;
        lines.push(format!("| CPU of the replicas together, % of a core | | {replicas:.2} | | |"));
        lines
    }
}

impl Usage {
    /// Measures for some time.
    async fn during(stage: &Stage, time: Duration) -> Result<Self, Failure> {
        let leases = stage.server.requests("leases").await?;
        let (server, replicas, begun) = (stage.server.cpu()?, stage.cpu()?, now());
        sleep(time).await;
        // The CPU is read first, because the server counts its requests with CPU.
        let (server_after, replicas_after) = (stage.server.cpu()?, stage.cpu()?);
        let seconds = between(begun, now()).as_secs_f64();
        let leases_after = stage.server.requests("leases").await?;
        Ok(Self {
            leases: rates(&leases, leases_after, seconds),
            server: rates(&server, server_after, seconds),
            replicas: (replicas_after - replicas) / seconds,
        })
    }
}

/// Returns by how much each counter grew per second.
fn rates<N: PartialEq>(before: &[(N, f64)], after: Vec<(N, f64)>, seconds: f64) -> Vec<(N, f64)> {
    let rates = after.into_iter().map(|(name, count)| {
        let rate = (count - value(before, &name)) / seconds;
        (name, rate)
    });
    rates.collect()
}

/// Returns the value of a counter, zero if it does not exist.
fn value<N: PartialEq>(counters: &[(N, f64)], name: &N) -> f64 {
    counters.iter().find(|(known, _)| known == name).map_or(0.0, |(_, count)| *count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(verb: &str, count: f64) -> (String, f64) {
        (verb.to_owned(), count)
    }

    #[test]
    fn table_shows_what_replicas_add_to_the_server() {
        let with = Usage { leases: vec![count("PUT", 10.5)], server: vec![("etcd", 0.03)], replicas: 0.0075 };
        let leases = vec![count("PUT", 0.5), count("GET", 0.0)];
        let without = Usage { leases, server: vec![("etcd", 0.01)], replicas: 0.0 };
        let lines = Rest { n: 3, with, without, expected: 10.0 }.lines();
        assert_eq!(
            lines[2..],
            [
                "| Leases: PUT per second | 0.50 | 10.50 | 10.00 | 10.0 |",
                "| CPU of etcd, % of a core | 1.00 | 3.00 | 2.00 | |",
                "| CPU of the replicas together, % of a core | | 0.75 | | |",
            ]
        );
    }

    #[test]
    fn counter_that_is_new_counts_from_zero() {
        let after = vec![count("PUT", 30.0), count("GET", 4.0)];
        assert_eq!(rates(&[count("PUT", 10.0)], after, 2.0), [count("PUT", 10.0), count("GET", 2.0)]);
    }
}
