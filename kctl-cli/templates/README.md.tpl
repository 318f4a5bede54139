# {{name}}

A controller of `{{kind}}` objects, made with [kctl](https://github.com/kctl-rs/kctl).

Watch it work, without a cluster:

    cargo run -- dev -f sample.yaml --until-idle

Run its tests:

    cargo test

On a cluster:

    cargo run -- generate-crds | kubectl apply -f -
    kubectl apply -f sample.yaml
    cargo run -- run
