# The image of {{name}}: docker build --build-arg COMMIT="$(git rev-parse --short HEAD)" -t registry.example.com/{{name}}:1 .
FROM rust:1-slim AS build
WORKDIR /src
COPY . .
# What `--version` and the metrics say; .git is not in the image.
ARG COMMIT
# Without its default features it has no embedded API server: that is for development and tests.
RUN cargo build --release --no-default-features

FROM debian:stable-slim
COPY --from=build /src/target/release/{{name}} /usr/local/bin/{{name}}
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/{{name}}"]
