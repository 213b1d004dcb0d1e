package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
)

// ClientFiles are the files of a client, each of which may be "".
type ClientFiles struct {
	CA   string // of servers; "" = the CAs of the system
	Cert string // the client's own; "" = none is presented
	Key  string // of Cert
}

// NewClientConfig reads the files of a client and returns its configuration, for
// TLS 1.2 and newer. The error is a *FileError.
func NewClientConfig(f ClientFiles) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		list, err := readCA(file{optionCA, f.CA, wantCA})
		if err != nil {
			return nil, err
		}
		config.RootCAs = newPool(list)
	}
	if f.Cert != "" {
		own, err := newKeyPair(f.Cert, f.Key).readPair()
		if err != nil {
			return nil, err
		}
		// Certificates would leave out one whose CA the server does not name, and
		// the server would report that none came.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
	}
	return config, nil
}

func readCA(f file) ([]*x509.Certificate, error) {
	text, err := f.readText()
	if err != nil {
		return nil, err
	}
	return f.parseCertificates(text)
}
