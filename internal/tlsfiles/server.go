package tlsfiles

import (
	"crypto/tls"
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
	follower follower
}

// OpenServer reads the files of a server. now is the clock. The error is a
// *FileError. Certificates that have expired are used, with a warning in the log:
// clients refuse them and tell why.
func OpenServer(f ServerFiles, log *zap.Logger, now func() time.Time) (*Server, error) {
	s := &Server{
		pair: newKeyPair("", f.Cert, f.Key), clientCA: file{optionClientCA, f.ClientCA, wantCA},
		follower: follower{log: log, now: now},
	}
	s.follower.files = []file{s.pair.cert, s.pair.key, s.clientCA}
	if err := s.follower.openFiles(s.parseTexts); err != nil {
		return nil, err
	}
	s.follower.warnOfReaders(s.pair.key)
	return s, nil
}

// Config returns a configuration for a listener, for TLS 1.2 and newer and HTTP/2.
// Each handshake uses the newest files that could be used; connections stay as they
// are.
func (s *Server) Config() *tls.Config {
	config := s.follower.config.Load().Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.follower.currentConfig(), nil }
	return config
}

// parseTexts makes a configuration of the texts of the certificate, its key and the CAs
// of clients. The error is a *FileError.
func (s *Server) parseTexts(texts [][]byte) (*tls.Config, error) {
	pair, err := s.pair.parsePair(texts[0], texts[1])
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{pair},
		// A resumed session would keep the check of a CA that is no longer in the
		// file. Connections of gRPC are few and long.
		SessionTicketsDisabled: true,
	}
	s.follower.warnOfValidity(s.pair.cert, pair.Leaf)
	if s.clientCA.path == "" {
		return config, nil
	}
	list, err := s.clientCA.parseAuthorities(texts[2])
	if err != nil {
		return nil, err
	}
	for _, ca := range list {
		s.follower.warnOfValidity(s.clientCA, ca)
	}
	config.ClientCAs, config.ClientAuth = newPool(list), tls.RequireAndVerifyClientCert
	return config, nil
}
