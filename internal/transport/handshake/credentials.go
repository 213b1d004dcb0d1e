// Package handshake reports the connections that end before their first call, because
// client and server do not agree on TLS. No call exists then that the log could name.
package handshake

import (
	"net"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/credentials"
)

// A client can be refused as fast as it connects. Beyond these numbers the log has no
// lines, and the next line has their number.
const (
	maxLinesPerSecond = 5
	maxLinesAtOnce    = 20
	// maxCauseBytes bounds a cause, which may have a name from the client's certificate.
	maxCauseBytes = 512
)

// RefusalCounter counts handshakes that failed.
type RefusalCounter interface {
	// CountRefusedHandshake counts one. The reason is one of Reasons.
	CountRefusedHandshake(reason string)
}

// reporter is shared by all copies of the credentials of a server.
type reporter struct {
	counter RefusalCounter // nil = not counted
	log     *zap.Logger
	lines   *rate.Limiter
	omitted atomic.Int64 // lines since the last one in the log
}

// reportingCredentials report the handshakes of a server that fail.
type reportingCredentials struct {
	credentials.TransportCredentials

	reporter *reporter
}

// ReportRefusals returns credentials that log and count the handshakes of a server that
// fail. counter may be nil.
func ReportRefusals(c credentials.TransportCredentials, counter RefusalCounter, log *zap.Logger) credentials.TransportCredentials {
	lines := rate.NewLimiter(maxLinesPerSecond, maxLinesAtOnce)
	return reportingCredentials{c, &reporter{counter: counter, log: log, lines: lines}}
}

// ServerHandshake makes the handshake of a connection.
func (c reportingCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		c.reporter.reportRefusal(raw.RemoteAddr(), err)
	}
	return conn, info, err
}

// Clone makes a copy.
func (c reportingCredentials) Clone() credentials.TransportCredentials {
	return reportingCredentials{c.TransportCredentials.Clone(), c.reporter}
}

// reportRefusal counts a handshake that failed, and logs it while there are few.
func (r *reporter) reportRefusal(client net.Addr, err error) {
	reason := ClassifyError(err)
	if r.counter != nil {
		r.counter.CountRefusedHandshake(reason)
	}
	if !r.lines.AllowN(time.Now(), 1) {
		r.omitted.Add(1)
		return
	}
	fields := []zap.Field{zap.String("reason", reason), zap.String("cause", shortenCause(err.Error()))}
	if client != nil {
		fields = append(fields, zap.Stringer("peer.address", client))
	}
	if n := r.omitted.Swap(0); n > 0 {
		fields = append(fields, zap.Int64("omitted", n))
	}
	r.log.Info("a TLS handshake failed", fields...)
}

func shortenCause(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxCauseBytes)], "")
}
