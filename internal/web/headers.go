package web

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/graphd-dev/graphd/internal/identity"
)

// callHeaders lists the headers of a request that become metadata of its call.
func callHeaders() []string {
	return []string{"Authorization", "Graphd-Tenant", "X-Request-Id", "Traceparent", "Tracestate"}
}

// protocolHeaders lists the headers of a request that say how its message is read.
func protocolHeaders() []string {
	return []string{"Content-Type", "Connect-Protocol-Version", "Connect-Timeout-Ms", "X-User-Agent"}
}

// ReservedHeaders lists the headers of a request that can't name a caller: they mean something else.
func ReservedHeaders() []string {
	reserved := []string{
		"Cookie", "Host", "Origin", "Referer", "Sec-Fetch-Site", "Content-Length", "Content-Encoding", "Accept-Encoding", "Connect-Content-Encoding",
		"Connection", "Transfer-Encoding", "Trailer", "Upgrade",
	}
	return slices.Concat(reserved, callHeaders(), protocolHeaders())
}

// shownHeaders lists the headers of a response that pages of other sites may read.
func shownHeaders() []string { return []string{"Graphd-Thread-Id", "Graphd-Run-Id", "X-Request-Id"} }

// maxHeaderBytes is what is kept of a header: enough for the server to say that a token is too large.
const maxHeaderBytes = identity.MaxTokenBytes + 1<<10

// Bounds of the metadata of a call: gRPC takes no call with more, and counts so much for each.
const (
	maxMetadataBytes = identity.MaxTokenBytes + 15<<10
	metadataOverhead = 32
)

// checkMetadata refuses what gRPC would not send.
func checkMetadata(given metadata.MD) error {
	size := 0
	for key, values := range given {
		isBinary := strings.HasSuffix(key, "-bin")
		for _, value := range values {
			if isBinary {
				size += len(key) + base64.RawStdEncoding.EncodedLen(len(value)) + metadataOverhead
				continue
			}
			size += len(key) + len(value) + metadataOverhead
			if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
				return newError(codes.InvalidArgument, reasonInvalidField,
					fmt.Sprintf("the header %s has other characters than ASCII: want visible ones of ASCII", key), map[string]string{"field": key})
			}
		}
	}
	if size > maxMetadataBytes {
		return newError(codes.InvalidArgument, reasonInvalidField,
			fmt.Sprintf("the headers that name the caller and the call have %d bytes: want at most %d together", size, maxMetadataBytes), nil)
	}
	return nil
}

// forwardHeaders returns the context of a request with the metadata of its calls. The context is that
// of the request when there is an error.
func forwardHeaders(r *http.Request, parts *CallerParts) (context.Context, error) {
	forwarded := metadata.MD{}
	for _, header := range callHeaders() {
		room := maxHeaderBytes
		for _, value := range r.Header.Values(header) {
			appendCut(forwarded, header, value, &room)
		}
	}
	parts.appendMetadata(forwarded, r)
	if err := checkMetadata(forwarded); err != nil {
		return r.Context(), err
	}
	return metadata.NewOutgoingContext(r.Context(), forwarded), nil
}

// maxTimeoutDigits bounds Connect-Timeout-Ms, as the protocol says.
const maxTimeoutDigits = 10

// callContext returns the context of a call: its headers, and how long it may take. The context is
// that of the request when there is an error.
func (f *Facade) callContext(r *http.Request) (context.Context, context.CancelFunc, error) {
	ctx, err := forwardHeaders(r, &f.opts.Callers)
	if err != nil {
		return ctx, nil, err
	}
	given := r.Header.Get("Connect-Timeout-Ms")
	if given == "" {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	n, err := strconv.ParseUint(given, 10, 63)
	if err != nil || len(given) > maxTimeoutDigits {
		return r.Context(), nil, newError(codes.InvalidArgument, reasonInvalidField,
			fmt.Sprintf("the header Connect-Timeout-Ms is %.100q: want a number of milliseconds of at most %d digits", given, maxTimeoutDigits), map[string]string{"field": "Connect-Timeout-Ms"})
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(n)*time.Millisecond)
	return ctx, cancel, nil
}

// copyHeaders adds metadata of the server to the headers of a response.
func copyHeaders(to http.Header, prefix string, from metadata.MD) {
	for key, values := range from {
		if key == "content-type" || strings.HasPrefix(key, "grpc-") || strings.HasSuffix(key, "-bin") {
			continue
		}
		for _, value := range values {
			to.Add(prefix+http.CanonicalHeaderKey(key), value)
		}
	}
}
