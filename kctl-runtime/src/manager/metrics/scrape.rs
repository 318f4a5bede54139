//! Metrics of a running manager's state, read from its [`View`] at each scrape.
//!
//! Sizes and states are not kept up to date between scrapes. A gauge that changes with every key would cost each
//! reconcile, and nothing reads it for 15 or 30 seconds. A scrape takes the same short locks as the loop, one queue or
//! cache at a time.
//!
//! Counters here come from the loop's own counts, so they never fall while the process lives. A cache that closes
//! takes its series along.

use std::{collections::HashSet, fmt, hash::BuildHasher, sync::Arc};

use foldhash::fast::FixedState;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeGaugeValue, NoLabelSet},
    metrics::MetricType,
};

use super::{Labels, queue_labels};
use crate::{
    handler::SpawnedHandler,
    manager::View,
    queue::QueueStats,
    source::{Presence, Source, WatchConfig},
    store::{DELTAS_MAX, TOMBSTONES_MAX},
    watches::{CHANGES_WAITING_MAX, INFORMERS_MAX},
    writer::{EVENTS_MAX, RecorderView},
};

/// Modulus of resourceVersions, because a float holds 15 digits (component-base,
/// `informer_store_resource_version`).
const VERSION_MODULUS: u64 = 1_000_000_000_000_000;

/// Label of priorities beyond those that a queue distinguishes, as in controller-runtime.
const PRIORITIES_BEYOND: &str = "exceeded_cardinality_limit";

pub(crate) struct Scrape(pub(crate) View);

impl fmt::Debug for Scrape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Scrape")
    }
}

/// The name and the help of a metric.
#[derive(Clone, Copy)]
struct Metric {
    name: &'static str,
    help: &'static str,
}

impl Metric {
    const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help }
    }
}

