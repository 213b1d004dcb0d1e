package tlsfiles

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// ServerFiles are the files of a server.
type ServerFiles struct {
	Cert     string
	Key      string // of Cert
	ClientCA string // "" = clients need no certificate
}

// Server is the configuration of a server, which follows its files. Its methods may
// be called at the same time.
type Server struct {
	pair     keyPair
	clientCA file // path "" = clients need no certificate
	log      *zap.Logger
	now      func() time.Time
	config   atomic.Pointer[tls.Config]

	checking sync.Mutex // guards the fields below
	checked  time.Time
	digest   [sha256.Size]byte // of the texts, or of the error, that were read last
}

// checkInterval is the shortest time between two looks at the files.
const checkInterval = time.Second

// OpenServer reads the files of a server. now is the clock. The error is a
// *FileError. Certificates that have expired are used, with a warning in the log:
// clients refuse them and tell why.
func OpenServer(f ServerFiles, log *zap.Logger, now func() time.Time) (*Server, error) {
	s := &Server{
		pair: newKeyPair(f.Cert, f.Key), clientCA: file{optionClientCA, f.ClientCA, wantCA},
		log: log, now: now, checked: now(),
	}
	texts, err := s.readTexts()
	if err != nil {
		return nil, err
	}
	config, err := s.parseTexts(texts)
	if err != nil {
		return nil, err
	}
	s.digest = texts.digestTexts()
	s.config.Store(config)
	if info, err := os.Stat(f.Key); err == nil && info.Mode().Perm()&0o007 != 0 {
		log.Warn("others may read the key of TLS: give the file mode 0400", zap.String("file", f.Key), zap.Stringer("mode", info.Mode().Perm()))
	}
	return s, nil
}

// Config returns a configuration for a listener, for TLS 1.2 and newer and HTTP/2.
// Each handshake uses the newest files that could be used; connections stay as they
// are.
func (s *Server) Config() *tls.Config {
	config := s.config.Load().Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.currentConfig(), nil }
	return config
}

// currentConfig returns the configuration of the newest files. One handshake at a
// time looks at the files; those beside it don't wait for the disk.
func (s *Server) currentConfig() *tls.Config {
	if s.checking.TryLock() {
		if now := s.now(); now.Sub(s.checked) >= checkInterval {
			s.checked = now
			s.reloadFiles()
		}
		s.checking.Unlock()
	}
	return s.config.Load()
}

// reloadFiles takes up files that have changed. It logs each state of the files
// once.
func (s *Server) reloadFiles() {
	texts, err := s.readTexts()
	digest := texts.digestTexts()
	if err != nil {
		digest = sha256.Sum256([]byte(err.Error()))
	}
	if digest == s.digest {
		return
	}
	s.digest = digest
	var config *tls.Config
	if err == nil {
		config, err = s.parseTexts(texts)
	}
	if err != nil {
		s.log.Error("the files of TLS have changed and can't be used; what was read before stays in use", zap.Error(err))
		return
	}
	s.config.Store(config)
	s.log.Info("the files of TLS have changed; new connections use them", zap.String("file", s.pair.cert.path))
}

// serverTexts are the texts of a server's files.
type serverTexts struct{ cert, key, clientCA []byte }

// digestTexts returns a digest, which is kept in place of the key.
func (t serverTexts) digestTexts() [sha256.Size]byte {
	var all []byte
	for _, text := range [][]byte{t.cert, t.key, t.clientCA} {
		one := sha256.Sum256(text)
		all = append(all, one[:]...)
	}
	return sha256.Sum256(all)
}

// readTexts reads the files. The error is a *FileError.
func (s *Server) readTexts() (t serverTexts, err error) {
	if t.cert, err = s.pair.cert.readText(); err != nil {
		return t, err
	}
	if t.key, err = s.pair.key.readText(); err != nil || s.clientCA.path == "" {
		return t, err
	}
	t.clientCA, err = s.clientCA.readText()
	return t, err
}

// parseTexts makes a configuration. The error is a *FileError.
func (s *Server) parseTexts(t serverTexts) (*tls.Config, error) {
	pair, err := s.pair.parsePair(t.cert, t.key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{pair},
		// A resumed session would keep the check of a CA that is no longer in the
		// file. Connections of gRPC are few and long.
		SessionTicketsDisabled: true,
	}
	s.warnOfValidity(s.pair.cert, pair.Leaf)
	if s.clientCA.path == "" {
		return config, nil
	}
	list, err := s.clientCA.parseCertificates(t.clientCA)
	if err != nil {
		return nil, err
	}
	for _, ca := range list {
		s.warnOfValidity(s.clientCA, ca)
	}
	config.ClientCAs, config.ClientAuth = newPool(list), tls.RequireAndVerifyClientCert
	return config, nil
}

// warnOfValidity logs that a certificate is not valid at present.
func (s *Server) warnOfValidity(f file, c *x509.Certificate) {
	switch now := s.now(); {
	case now.After(c.NotAfter):
		s.log.Warn("a certificate has expired", zap.String("file", f.path), zap.Time("expires", c.NotAfter))
	case now.Before(c.NotBefore):
		s.log.Warn("a certificate is not valid yet", zap.String("file", f.path), zap.Time("begins", c.NotBefore))
	}
}
