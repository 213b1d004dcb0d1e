package server

import (
	"crypto/tls"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/tlsfiles"
)

// validateTLS returns an *exit.UsageError for files that don't suffice.
func (o *Options) validateTLS() error {
	const hint = "give --tls-cert FILE and --tls-key FILE; `graphd certs` makes files for a trial"
	switch {
	case o.TLSCert != "" && o.TLSKey == "":
		return exit.Usagef("--tls-cert needs --tls-key").WithHint(hint)
	case o.TLSKey != "" && o.TLSCert == "":
		return exit.Usagef("--tls-key needs --tls-cert").WithHint(hint)
	case o.TLSClientCA != "" && o.TLSCert == "":
		return exit.Usagef("--tls-client-ca needs --tls-cert and --tls-key").WithHint(hint)
	}
	return nil
}

// readTLS reads the files of TLS and returns the configuration that follows them;
// nil = plain text. The error is an *exit.UsageError.
func (o *Options) readTLS(log *zap.Logger) (*tls.Config, error) {
	if o.TLSCert == "" {
		return nil, nil
	}
	files, err := tlsfiles.OpenServer(
		tlsfiles.ServerFiles{Cert: o.TLSCert, Key: o.TLSKey, ClientCA: o.TLSClientCA}, log.Named("tls"), time.Now)
	if err != nil {
		return nil, explainTLSFile(err)
	}
	return files.Config(), nil
}

// explainTLSFile makes an *exit.UsageError of a *tlsfiles.FileError.
func explainTLSFile(err error) error {
	if refused, ok := errors.AsType[*tlsfiles.FileError](err); ok {
		return exit.Usagef("%v", refused).WithHint("%s", refused.Want)
	}
	return err
}
