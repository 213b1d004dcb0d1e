package web_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/web"
)

// sendRaw sends the begin of a request, and keeps its connection.
func (f *fixture) sendRaw(t *testing.T, text string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(f.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	return conn
}

// Requests that are announced, or stop on the way, do not hold up others.
func TestRequestsThatDoNotArriveHoldUpNobody(t *testing.T) {
	f := start(t, func(o *web.Options) { o.MaxIncoming, o.MaxMessageBytes = 1<<20, 256<<10 }, nil)
	begin := func(size int) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", checkPath, size)
	}
	for range 100 {
		f.sendRaw(t, begin(256<<10)+"{")
	}
	code, body, _ := f.post(t, checkPath, "application/json", "{"+strings.Repeat(" ", 200<<10)+"}")
	require.Equal(t, http.StatusOK, code, body)

	for range 10 {
		f.sendRaw(t, begin(256<<10)+"{"+strings.Repeat(" ", 200<<10))
	}
	code, body, _ = f.post(t, checkPath, "application/json", "{"+strings.Repeat(" ", 20<<10)+"}")
	require.Equal(t, http.StatusOK, code, body)
	require.Eventually(t, func() bool {
		code, body, _ := f.post(t, checkPath, "application/json", "{"+strings.Repeat(" ", 250<<10)+"}")
		return code == http.StatusTooManyRequests && strings.Contains(body, "TOO_MANY_REQUESTS")
	}, patience, tick, "a further large one is refused at once")
}

// A request that would take far more memory than its bytes is refused before it is decoded.
func TestRequestsThatTakeMuchMemoryAreRefused(t *testing.T) {
	f := start(t, nil, nil)
	code, body, _ := f.post(t, checkPath, "application/json", `{"service":[`+strings.Repeat("{},", 1000)+"{}]}")
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body, "PAYLOAD_TOO_LARGE")
	require.Contains(t, body, "too many values")
	code, body, _ = f.post(t, checkPath, "application/json", `{"service":"`+strings.Repeat("{},", 10_000)+`"}`)
	require.Equal(t, http.StatusOK, code, body)
}

// Answers that browsers do not read are bounded, and small ones go on.
func TestUnreadAnswersAreBounded(t *testing.T) {
	f := start(t, func(o *web.Options) { o.MaxUnread, o.MaxMessageBytes = 4*largeAnswer, 2*largeAnswer }, nil)
	for range 6 {
		f.sendRaw(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", listPath))
	}
	require.Eventually(t, func() bool {
		code, body, _ := f.post(t, listPath, "application/json", "{}")
		return code == http.StatusTooManyRequests && strings.Contains(body, "unread")
	}, patience, tick)
	code, body, _ := f.post(t, checkPath, "application/json", "{}")
	require.Equal(t, http.StatusOK, code, body)
}
