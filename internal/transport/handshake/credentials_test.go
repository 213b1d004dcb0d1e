package handshake_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/credentials"

	"github.com/graphd-dev/graphd/internal/transport/handshake"
)

// authority is a CA of a test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// newCertificate makes a certificate that parent has signed, or that has signed itself
// when parent is nil.
func newCertificate(t *testing.T, parent *authority, use x509.ExtKeyUsage, end time.Time) (authority, tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "test"}, NotBefore: end.Add(-2 * time.Hour), NotAfter: end, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{use}, IsCA: parent == nil, BasicConstraintsValid: true,
	}
	signer, signingKey := template, key
	if parent != nil {
		signer, signingKey = parent.certificate, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, key.Public(), signingKey)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority{certificate, key}, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: certificate}
}

// refusalCounts has the number of refused handshakes by reason.
type refusalCounts struct {
	mu       sync.Mutex
	byReason map[string]int
}

func (c *refusalCounts) CountRefusedHandshake(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byReason[reason]++
}

// testServer makes handshakes as a server.
type testServer struct {
	credentials credentials.TransportCredentials
	counts      *refusalCounts
	log         *observer.ObservedLogs
	roots       *x509.CertPool // with the CA of its certificate and of its clients
	ca          authority
}

func newTestServer(t *testing.T) *testServer {
	t.Helper()
	ca, _ := newCertificate(t, nil, x509.ExtKeyUsageAny, time.Now().Add(time.Hour))
	_, own := newCertificate(t, &ca, x509.ExtKeyUsageServerAuth, time.Now().Add(time.Hour))
	s := &testServer{counts: &refusalCounts{byReason: make(map[string]int)}, roots: x509.NewCertPool(), ca: ca}
	s.roots.AddCert(ca.certificate)
	core, log := observer.New(zap.DebugLevel)
	s.log = log
	s.credentials = handshake.ReportRefusals(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own}, ClientCAs: s.roots, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}), s.counts, zap.New(core)).Clone()
	return s
}

// acceptOne makes the handshake of one connection of a client.
func (s *testServer) acceptOne(t *testing.T, timeout time.Duration, connect func(net.Conn)) error {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	var client sync.WaitGroup
	client.Go(func() {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err == nil {
			connect(conn)
		}
	})
	conn, err := listener.Accept()
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(timeout)))
	_, _, err = s.credentials.ServerHandshake(conn)
	_ = conn.Close()
	client.Wait()
	return err
}

// handshakeWith connects with a configuration of a client.
func (s *testServer) handshakeWith(change func(*tls.Config)) func(net.Conn) {
	return func(conn net.Conn) {
		config := &tls.Config{RootCAs: s.roots, ServerName: "localhost", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS10}
		change(config)
		c := tls.Client(conn, config)
		if c.Handshake() == nil {
			_, _ = c.Read(make([]byte, 1)) // in TLS 1.3 the client learns later that it is refused
		}
		_, _ = io.Copy(io.Discard, conn) // a close with unread bytes may reset the connection before its alert is read
		_ = c.Close()
	}
}

func TestRefusedHandshakesAreCountedByReason(t *testing.T) {
	s := newTestServer(t)
	valid, past := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	otherCA, _ := newCertificate(t, nil, x509.ExtKeyUsageAny, valid)
	show := func(parent *authority, use x509.ExtKeyUsage, end time.Time) func(net.Conn) {
		_, shown := newCertificate(t, parent, use, end)
		return s.handshakeWith(func(c *tls.Config) { // also a certificate that the server does not ask for
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil }
		})
	}
	write := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			_, _ = conn.Write([]byte(text))
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
	}
	for name, test := range map[string]struct {
		connect func(net.Conn)
		timeout time.Duration // 0 = a minute
		reason  string        // "" = accepted
	}{
		"accepted":             {connect: show(&s.ca, x509.ExtKeyUsageClientAuth, valid)},
		"no certificate":       {connect: s.handshakeWith(func(*tls.Config) {}), reason: handshake.ReasonNoCertificate},
		"of another CA":        {connect: show(&otherCA, x509.ExtKeyUsageClientAuth, valid), reason: handshake.ReasonUnknownAuthority},
		"expired":              {connect: show(&s.ca, x509.ExtKeyUsageClientAuth, past), reason: handshake.ReasonCertificateExpired},
		"of a server":          {connect: show(&s.ca, x509.ExtKeyUsageServerAuth, valid), reason: handshake.ReasonCertificateInvalid},
		"HTTP in plain text":   {connect: write("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), reason: handshake.ReasonNotTLS},
		"HTTP/2 in plain text": {connect: write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), reason: handshake.ReasonNotTLS},
		"does not know the server's CA": {
			connect: s.handshakeWith(func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }), reason: handshake.ReasonRefusedByClient,
		},
		"probe of the port": {connect: func(conn net.Conn) { _ = conn.Close() }, reason: handshake.ReasonClosed},
		"left in the middle": {
			connect: func(conn net.Conn) { _, _ = conn.Write([]byte{22, 3, 1, 0, 200, 1}); _ = conn.Close() }, reason: handshake.ReasonClosed,
		},
		"sends too little": {connect: write("\x16"), timeout: time.Millisecond, reason: handshake.ReasonTimeout},
		"old TLS":          {connect: s.handshakeWith(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11 }), reason: handshake.ReasonOther},
		"another protocol inside": {
			connect: s.handshakeWith(func(c *tls.Config) { c.NextProtos = []string{"other"} }), reason: handshake.ReasonOther,
		},
	} {
		t.Run(name, func(t *testing.T) {
			clear(s.counts.byReason)
			s.log.TakeAll()
			if test.timeout == 0 {
				test.timeout = time.Minute
			}
			err := s.acceptOne(t, test.timeout, test.connect)
			if test.reason == "" {
				require.NoError(t, err)
				require.Empty(t, s.counts.byReason)
				require.Zero(t, s.log.Len())
				return
			}
			require.Error(t, err)
			require.Equal(t, map[string]int{test.reason: 1}, s.counts.byReason, "%v", err)
			require.Contains(t, handshake.Reasons(), test.reason)
			line := s.log.TakeAll()
			require.Len(t, line, 1)
			require.Equal(t, test.reason, line[0].ContextMap()["reason"])
			require.Contains(t, line[0].ContextMap()["peer.address"], "127.0.0.1:")
		})
	}
}

// A client that connects again and again does not fill the log.
func TestLinesOfRefusedHandshakesAreBounded(t *testing.T) {
	const attempts = 200
	s := newTestServer(t)
	for range attempts {
		client, server := net.Pipe()
		require.NoError(t, client.Close())
		_, _, err := s.credentials.ServerHandshake(server)
		require.Error(t, err)
	}
	require.Equal(t, attempts, s.counts.byReason[handshake.ReasonClosed])
	require.Less(t, s.log.Len(), attempts)
	require.Eventually(t, func() bool { // the next line has the number of those that are missing
		client, server := net.Pipe()
		require.NoError(t, client.Close())
		_, _, _ = s.credentials.ServerHandshake(server)
		return s.log.FilterFieldKey("omitted").Len() > 0
	}, time.Minute, 10*time.Millisecond)
}
