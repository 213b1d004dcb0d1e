package webhook

import (
	"context"
	"net"
	"net/http"
	"syscall"
	"time"
)

// idleTime is how long an idle connection stays open.
const idleTime = 90 * time.Second

// NewTransport returns a transport that checks each address when its socket exists and is not
// connected, so that no answer of a resolver comes between the check and the connection. It uses
// no proxy: behind one, the address would be unknown.
func NewTransport(checkAddress func(network, address string) error) *http.Transport {
	dialer := &net.Dialer{
		Timeout: Timeout,
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			return checkAddress(network, address)
		},
	}
	return &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: Timeout,
		MaxIdleConns: 16, MaxIdleConnsPerHost: 16, IdleConnTimeout: idleTime, MaxResponseHeaderBytes: MaxAnswerBytes,
	}
}
