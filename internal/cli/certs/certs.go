package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/tlsfiles"
)

// Result tells what was made. Paths begin with the folder of the request.
type Result struct {
	Written []string `json:"written"` // files, in the order of writing
	Kept    []string `json:"kept"`    // files that were there and are used

	CA     string   `json:"ca"`
	Server KeyPair  `json:"server"`
	Client *KeyPair `json:"client,omitempty"` // the first one of the request
}

// KeyPair has the paths of a certificate and its key.
type KeyPair struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// WriteCertificates makes what is asked for: keys of ECDSA P-256 and certificates of
// the CA in the folder, which is made when there is none. It writes nothing when a
// key would be replaced without Force. The error is an *exit.UsageError, or that of a
// file.
func WriteCertificates(r Request) (Result, error) {
	if err := r.checkRequest(); err != nil {
		return Result{}, err
	}
	names, err := r.listNames()
	if err != nil {
		return Result{}, err
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return Result{}, err
	}
	result := Result{
		Written: []string{}, Kept: []string{}, CA: r.joinPath(certFile(caName)),
		Server: KeyPair{r.joinPath(certFile(serverName)), r.joinPath(keyFile(serverName))},
	}
	if len(r.Clients) > 0 {
		name := clientPrefix + r.Clients[0]
		result.Client = &KeyPair{r.joinPath(certFile(name)), r.joinPath(keyFile(name))}
	}
	ca, err := r.openCA(&result)
	if err != nil {
		return Result{}, err
	}
	if !slices.Contains(names, serverName) {
		result.Kept = append(result.Kept, result.Server.Cert, result.Server.Key)
	}
	for _, name := range names {
		if err := r.issueCertificate(&result, ca, name); err != nil {
			return Result{}, err
		}
	}
	return result, nil
}

// openCA reads the CA of the folder, or makes one.
func (r Request) openCA(result *Result) (tls.Certificate, error) {
	cert, key := r.joinPath(certFile(caName)), r.joinPath(keyFile(caName))
	hasCert, err := r.hasFile(certFile(caName))
	if err != nil {
		return tls.Certificate{}, err
	}
	hasKey, err := r.hasFile(keyFile(caName))
	if err != nil {
		return tls.Certificate{}, err
	}
	if !hasCert && !hasKey {
		return r.makeCA(result)
	}
	const hint = "name another folder with --dir, or remove both files of the CA: all certificates are made anew then"
	ca, err := tlsfiles.ReadPair(cert, key)
	if refused, ok := errors.AsType[*tlsfiles.FileError](err); ok {
		return tls.Certificate{}, exit.Usagef("the CA of the folder can't be used: %v", refused).WithHint(hint)
	}
	switch {
	case err != nil:
		return tls.Certificate{}, err
	case !ca.Leaf.IsCA:
		return tls.Certificate{}, exit.Usagef("%s is not the certificate of a CA", cert).WithHint(hint)
	case r.endTime().After(ca.Leaf.NotAfter):
		return tls.Certificate{}, exit.Usagef("%s is valid until %s, which is too short for %d days",
			cert, ca.Leaf.NotAfter.Format(time.DateOnly), r.Days).WithHint("give a smaller --valid, or " + hint)
	}
	result.Kept = append(result.Kept, cert, key)
	return ca, nil
}

// endTime returns when the certificates cease to be valid.
func (r Request) endTime() time.Time { return r.Now.AddDate(0, 0, r.Days) }

// maxClockDifference is for hosts whose clock is behind.
const maxClockDifference = 5 * time.Minute

func (r Request) makeCA(result *Result) (tls.Certificate, error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "graphd trial CA"},
		NotBefore: r.Now.Add(-maxClockDifference), NotAfter: r.Now.AddDate(0, 0, 2*maxDays),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return r.signAndWrite(result, template, nil, caName)
}

// issueCertificate makes the key and the certificate of the server or a client.
func (r Request) issueCertificate(result *Result, ca tls.Certificate, name string) error {
	template := &x509.Certificate{
		NotBefore: r.Now.Add(-maxClockDifference), NotAfter: r.endTime(),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if client, ok := strings.CutPrefix(name, clientPrefix); ok {
		template.Subject.CommonName = client
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	} else {
		template.Subject.CommonName = "graphd server"
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		for _, host := range r.listHosts() {
			if ip := net.ParseIP(host); ip != nil {
				template.IPAddresses = append(template.IPAddresses, ip)
			} else {
				template.DNSNames = append(template.DNSNames, host)
			}
		}
	}
	_, err := r.signAndWrite(result, template, &ca, name)
	return err
}

// signAndWrite makes a key and a certificate, and writes both; the issuer nil = the
// certificate itself.
func (r Request) signAndWrite(result *Result, template *x509.Certificate, issuer *tls.Certificate, name string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key: %w", err)
	}
	made := tls.Certificate{PrivateKey: key, Leaf: template}
	if issuer == nil {
		issuer = &made
	}
	text, err := x509.CreateCertificate(rand.Reader, template, issuer.Leaf, key.Public(), issuer.PrivateKey)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate: %w", err)
	}
	if made.Leaf, err = x509.ParseCertificate(text); err != nil {
		return tls.Certificate{}, fmt.Errorf("read a new certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("write a key: %w", err)
	}
	if err := r.writeFile(result, keyFile(name), &pem.Block{Type: "PRIVATE KEY", Bytes: secret}, 0o600); err != nil {
		return tls.Certificate{}, err
	}
	return made, r.writeFile(result, certFile(name), &pem.Block{Type: "CERTIFICATE", Bytes: text}, 0o644)
}

// writeFile writes a file as a whole, so that a server never reads a part of it.
func (r Request) writeFile(result *Result, name string, block *pem.Block, mode os.FileMode) error {
	part, err := os.CreateTemp(r.Dir, "."+name+"-*") // of mode 0600
	if err != nil {
		return err
	}
	err = errors.Join(pem.Encode(part, block), part.Chmod(mode), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), r.joinPath(name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	result.Written = append(result.Written, r.joinPath(name))
	return nil
}
