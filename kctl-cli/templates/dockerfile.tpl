# The image of {{name}}: docker build --build-arg COMMIT="$(git rev-parse --short HEAD)" -t registry.example.com/{{name}}:1 .
FROM rust:1-slim AS build
WORKDIR /src
COPY . .
# For `--version` and the metrics, since .git is not in the build context.
ARG COMMIT
# Without default features: the embedded API server is for development and tests.
RUN cargo build --release --no-default-features

FROM debian:stable-slim
COPY --from=build /src/target/release/{{name}} /usr/local/bin/{{name}}
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/{{name}}"]
