package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
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

// maxTimeoutDigits bounds Connect-Timeout-Ms, as the protocol says.
const maxTimeoutDigits = 10

// callContext returns the context of a call: its headers, and how long it may take. The context is
// that of the request when there is an error.
func (f *Facade) callContext(r *http.Request) (context.Context, context.CancelFunc, error) {
	ctx := r.Context()
	forwarded := metadata.MD{}
	for _, header := range callHeaders() {
		forwarded.Append(header, r.Header.Values(header)...)
	}
	f.opts.Callers.appendMetadata(forwarded, r)
	ctx = metadata.NewOutgoingContext(ctx, forwarded)
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
