//! The settings on which all replicas of a sharded program have to agree. Their name is the holder of the Lease `NAME`.

use std::{collections::BTreeSet, fmt, time::Duration};

use kctl_apimachinery::validation::is_dns1123_label;

use crate::{
    manager::lease::{LEASE_DURATION, is_shard_settings},
    shard::{SLOTS_MAX, ShardBy, Slots, hash_string},
};

/// Longest list of namespaces in a name, in bytes. A longer one is replaced by its length and a hash, because the holder
/// of a Lease has at most 253 characters.
const SCOPE_LEN_MAX: usize = 160;

/// The settings of a sharded program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShardSettings {
    pub(super) slots: Slots,
    /// The version of the division of keys, which another version of kctl may have changed.
    pub(super) division: u32,
    /// A replica counts a renewal by another replica for its own Lease duration, so they have to agree.
    pub(super) lease_duration: Duration,
    /// The watched namespaces, separated by commas; empty for all. See [`scope_of`].
    pub(super) scope: String,
}

/// Returns namespaces as a part of the name of the settings: `blog,shop`, or `90:0123456789abcdef` if that is too long.
pub(super) fn scope_of(namespaces: &BTreeSet<String>) -> String {
    let names = namespaces.iter().map(String::as_str).collect::<Vec<_>>().join(",");
    if names.len() <= SCOPE_LEN_MAX {
        return names;
    }
    format!("{}:{:016x}", namespaces.len(), hash_string(&names))
}

/// The name contains the number and kind of slots, and what differs from the defaults. [`ShardSettings::parse`] reads it.
impl fmt::Display for ShardSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shards-{}-by-{}", self.slots.count(), self.slots.shard_by())?;
        if self.division > 1 {
            write!(f, "-v{}", self.division)?;
        }
        if self.lease_duration != LEASE_DURATION {
            write!(f, "-for-{}s", self.lease_duration.as_secs())?;
        }
        if !self.scope.is_empty() {
            write!(f, "-in-{}", self.scope)?;
        }
        Ok(())
    }
}

impl ShardSettings {
    /// Returns the settings with this name; `None` if it is not such a name.
    ///
    /// No earlier part of a name contains `-in-`, so namespaces such as `built-in-tools` are read as they are.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (name, scope) = match name.split_once("-in-") {
            Some((name, scope)) => (name, Some(scope).filter(|scope| is_scope(scope))?),
            None => (name, ""),
        };
        let (n, rest) = name.strip_prefix("shards-")?.split_once("-by-")?;
        let n = n.parse::<u32>().ok().filter(|number| (1..=SLOTS_MAX).contains(number) && number.to_string() == n)?;
        let (by, rest) = ShardBy::ALL.into_iter().find_map(|by| Some((by, rest.strip_prefix(&by.to_string())?)))?;
        let mut parts = rest.split('-');
        if !parts.next()?.is_empty() {
            return None;
        }
        let (mut division, mut lease_duration) = (1, LEASE_DURATION);
        while let Some(part) = parts.next() {
            match part.strip_prefix('v') {
                Some(version) => division = version.parse().ok()?,
                None if part == "for" => {
                    lease_duration = Duration::from_secs(parts.next()?.strip_suffix('s')?.parse().ok()?);
                }
                None => return None,
            }
        }
        Some(Self { slots: Slots::new(n, by), division, lease_duration, scope: scope.into() })
    }

    /// Returns the names of what sets the values that differ.
    fn differing_settings(&self, other: &Self) -> Vec<&'static str> {
        let values = [
            ("--shards", self.slots.count() != other.slots.count()),
            ("`App::sharded`", self.slots.shard_by() != other.slots.shard_by()),
            ("version of kctl", self.division != other.division),
            ("--leader-elect-lease-duration", self.lease_duration != other.lease_duration),
            ("--namespace", self.scope != other.scope),
        ];
        values.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }

    /// Returns the watched namespaces; none if the program watches all, or if the list was too long for the name.
    pub(super) fn namespaces(&self) -> Vec<String> {
        let names = self.scope.split(',').filter(|name| is_dns1123_label(name));
        names.map(ToOwned::to_owned).collect()
    }
}

