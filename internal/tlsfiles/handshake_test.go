package tlsfiles_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/tlsfiles"
)

// testServer answers each byte of a connection with the same byte.
type testServer struct {
	files   tlsfiles.ServerFiles
	address string
	log     *observer.ObservedLogs
	later   atomic.Int64 // how far the server's clock, which stands, has been put forward
}

// startServer serves with files in a folder. clientCA nil = clients need no
// certificate.
func startServer(t *testing.T, cert, key, clientCA []byte) *testServer {
	t.Helper()
	dir := t.TempDir()
	s := &testServer{files: tlsfiles.ServerFiles{Cert: writeFile(t, dir, "server.pem", cert), Key: writeFile(t, dir, "key.pem", key)}}
	if clientCA != nil {
		s.files.ClientCA = writeFile(t, dir, "clients.pem", clientCA)
	}
	core, log := observer.New(zap.DebugLevel)
	s.log = log
	started := time.Now()
	files, err := tlsfiles.OpenServer(s.files, zap.New(core), func() time.Time { return started.Add(time.Duration(s.later.Load())) })
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	s.address = listener.Addr().String()
	go serveEcho(tls.NewListener(listener, files.Config()))
	return s
}

func serveEcho(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}()
	}
}

// passSecond puts the server's clock forward by a second.
func (s *testServer) passSecond() { s.later.Add(int64(time.Second)) }

// dial makes a connection that has been used. The error is that of the handshake or,
// where the server refuses what it has got, that of the first answer.
func (s *testServer) dial(t *testing.T, config *tls.Config) (*tls.Conn, error) {
	t.Helper()
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", s.address, config)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, exchange(conn)
}

func exchange(conn *tls.Conn) error {
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	answer := make([]byte, 1)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if answer[0] != 'x' {
		return errors.New("another answer")
	}
	return nil
}

