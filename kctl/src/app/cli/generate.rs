//! The commands that generate manifests: they combine what the app declares with the options.

use std::{collections::BTreeSet, path::Path};

use kctl_runtime::{
    manifest::{self, Descriptions},
    reconcile::Result,
};

use super::manifest_options::{GenerateRbacOptions, ManifestOptions, With};
use crate::app::{
    App, helm, names,
    output::{CrdFiles, OWN_FOLDERS, OWN_SUFFIXES, Owned, reject_breaking, reject_breaking_in, write_manifests},
    run,
};

pub(super) fn generate_manifests(mut app: App, options: ManifestOptions) -> Result<()> {
    if let Some(folder) = &options.helm {
        return generate_chart(&app, folder, &options);
    }
    app.namespaces = distinct(&options.objects_in);
    let ManifestOptions { image, names, mut deploy, ring, resources, with, out, breaking, .. } = options;
    let monitoring = with.contains(&With::Monitoring);
    deploy.metrics |= monitoring;
    let manager = deploy.manager(&app, &ring);
    let specs = app.specs_in_use();
    let names = names.into_rbac_options(&app);
    let image = image.unwrap_or_else(|| format!("{}:latest", app.name));
    let mut all = manifest::crd_manifests(&app.kinds(), Descriptions::Own)?;
    all.extend(manifest::rbac(&specs, &names)?);
    all.extend(manifest::manager_rbac(&names, manager)?);
    let deployment = manifest::deployment(&names, manager, &resources.resources()?, &image)?;
    let deployment = manifest::deployment_in_namespaces(deployment, app.namespaces.iter().map(String::as_str))?;
    match &ring.controller_ring {
        Some(ring) => {
            all.extend(app.ring_rbac(&names, ring)?);
            all.push(manifest::controller_ring(&specs, ring)?);
            all.push(manifest::deployment_in_ring(deployment, ring)?);
        }
        None => all.push(deployment),
    }
    if deploy.metrics {
        all.push(manifest::metrics_service(&names)?);
    }
    if monitoring {
        all.extend(manifest::monitoring(&names, manager)?);
    }
    #[cfg(feature = "webhook")]
    {
        use crate::app::webhook::CertificateIssuer;
        let issued =
            if with.contains(&With::CertManager) { CertificateIssuer::Elsewhere } else { CertificateIssuer::Here };
        app.webhook_manifests(&names, &options.register, issued, &mut all)?;
    }
    names::check_services(&all)?;
    reject_breaking(&all, &out, &breaking)?;
    all.push(manifest::disruption_budget(&names)?);
    if out.folder().is_some() {
        all.push(manifest::kustomization(&all)?);
    }
    write_manifests(&all, &out, &Owned { name: &names.name, suffixes: &OWN_SUFFIXES, folders: &OWN_FOLDERS })
}

/// Returns each namespace once, sorted.
fn distinct(namespaces: &[String]) -> Vec<String> {
    namespaces.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

fn generate_chart(app: &App, folder: &Path, options: &ManifestOptions) -> Result<()> {
    let monitoring = options.with.contains(&With::Monitoring);
    let mut deploy = options.deploy;
    deploy.metrics |= monitoring;
    #[cfg(feature = "webhook")]
    let cert_manager = options.with.contains(&With::CertManager);
    #[cfg(not(feature = "webhook"))]
    let cert_manager = false;
    let name = options.names.name.clone().unwrap_or_else(|| app.name.clone());
    names::check_chart(&name)?;
    let chart = helm::chart(
        app,
        helm::ChartOptions {
            name,
            image: options.image.clone(),
            namespaces: distinct(&options.objects_in),
            manager: deploy.manager(app, &options.ring),
            resources: options.resources.resources()?,
            monitoring,
            cert_manager,
        },
    )?;
    let crds = CrdFiles { folder: &helm::crd_folder(folder), parse: helm::parse_crd };
    reject_breaking_in(&chart.definitions, &crds, &options.breaking)?;
    let mode = if options.out.is_check() { helm::Mode::Check } else { helm::Mode::Write };
    helm::write_chart(&chart, folder, mode)
}

/// Prints or writes the role of the app, or compares it with that in a cluster.
#[cfg_attr(not(feature = "webhook"), allow(unused_mut, reason = "webhooks add permissions"))]
pub(super) async fn generate_rbac(mut app: App, options: GenerateRbacOptions) -> Result<()> {
    let GenerateRbacOptions { names, roles, mut deploy, ring, out, diff } = options;
    let mut options = names.into_rbac_options(&app);
    options.labels = roles.label.into_iter().collect();
    if let Some(cluster) = roles.cluster {
        app.check_cluster(&cluster)?;
        options.cluster = cluster;
    }
    app.namespaces = roles.objects_in;
    deploy.metrics |= roles.with.contains(&With::Monitoring);
    let specs = app.specs_in_use();
    let mut manifests = manifest::rbac(&specs, &options)?;
    let mut permissions = manifest::permissions(&specs, &options.cluster);
    if options.cluster.is_empty() {
        manifests.extend(manifest::manager_rbac(&options, deploy.manager(&app, &ring))?);
        if let Some(ring) = &ring.controller_ring {
            manifests.extend(app.ring_rbac(&options, ring)?);
        }
        #[cfg(feature = "webhook")]
        if app.makes_certificate() && !roles.with.contains(&With::CertManager) {
            let own = app.own_certificate(&options)?;
            manifests.extend(manifest::webhook_rbac(&options, &own)?);
            permissions.extend(own);
        }
    }
    if diff.diff_cluster {
        let cluster = run::read_cluster(&app, diff.kubeconfig, diff.context).await?;
        let diff = crate::app::diff_cluster::diff(&cluster.client, &permissions, &manifests, &options);
        return cluster.read(diff).await;
    }
    if roles.user_roles {
        manifests.extend(manifest::user_roles(&app.kinds(), &options)?);
    }
    let suffixes = [&OWN_SUFFIXES[..], &["-view", "-edit"]].concat();
    write_manifests(&manifests, &out, &Owned { name: &options.name, suffixes: &suffixes, folders: &[] })
}