/// Writes a family of gauges.
fn encode_gauges<V: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    metric: Metric,
    samples: impl IntoIterator<Item = (Labels, V)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(metric.name, metric.help, None, MetricType::Gauge)?;
    for (labels, value) in samples {
        metric.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

/// Writes a family of counters; the name of the metric is without `_total`.
fn counts(
    encoder: &mut DescriptorEncoder<'_>,
    metric: Metric,
    samples: impl IntoIterator<Item = (Labels, u64)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(metric.name, metric.help, None, MetricType::Counter)?;
    for (labels, value) in samples {
        metric.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, u64>(&value, None)?;
    }
    Ok(())
}

/// A cache that is open now.
struct OpenCache {
    /// Its labels; no two caches have the same.
    labels: Labels,
    /// The source that fills it.
    source: Arc<Source>,
    /// Number of controllers and watches that share it.
    n_users: usize,
}

/// Reads a number of each cache.
fn samples<V>(caches: &[OpenCache], read: fn(&Source) -> V) -> impl Iterator<Item = (Labels, V)> {
    caches.iter().map(move |cache| (cache.labels.clone(), read(&cache.source)))
}

/// Writes the size and the age of the contents of each cache.
fn contents(encoder: &mut DescriptorEncoder<'_>, caches: &[OpenCache]) -> fmt::Result {
    encode_gauges(
        encoder,
        Metric::new("kctl_cache_objects", "Objects in a cache"),
        samples(caches, |source| source.store().len()),
    )?;
    encode_gauges(
        encoder,
        Metric::new("kctl_cache_bytes", "Bytes of the JSON of the objects in a cache, after compression"),
        samples(caches, |source| source.store().n_bytes()),
    )?;
    encode_gauges(
        encoder,
        Metric::new("kctl_cache_lag_seconds", "Seconds that the next change has waited to enter a cache"),
        samples(caches, |source| source.store().lag().as_secs_f64()),
    )?;
    encode_gauges(
        encoder,
        Metric::new("kctl_cache_synced", "1 if the first list of a cache is complete"),
        samples(caches, |source| u64::from(source.store().is_synced())),
    )
}

/// Writes the failures of each source, and how far it is.
fn sources(encoder: &mut DescriptorEncoder<'_>, caches: &[OpenCache]) -> fmt::Result {
    encode_gauges(
        encoder,
        Metric::new("kctl_source_failing", "1 if the list or the watch of a kind fails now"),
        samples(caches, |source| u64::from(source.health().failure.is_some())),
    )?;
    counts(
        encoder,
        Metric::new(
            "kctl_source_undecodable",
            "Received states of objects that could not be decoded; each list counts its states again",
        ),
        samples(caches, |source| source.health().undecodable),
    )?;
    encode_gauges(
        encoder,
        Metric::new("kctl_source_unreadable_objects", "Objects that can't be decoded now, each with a Warning event"),
        samples(caches, Source::num_unreadable),
    )?;
    encode_gauges(
        encoder,
        Metric::new("informer_queued_items", "Number of items that wait to be taken into the cache"),
        samples(caches, |source| source.store().backlog()),
    )?;
    let help = "Time taken to process events after popping from the queue";
    let mut seconds =
        encoder.encode_descriptor("informer_processing_latency_seconds", help, None, MetricType::Histogram)?;
    for cache in caches {
        cache.source.store().processing().encode(seconds.encode_family(&cache.labels)?)?;
    }
    encode_gauges(
        encoder,
        Metric::new(
            "informer_store_resource_version",
            "The 15 least significant digits of the cache's resource version",
        ),
        samples(caches, |source| source.store().revision() % VERSION_MODULUS),
    )
}

/// Returns the ready keys of a queue by priority, with their labels.
///
/// Priority 0 is always among them, so that a graph of an empty queue shows 0 and not a gap. The exception is a queue
/// whose keys of priority 0 may be among those that are summed up as [`PRIORITIES_BEYOND`].
fn depths(name: &str, stats: &QueueStats) -> Vec<(Labels, usize)> {
    let sample = |priority: String, depth: usize| {
        let mut labels = queue_labels(name);
        labels.push(("priority", priority));
        (labels, depth)
    };
    let has_usual = stats.depth_by_priority.iter().any(|(priority, _)| *priority == 0);
    let usual = (stats.depth_beyond == 0 && !has_usual).then(|| sample("0".into(), 0));
    let by_priority = stats.depth_by_priority.iter().map(|(priority, depth)| sample(priority.to_string(), *depth));
    let beyond = (stats.depth_beyond > 0).then(|| sample(PRIORITIES_BEYOND.into(), stats.depth_beyond));
    usual.into_iter().chain(by_priority).chain(beyond).collect()
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        self.controllers(&mut encoder)?;
        self.queues(&mut encoder)?;
        self.caches(&mut encoder)?;
        self.handlers(&mut encoder)?;
        self.bounds(&mut encoder)?;
        self.shards(&mut encoder)?;
        self.ring(&mut encoder)?;
        self.election(&mut encoder)?;
        let build = Metric::new("kctl_build_info", "The version of kctl; always 1");
        encode_gauges(&mut encoder, build, [(vec![("version", env!("CARGO_PKG_VERSION").into())], 1_u64)])
    }
}

impl Scrape {
    /// Writes the workers and the failing keys of each controller.
    fn controllers(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let labels = |name: &str| vec![("controller", name.to_owned())];
        let all = self.0.controllers();
        encode_gauges(
            encoder,
            Metric::new("controller_runtime_active_workers", "Number of currently used workers per controller"),
            all.iter().map(|(spec, queue)| (labels(&spec.name), queue.processing())),
        )?;
        encode_gauges(
            encoder,
            Metric::new(
                "controller_runtime_max_concurrent_reconciles",
                "Maximum number of concurrent reconciles per controller",
            ),
            all.iter().map(|(spec, _)| (labels(&spec.name), spec.concurrency)),
        )?;
        encode_gauges(
            encoder,
            Metric::new("kctl_failing_keys", "Keys that fail or were given up, per controller"),
            all.iter().map(|(spec, queue)| (labels(&spec.name), queue.n_failing())),
        )
    }