func (s *testServer) commonName(t *testing.T, config *tls.Config) string {
	t.Helper()
	conn, err := s.dial(t, config)
	require.NoError(t, err)
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// newClient makes the configuration of a client. cert nil = none.
func newClient(t *testing.T, ca authority, cert, key []byte) *tls.Config {
	t.Helper()
	dir := t.TempDir()
	files := tlsfiles.ClientFiles{CA: writeFile(t, dir, "ca.pem", ca.text)}
	if cert != nil {
		files.Cert, files.Key = writeFile(t, dir, "own.pem", cert), writeFile(t, dir, "own-key.pem", key)
	}
	config, err := tlsfiles.NewClientConfig(files)
	require.NoError(t, err)
	return config
}

func TestHandshakes(t *testing.T) {
	ca, other := newAuthority(t, "ca"), newAuthority(t, "other")
	hour := time.Now().Add(time.Hour)
	cert, key := ca.issue(t, "server", hour)
	oldCert, oldKey := ca.issue(t, "old server", time.Now().Add(-time.Minute))
	own, ownKey := ca.issue(t, "client", hour)
	foreign, foreignKey := other.issue(t, "foreign", hour)
	expired, expiredKey := ca.issue(t, "expired", time.Now().Add(-time.Minute))
	open := startServer(t, cert, key, nil)
	closed := startServer(t, cert, key, ca.text)
	outdated := startServer(t, oldCert, oldKey, nil)
	limited := func(config *tls.Config, version uint16) *tls.Config {
		config.MinVersion, config.MaxVersion = version, version
		return config
	}
	for name, test := range map[string]struct {
		server  *testServer
		client  *tls.Config
		version uint16
		says    string // "" = it succeeds
	}{
		"good":                     {server: open, client: newClient(t, ca, nil, nil), version: tls.VersionTLS13},
		"TLS 1.2":                  {server: open, client: limited(newClient(t, ca, nil, nil), tls.VersionTLS12), version: tls.VersionTLS12},
		"TLS 1.1":                  {server: open, client: limited(newClient(t, ca, nil, nil), tls.VersionTLS11), says: "protocol version not supported"},
		"wrong CA":                 {server: open, client: newClient(t, other, nil, nil), says: "unknown authority"},
		"expired server":           {server: outdated, client: newClient(t, ca, nil, nil), says: "expired"},
		"certificate not asked":    {server: open, client: newClient(t, ca, foreign, foreignKey), version: tls.VersionTLS13},
		"client":                   {server: closed, client: newClient(t, ca, own, ownKey), version: tls.VersionTLS13},
		"no client certificate":    {server: closed, client: newClient(t, ca, nil, nil), says: "certificate required"},
		"client of another CA":     {server: closed, client: newClient(t, ca, foreign, foreignKey), says: "unknown certificate authority"},
		"expired client":           {server: closed, client: newClient(t, ca, expired, expiredKey), says: "expired certificate"},
		"client of TLS 1.2":        {server: closed, client: limited(newClient(t, ca, own, ownKey), tls.VersionTLS12), version: tls.VersionTLS12},
		"no certificate, TLS 1.2":  {server: closed, client: limited(newClient(t, ca, nil, nil), tls.VersionTLS12), says: "remote error"},
		"another CA, with TLS 1.2": {server: closed, client: limited(newClient(t, ca, foreign, foreignKey), tls.VersionTLS12), says: "remote error"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := test.server.dial(t, test.client)
			if test.says != "" {
				require.ErrorContains(t, err, test.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.version, conn.ConnectionState().Version)
			require.Equal(t, "h2", conn.ConnectionState().NegotiatedProtocol)
		})
	}
	warned := outdated.log.FilterMessage("a certificate has expired").All()
	require.Len(t, warned, 1)
	require.Equal(t, outdated.files.Cert, warned[0].ContextMap()["file"])
	require.Zero(t, open.log.Len())
}

func TestAServerTakesUpNewFiles(t *testing.T) {
	ca := newAuthority(t, "ca")
	hour := time.Now().Add(time.Hour)
	cert, key := ca.issue(t, "first", hour)
	s := startServer(t, cert, key, nil)
	client := newClient(t, ca, nil, nil)
	living, err := s.dial(t, client)
	require.NoError(t, err)

	cert, key = ca.issue(t, "second", hour)
	replaceFile(t, s.files.Cert, cert)
	replaceFile(t, s.files.Key, key)
	require.Equal(t, "first", s.commonName(t, client), "the files are looked at once a second")
	s.passSecond()
	require.Equal(t, "second", s.commonName(t, client))
	require.NoError(t, exchange(living), "a connection goes on with the certificate that it began with")
	require.Len(t, s.log.FilterMessage("the files of TLS have changed; new connections use them").All(), 1)
}

func TestBrokenNewFilesLeaveTheOldOnesInUse(t *testing.T) {
	ca := newAuthority(t, "ca")
	hour := time.Now().Add(time.Hour)
	cert, key := ca.issue(t, "first", hour)
	_, otherKey := ca.issue(t, "second", hour)
	for name, test := range map[string]struct {
		breakFiles func(t *testing.T, f tlsfiles.ServerFiles)
		says       []string
	}{
		"no PEM": {
			func(t *testing.T, f tlsfiles.ServerFiles) { replaceFile(t, f.Cert, []byte("hush")) },
			[]string{"--tls-cert", "server.pem", "not PEM"},
		},
		"another key": {
			func(t *testing.T, f tlsfiles.ServerFiles) { replaceFile(t, f.Key, otherKey) },
			[]string{"--tls-key", "key.pem", "does not fit"},
		},
		"no key": {
			func(t *testing.T, f tlsfiles.ServerFiles) { removeFile(t, f.Key) },
			[]string{"--tls-key", "key.pem", "no such file"},
		},
		"no CA": {
			func(t *testing.T, f tlsfiles.ServerFiles) { replaceFile(t, f.ClientCA, nil) },
			[]string{"--tls-client-ca", "clients.pem", "not PEM"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, cert, key, ca.text)
			client := newClient(t, ca, cert, key)
			test.breakFiles(t, s.files)
			for range 3 {
				s.passSecond()
				require.Equal(t, "first", s.commonName(t, client))
			}
			told := s.log.All()
			require.Len(t, told, 1, "a state of the files is logged once")
			require.Equal(t, zap.ErrorLevel, told[0].Level)
			text, _ := told[0].ContextMap()["error"].(string)
			for _, words := range test.says {
				require.Contains(t, text, words)
			}
			require.NotContains(t, text, "hush")

			replaceFile(t, s.files.Cert, cert)
			replaceFile(t, s.files.Key, key)
			replaceFile(t, s.files.ClientCA, ca.text)
			s.passSecond()
			require.Equal(t, "first", s.commonName(t, client))
			require.Equal(t, 2, s.log.Len())
		})
	}
}

func TestANewClientCAHoldsForTheNextConnection(t *testing.T) {
	ca, next := newAuthority(t, "ca"), newAuthority(t, "next")
	hour := time.Now().Add(time.Hour)
	cert, key := ca.issue(t, "server", hour)
	before, beforeKey := ca.issue(t, "before", hour)
	after, afterKey := next.issue(t, "after", hour)
	s := startServer(t, cert, key, ca.text)
	old, young := newClient(t, ca, before, beforeKey), newClient(t, ca, after, afterKey)
	old.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	living, err := s.dial(t, old)
	require.NoError(t, err)
	_, err = s.dial(t, young)
	require.ErrorContains(t, err, "unknown certificate authority")

	replaceFile(t, s.files.ClientCA, next.text)
	s.passSecond()
	_, err = s.dial(t, young)
	require.NoError(t, err)
	_, err = s.dial(t, old)
	require.ErrorContains(t, err, "unknown certificate authority", "no session is resumed past the check")
	require.NoError(t, exchange(living))
}
