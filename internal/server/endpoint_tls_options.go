package server

import (
	"crypto/tls"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/tlsfiles"
)

// EndpointTLSOptions are the files of TLS towards endpoints whose graph asks for TLS. A
// graph can name no file.
type EndpointTLSOptions struct {
	EndpointTLSCert string
	EndpointTLSKey  string
	EndpointTLSCA   string
}

// endpointPrefix precedes the names of these options.
const endpointPrefix = "endpoint-"

// RegisterFlags registers the options.
func (o *EndpointTLSOptions) RegisterFlags(f *pflag.FlagSet) {
	f.StringVar(&o.EndpointTLSCert, "endpoint-tls-cert", "",
		"PEM file with the certificate that this server presents to endpoints with tls; read again when it changes")
	f.StringVar(&o.EndpointTLSKey, "endpoint-tls-key", "", "PEM file with the private key of --endpoint-tls-cert; read again when it changes")
	f.StringVar(&o.EndpointTLSCA, "endpoint-tls-ca", "",
		"PEM file with the CAs of endpoints with tls (default: those of the system); read again when it changes")
}

// validateOptions returns an *exit.UsageError for files that don't suffice.
func (o *EndpointTLSOptions) validateOptions() error {
	return validatePair(endpointPrefix, o.EndpointTLSCert, o.EndpointTLSKey)
}

// openEndpointClient reads the files and returns what gives the configuration of a connection
// that begins; nil = no file is given. The error is an *exit.UsageError.
func (o *EndpointTLSOptions) openEndpointClient(log *zap.Logger) (func() *tls.Config, error) {
	return openClientFiles(tlsfiles.ClientFiles{
		CA: o.EndpointTLSCA, Cert: o.EndpointTLSCert, Key: o.EndpointTLSKey, OptionPrefix: endpointPrefix,
	}, log)
}

// validatePair returns an *exit.UsageError for a certificate without a key, or a key
// without a certificate. prefix precedes the names of the options.
func validatePair(prefix, cert, key string) error {
	switch {
	case cert != "" && key == "":
		return exit.Usagef("--%stls-cert needs --%stls-key", prefix, prefix).WithHint("give the file with the private key of the certificate")
	case key != "" && cert == "":
		return exit.Usagef("--%stls-key needs --%stls-cert", prefix, prefix).WithHint("give the file with the certificate of the key")
	}
	return nil
}

// openClientFiles reads the files of a client; nil = none is given. The error is an
// *exit.UsageError.
func openClientFiles(f tlsfiles.ClientFiles, log *zap.Logger) (func() *tls.Config, error) {
	if f.CA == "" && f.Cert == "" {
		return nil, nil
	}
	c, err := tlsfiles.OpenClient(f, log, time.Now)
	if err != nil {
		return nil, explainTLSFile(err)
	}
	return c.CurrentConfig, nil
}
