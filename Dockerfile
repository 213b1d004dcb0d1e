# Builds on the machine's own platform and cross-compiles, so an arm64 image needs no emulation:
#   docker buildx build --platform linux/amd64,linux/arm64 .
# Images are named by the digest of all their platforms, which decides; the tag says what it is. Dependabot renews them.
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm@sha256:9fdc884aacc3bec89b20ffc69f4bb369c78210e3e4f600387b5128b12c199f81 AS build
WORKDIR /src

COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download

COPY client client
COPY graph graph
COPY cmd cmd
COPY gen gen
COPY internal internal
COPY page/page.go page/page.go
COPY page/dist page/dist
COPY examples examples

ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags="-s -w -X main.version=$VERSION" -o /out/graphd ./cmd/graphd \
    && mkdir /out/data

# What is in the program: its modules and the Go that compiled it, as make sbom says it.
COPY tools/go.mod tools/go.sum tools/
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go tool -modfile=tools/go.mod cyclonedx-gomod bin -json -std -short-purls -noserial -notimestamp -version "$VERSION" \
    -output /out/graphd.cdx.json /out/graphd

FROM gcr.io/distroless/static-debian12:nonroot@sha256:afa5c872c891853ca7fcf1f12c3edb23f7eeef36189728842dd51042ff57f7ab
COPY --from=build /out/graphd /graphd
COPY --from=build /out/graphd.cdx.json /graphd.cdx.json
# The embedded store lives here; mount a volume to keep it. One process at a time may own it.
COPY --from=build --chown=65532:65532 /out/data /data
VOLUME /data

USER 65532:65532
EXPOSE 7700
# The image has no shell: the binary asks itself over the standard health service.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 CMD ["/graphd", "health"]
ENTRYPOINT ["/graphd"]
# It starts with a certificate and a way to know callers, in GRAPHD_TLS_CERT, GRAPHD_TLS_KEY and GRAPHD_API_KEYS,
# or with GRAPHD_INSECURE=true where a network keeps others out. With TLS the health check needs GRAPHD_TLS_CA.
CMD ["serve", "--listen", "0.0.0.0:7700", "--store", "sqlite:/data/graphd.db"]