    /// Writes the numbers of each queue.
    fn queues(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let stats: Vec<(&str, QueueStats)> =
            self.0.controllers().iter().map(|(spec, queue)| (spec.name.as_str(), queue.stats())).collect();
        let depths = stats.iter().flat_map(|(name, stats)| depths(name, stats));
        encode_gauges(encoder, Metric::new("workqueue_depth", "Current depth of the work queue by priority"), depths)?;
        let gauge =
            |read: fn(&QueueStats) -> f64| stats.iter().map(move |(name, stats)| (queue_labels(name), read(stats)));
        let count =
            |read: fn(&QueueStats) -> u64| stats.iter().map(move |(name, stats)| (queue_labels(name), read(stats)));
        counts(
            encoder,
            Metric::new("workqueue_adds", "Total number of adds handled by the work queue"),
            count(|stats| stats.adds),
        )?;
        counts(
            encoder,
            Metric::new("workqueue_retries", "Total number of retries handled by the work queue"),
            count(|stats| stats.retries),
        )?;
        encode_gauges(
            encoder,
            Metric::new(
                "workqueue_unfinished_work_seconds",
                "Seconds of work that is in progress and was not yet observed",
            ),
            gauge(|stats| stats.unfinished_work.as_secs_f64()),
        )?;
        encode_gauges(
            encoder,
            Metric::new(
                "workqueue_longest_running_processor_seconds",
                "Seconds that the longest running reconcile has been running",
            ),
            gauge(|stats| stats.longest_running.as_secs_f64()),
        )?;
        encode_gauges(
            encoder,
            Metric::new("kctl_workqueue_oldest_waiting_seconds", "Seconds that the oldest ready key has been waiting"),
            gauge(|stats| stats.oldest_waiting.as_secs_f64()),
        )?;
        encode_gauges(
            encoder,
            Metric::new("kctl_workqueue_delayed", "Keys with a delay"),
            stats.iter().map(|(name, stats)| (queue_labels(name), stats.delayed)),
        )
    }

    /// Writes the contents of each open cache, and the health of its source.
    fn caches(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let caches = self.label_caches();
        let users = caches.iter().map(|cache| (cache.labels.clone(), cache.n_users));
        encode_gauges(encoder, Metric::new("kctl_cache_users", "Controllers and watches that share a cache"), users)?;
        contents(encoder, &caches)?;
        sources(encoder, &caches)
    }

    /// Writes how far each handler with user code is behind its cache.
    fn handlers(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let labels = |spawned: &SpawnedHandler| {
            vec![("controller", spawned.controller().to_owned()), ("relation", spawned.relation().to_owned())]
        };
        let spawned_handlers = self.0.spawned_handlers();
        encode_gauges(
            encoder,
            Metric::new(
                "kctl_handler_lag_seconds",
                "Seconds that the next change has waited for `map` and `when` of a relation",
            ),
            spawned_handlers.iter().map(|spawned| (labels(spawned), spawned.lag().as_secs_f64())),
        )?;
        encode_gauges(
            encoder,
            Metric::new("kctl_handler_waiting", "Changes that wait for `map` and `when` of a relation"),
            spawned_handlers.iter().map(|spawned| (labels(spawned), spawned.waiting())),
        )
    }

    /// Returns all caches with their labels and number of users.
    ///
    /// A cache that was opened at run time and has the same labels as a controller's is marked `;watched`. Further ones are
    /// numbered, because Prometheus rejects a scrape with two series of the same labels.
    fn label_caches(&self) -> Vec<OpenCache> {
        let (mut caches, mut taken): (Vec<OpenCache>, HashSet<Labels>) = (Vec::new(), HashSet::new());
        // Caches of controllers come first, and get the plain labels.
        for (source, n_users) in self.0.informers().open() {
            let labels = distinct(kind(source.config()), |labels| taken.contains(labels));
            taken.insert(labels.clone());
            caches.push(OpenCache { labels, source, n_users });
        }
        caches
    }

