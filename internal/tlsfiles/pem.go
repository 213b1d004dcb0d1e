package tlsfiles

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Options that name the files, as messages have them.
const (
	optionCert     = "--tls-cert"
	optionKey      = "--tls-key"
	optionClientCA = "--tls-client-ca"
	optionCA       = "--tls-ca"
)

// optionOf returns the name of an option whose name has a prefix, like
// --endpoint-tls-ca.
func optionOf(prefix, option string) string { return "--" + prefix + strings.TrimPrefix(option, "--") }

// FileError tells why a file can't be used. No field has contents of the file.
type FileError struct {
	Option  string // that names the file, like --tls-cert; "" = none
	Path    string
	Problem string
	Want    string // what the file must be
}

// Error returns the option, the path and the problem.
func (e *FileError) Error() string {
	return strings.TrimPrefix(fmt.Sprintf("%s %s: %s", e.Option, e.Path, e.Problem), " ")
}

// What files must be.
const (
	wantCert = "want a PEM file with the certificate first, and those of intermediate CAs after it"
	wantKey  = "want a PEM file with the private key of the certificate, not encrypted"
	wantCA   = "want a PEM file with certificates of CAs"
)

// file is a file that an option names.
type file struct{ option, path, want string }

func (f file) newError(format string, args ...any) *FileError {
	return &FileError{Option: f.option, Path: f.path, Problem: fmt.Sprintf(format, args...), Want: f.want}
}

// maxFileBytes is many times the size of a bundle of all public CAs.
const maxFileBytes = 4 << 20

// readText reads a file. The error is a *FileError.
func (f file) readText() ([]byte, error) {
	opened, err := os.Open(f.path)
	if err != nil {
		return nil, f.newError("%v", withoutPath(err))
	}
	text, err := io.ReadAll(io.LimitReader(opened, maxFileBytes+1))
	_ = opened.Close() // nothing was written
	switch {
	case err != nil:
		return nil, f.newError("%v", withoutPath(err))
	case len(text) > maxFileBytes:
		return nil, f.newError("the file has more than %d MiB", maxFileBytes>>20)
	}
	return text, nil
}

// withoutPath returns the cause of an error that repeats the path.
func withoutPath(err error) error {
	if located, ok := errors.AsType[*fs.PathError](err); ok {
		return located.Err
	}
	return err
}

// parseCertificates returns the certificates of a PEM text, one at least. The error
// is a *FileError.
func (f file) parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	var others []string // types of other blocks
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			others = append(others, block.Type)
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, f.newError("certificate %d of the file can't be read", len(list)+1)
		}
		list = append(list, certificate)
	}
	switch {
	case len(list) > 0:
		return list, nil
	case len(others) == 0:
		return nil, f.newError("the file is not PEM")
	case isKeyType(others[0]):
		return nil, f.newError("the file has a private key and no certificate")
	}
	return nil, f.newError("the file has no certificate")
}

// parseAuthorities returns the certificates of CAs in a PEM text, one at least. The error is
// a *FileError.
func (f file) parseAuthorities(text []byte) ([]*x509.Certificate, error) {
	list, err := f.parseCertificates(text)
	if err != nil {
		return nil, err
	}
	for i, certificate := range list {
		const oldestWithExtensions = 3
		isCA := certificate.IsCA || certificate.Version < oldestWithExtensions
		mayNotSign := certificate.KeyUsage != 0 && certificate.KeyUsage&x509.KeyUsageCertSign == 0
		switch subject := certificate.Subject.String(); {
		case !isCA:
			return nil, f.newError("certificate %d of the file, of %q, is not that of a CA", i+1, subject)
		case mayNotSign:
			return nil, f.newError("certificate %d of the file, of %q, is not for signing certificates", i+1, subject)
		}
	}
	return list, nil
}

func isKeyType(blockType string) bool { return strings.HasSuffix(blockType, "PRIVATE KEY") }

// parseKey returns the first private key of a PEM text. The error is a *FileError.
func (f file) parseKey(text []byte) (crypto.Signer, error) {
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, f.newError("the file is not PEM")
	}
	for block != nil && !isKeyType(block.Type) {
		block, rest = pem.Decode(rest)
	}
	switch {
	case block == nil:
		return nil, f.newError("the file has no private key")
	case block.Type == "ENCRYPTED PRIVATE KEY", strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
		return nil, f.newError("the private key is encrypted")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		key, err = x509.ParseECPrivateKey(block.Bytes)
	}
	if err != nil {
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	signer, isSigner := key.(crypto.Signer)
	if err != nil || !isSigner {
		return nil, f.newError("the private key can't be read")
	}
	return signer, nil
}

// keyPair is a certificate with its key: the files, and what is read from them.
type keyPair struct{ cert, key file }

func newKeyPair(prefix, cert, key string) keyPair {
	return keyPair{file{optionOf(prefix, optionCert), cert, wantCert}, file{optionOf(prefix, optionKey), key, wantKey}}
}

// publicKey is a key of every kind that crypto has.
type publicKey interface {
	Equal(other crypto.PublicKey) bool
}

// parsePair makes a certificate of two PEM texts. The error is a *FileError.
func (k keyPair) parsePair(certText, keyText []byte) (tls.Certificate, error) {
	chain, err := k.cert.parseCertificates(certText)
	if err != nil {
		return tls.Certificate{}, err
	}
	signer, err := k.key.parseKey(keyText)
	if err != nil {
		return tls.Certificate{}, err
	}
	public, isKnown := signer.Public().(publicKey)
	if !isKnown || !public.Equal(chain[0].PublicKey) {
		return tls.Certificate{}, k.key.newError("the key does not fit the first certificate of %s", k.cert.path)
	}
	pair := tls.Certificate{PrivateKey: signer, Leaf: chain[0]}
	for _, certificate := range chain {
		pair.Certificate = append(pair.Certificate, certificate.Raw)
	}
	return pair, nil
}

// readPair reads a certificate and its key. The error is a *FileError.
func (k keyPair) readPair() (tls.Certificate, error) {
	certText, err := k.cert.readText()
	if err != nil {
		return tls.Certificate{}, err
	}
	keyText, err := k.key.readText()
	if err != nil {
		return tls.Certificate{}, err
	}
	return k.parsePair(certText, keyText)
}

// ReadPair reads a certificate and its key. The error is a *FileError, whose option
// is "" since no option names the files.
func ReadPair(cert, key string) (tls.Certificate, error) {
	return keyPair{file{path: cert, want: wantCert}, file{path: key, want: wantKey}}.readPair()
}

// newPool makes a pool of certificates.
func newPool(list []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, certificate := range list {
		pool.AddCert(certificate)
	}
	return pool
}
