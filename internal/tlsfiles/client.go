package tlsfiles

import (
	"crypto/tls"
	"time"

	"go.uber.org/zap"
)

// ClientFiles are the files of a client, each of which may be "".
type ClientFiles struct {
	CA   string // of servers; "" = the CAs of the system
	Cert string // the client's own; "" = none is presented
	Key  string // of Cert
	// OptionPrefix precedes the names of the options that errors have, like "endpoint-"
	// of --endpoint-tls-ca; "" = --tls-ca.
	OptionPrefix string
}

// Client is the configuration of a client, which follows its files. Its methods may be
// called at the same time.
type Client struct {
	ca       file
	pair     keyPair
	follower follower
}

// NewClientConfig reads the files of a client and returns its configuration, for
// TLS 1.2 and newer. The error is a *FileError.
func NewClientConfig(f ClientFiles) (*tls.Config, error) {
	c, err := OpenClient(f, zap.NewNop(), time.Now)
	if err != nil {
		return nil, err
	}
	return c.follower.config.Load(), nil
}

// OpenClient reads the files of a client. now is the clock. The error is a *FileError.
// Certificates that have expired are used, with a warning in the log: servers refuse
// them.
func OpenClient(f ClientFiles, log *zap.Logger, now func() time.Time) (*Client, error) {
	c := &Client{
		ca: file{optionOf(f.OptionPrefix, optionCA), f.CA, wantCA}, pair: newKeyPair(f.OptionPrefix, f.Cert, f.Key),
		follower: follower{log: log, now: now},
	}
	c.follower.files = []file{c.ca, c.pair.cert, c.pair.key}
	if err := c.follower.openFiles(c.parseTexts); err != nil {
		return nil, err
	}
	c.follower.warnOfReaders(c.pair.key)
	return c, nil
}

// CurrentConfig returns the configuration of the newest files that could be used, for a
// connection that begins now, for TLS 1.2 and newer. The caller clones it to change it.
func (c *Client) CurrentConfig() *tls.Config { return c.follower.currentConfig() }

// parseTexts makes a configuration of the texts of the CAs, the certificate and its key.
// The error is a *FileError.
func (c *Client) parseTexts(texts [][]byte) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.ca.path != "" {
		list, err := c.ca.parseCertificates(texts[0])
		if err != nil {
			return nil, err
		}
		for _, ca := range list {
			c.follower.warnOfValidity(c.ca, ca)
		}
		config.RootCAs = newPool(list)
	}
	if c.pair.cert.path != "" {
		own, err := c.pair.parsePair(texts[1], texts[2])
		if err != nil {
			return nil, err
		}
		c.follower.warnOfValidity(c.pair.cert, own.Leaf)
		// Certificates would leave out one whose CA the server does not name, and
		// the server would report that none came.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
	}
	return config, nil
}