    /// Writes each bound of the loop and how much of it is used. If there are several buffers of one kind, the fullest
    /// one is used.
    fn bounds(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let informers = self.0.informers().open();
        let fullest = |read: fn(&Source) -> usize| informers.iter().map(|(source, _)| read(source)).max().unwrap_or(0);
        let events = self.0.recorders().iter().map(RecorderView::waiting).max().unwrap_or(0);
        let handlers = self.0.spawned_handlers().iter().map(|spawned| spawned.waiting()).max().unwrap_or(0);
        let mut bounds = vec![
            ("store_deltas", fullest(|source| source.store().backlog()), DELTAS_MAX),
            ("store_tombstones", fullest(|source| source.store().tombstones()), TOMBSTONES_MAX),
            ("events", events, EVENTS_MAX),
            ("watch_changes", self.0.informers().backlog_max().min(CHANGES_WAITING_MAX), CHANGES_WAITING_MAX),
            ("handler_changes", handlers.min(CHANGES_WAITING_MAX), CHANGES_WAITING_MAX),
            ("informers", informers.len(), INFORMERS_MAX),
        ];
        bounds.extend(self.0.bounds().iter().map(|bound| (bound.name, (bound.used)(), bound.limit)));
        let labels = |bound: &str| vec![("bound", bound.to_owned())];
        encode_gauges(
            encoder,
            Metric::new("kctl_bound_used", "Usage of a bound of the control loop"),
            bounds.iter().map(|(name, used, _)| (labels(name), *used)),
        )?;
        encode_gauges(
            encoder,
            Metric::new("kctl_bound_limit", "A bound of the control loop"),
            bounds.iter().map(|(name, _, limit)| (labels(name), *limit)),
        )?;
        let dropped = self.0.recorders().iter().map(RecorderView::n_dropped).sum::<u64>();
        counts(
            encoder,
            Metric::new("kctl_events_dropped", "Events that were dropped because too many waited"),
            [(vec![], dropped)],
        )
    }

    /// Writes the slots of a sharded program. The sum of the owned ones over all replicas is the number of slots.
    fn shards(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(shards) = self.0.shards() else { return Ok(()) };
        let n_owned = u32::try_from(shards.n_owned()).unwrap_or(u32::MAX);
        encode_gauges(
            encoder,
            Metric::new("kctl_slots", "Number of slots of the program"),
            [(vec![], shards.config().slots().count())],
        )?;
        encode_gauges(
            encoder,
            Metric::new("kctl_slots_owned", "Number of slots that this replica owns"),
            [(vec![], n_owned)],
        )?;
        let help = "Number of times that this replica became the owner of a slot";
        counts(encoder, Metric::new("kctl_slots_gained", help), [(vec![], shards.n_gained())])?;
        // The readiness check has the same condition: replicas with other settings hold the common Lease.
        let is_rejected = shards.disagreement().is_some();
        let help = "1 while this replica does not work because others run with other settings or with leader election";
        encode_gauges(encoder, Metric::new("kctl_slots_rejected", help), [(vec![], u32::from(is_rejected))])
    }

    /// Writes the hand-overs of a shard of a controller ring. Each shard counts the objects that it gave back.
    fn ring(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(ring) = self.0.controller_ring() else { return Ok(()) };
        let help = "Number of objects that this shard handed over because the sharder asked for them";
        counts(encoder, Metric::new("kctl_ring_handed_over", help), [(vec![], ring.n_handed_over())])
    }