/// Returns why a replica with the settings `own` waits while the Lease of the settings has another holder, and the remedy.
pub(super) fn disagreement(own: &str, holder: &str) -> String {
    let Some(others) = ShardSettings::parse(holder) else {
        if is_shard_settings(holder) {
            return format!(
                "other replicas run as `{holder}` and this one as `{own}`: use the same version of kctl in all"
            );
        }
        return format!(
            "another replica ({holder}) runs with --leader-elect: stop all replicas, then start them with one mode"
        );
    };
    let differing = ShardSettings::parse(own).map(|own| own.differing_settings(&others)).unwrap_or_default();
    let options = if differing.is_empty() { "options".to_owned() } else { differing.join(" and the same ") };
    format!("other replicas run as `{holder}` and this one as `{own}`: use the same {options} in all")
}

fn is_scope(scope: &str) -> bool {
    match scope.split_once(':') {
        Some((n, hash)) => n.parse::<u32>().is_ok() && u64::from_str_radix(hash, 16).is_ok(),
        None => scope.split(',').all(is_dns1123_label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(namespaces: &[&str]) -> ShardSettings {
        let namespaces = namespaces.iter().map(|name| (*name).to_owned()).collect();
        let slots = Slots::new(8, ShardBy::Object);
        ShardSettings { slots, division: 1, lease_duration: LEASE_DURATION, scope: scope_of(&namespaces) }
    }

    #[test]
    fn name_of_settings_contains_watched_namespaces() {
        let names: [(&[&str], &str); 4] = [
            (&[], "shards-8-by-object"),
            (&["blog"], "shards-8-by-object-in-blog"),
            (&["shop", "blog", "shop"], "shards-8-by-object-in-blog,shop"),
            (&["v2", "built-in-tools", "for-30s"], "shards-8-by-object-in-built-in-tools,for-30s,v2"),
        ];
        for (namespaces, name) in names {
            assert_eq!(settings(namespaces).to_string(), name);
        }
        let later = ShardSettings { division: 2, lease_duration: Duration::from_secs(30), ..settings(&["blog"]) };
        assert_eq!(later.to_string(), "shards-8-by-object-v2-for-30s-in-blog");
    }

    #[test]
    fn settings_are_read_back_from_their_name() {
        let scopes: [&[&str]; 3] = [&[], &["blog"], &["built-in-tools", "for-30s", "v2"]];
        for namespaces in scopes {
            for (division, seconds) in [(1, 15), (1, 30), (7, 15), (7, 60)] {
                let lease_duration = Duration::from_secs(seconds);
                let settings = ShardSettings { division, lease_duration, ..settings(namespaces) };
                assert_eq!(ShardSettings::parse(&settings.to_string()), Some(settings.clone()));
                assert_eq!(settings.namespaces(), namespaces);
            }
        }
    }

    #[test]
    fn disagreement_names_differing_option_and_remedy() {
        let others = "shards-8-by-object";
        let cases = [
            ("shards-4-by-object", "--shards"),
            ("shards-8-by-namespace", "`App::sharded`"),
            ("shards-8-by-object-v2", "version of kctl"),
            ("shards-8-by-object-for-30s", "--leader-elect-lease-duration"),
            ("shards-8-by-object-in-blog", "--namespace"),
            ("shards-4-by-object-in-blog", "--shards and the same --namespace"),
        ];
        for (own, options) in cases {
            for (own, others) in [(own, others), (others, own)] {
                let expected =
                    format!("other replicas run as `{others}` and this one as `{own}`: use the same {options} in all");
                assert_eq!(disagreement(own, others), expected);
            }
        }
        let elected =
            "another replica (web-1) runs with --leader-elect: stop all replicas, then start them with one mode";
        assert_eq!(disagreement(others, "web-1"), elected);
        let newer = "use the same version of kctl in all";
        assert!(disagreement(others, "shards-8-by-object-weighted").ends_with(newer));
    }

    #[test]
    fn long_list_of_namespaces_becomes_a_hash() {
        let names = |last: &str| (0..40).map(|n| format!("team-{n}")).chain([last.to_owned()]).collect::<BTreeSet<_>>();
        let scopes = [scope_of(&names("blog")), scope_of(&names("shop"))];
        assert_ne!(scopes[0], scopes[1]);
        for scope in scopes {
            assert!(scope.starts_with("41:") && scope.len() <= SCOPE_LEN_MAX, "{scope}");
            let settings = ShardSettings { scope, ..settings(&[]) };
            assert_eq!(ShardSettings::parse(&settings.to_string()), Some(settings.clone()));
            assert_eq!(settings.namespaces(), [""; 0]);
        }
    }
}