    /// Writes the election, if there is one. A standby reports 0, so that a sum over replicas is the number of leaders.
    fn election(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        // A sharded program has no leader: all its replicas work.
        let Some(leadership) = self.0.leadership().filter(|_| self.0.shards().is_none()) else { return Ok(()) };
        let labels = || vec![("name", leadership.config().name.clone())];
        let help = "1 if this process is the leader, 0 if it is a candidate";
        encode_gauges(
            encoder,
            Metric::new("leader_election_master_status", help),
            [(labels(), u32::from(leadership.is_leading()))],
        )?;
        let help = "Renewals of a leader that had to read the lease before";
        counts(encoder, Metric::new("leader_election_slowpath", help), [(labels(), leadership.slow_renewals())])
    }
}

/// Longest label value, in bytes. Stores of metrics reject long ones (Mimir beyond 2,048), and each series
/// repeats them.
const LABEL_LEN_MAX: usize = 160;

/// Cuts a long label value and appends a hash of the whole, so that two values never become one.
fn shorten(mut text: String) -> String {
    if text.len() > LABEL_LEN_MAX {
        let end = format!("…({:016x})", FixedState::default().hash_one(&text));
        let most = LABEL_LEN_MAX - end.len();
        let at = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(at);
        text.push_str(&end);
    }
    text
}

/// Marks the name in the labels of a cache until no other cache has these labels.
fn distinct(mut labels: Labels, is_taken: impl Fn(&Labels) -> bool) -> Labels {
    let name = labels[0].1.clone();
    let mut n = 1;
    while is_taken(&labels) {
        labels[0].1 = if n == 1 { format!("{name};watched") } else { format!("{name};watched-{n}") };
        n += 1;
    }
    labels
}

/// Returns the labels of an informer as in component-base. `name` distinguishes caches of one kind.
fn kind(config: &WatchConfig) -> Labels {
    let presence = if config.presence == Presence::Optional { "optional" } else { "" };
    let parts = [
        ("cluster=", config.cluster.clone()),
        ("namespaces=", config.namespaces.join(",")),
        ("labels=", config.labels.clone()),
        ("fields=", config.fields.clone()),
        ("presence=", presence.to_owned()),
    ];
    let parts = parts.iter().filter(|(_, value)| !value.is_empty());
    let name = parts.map(|(part, value)| format!("{part}{value}")).collect::<Vec<_>>().join(";");
    vec![
        ("name", shorten(name)),
        ("group", config.kind.group.clone()),
        ("version", config.kind.version.clone()),
        ("resource", config.kind.plural.clone()),
    ]
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn caches_of_one_kind_have_distinct_labels() {
        let pods = WatchConfig::of::<Pod>;
        let mut all: Vec<Labels> = Vec::new();
        for config in
            [pods(), pods(), pods(), pods().optional(), pods().optional(), pods().labels("tier=web").optional()]
        {
            let labels = distinct(kind(&config), |labels| all.contains(labels));
            all.push(labels);
        }
        let names: Vec<&str> = all.iter().map(|labels| labels[0].1.as_str()).collect();
        let optional = ["presence=optional", "presence=optional;watched", "labels=tier=web;presence=optional"];
        assert_eq!(names[..3], ["", ";watched", ";watched-2"]);
        assert_eq!(names[3..], optional);
    }

    #[test]
    fn long_labels_are_cut_and_remain_distinct() {
        let text = |n: usize| "a".repeat(n);
        assert_eq!(shorten(text(LABEL_LEN_MAX)), text(LABEL_LEN_MAX));
        let (one, other) = (shorten(text(LABEL_LEN_MAX + 1)), shorten(text(5_000)));
        assert!(one.len() == LABEL_LEN_MAX && other.len() == LABEL_LEN_MAX, "{one} {other}");
        assert!(one != other && one[..100] == other[..100], "{one} {other}");
        assert!(shorten("ü".repeat(5_000)).len() <= LABEL_LEN_MAX);
        assert_eq!(shorten(text(5_000)), other, "the same in each process");
    }
}
