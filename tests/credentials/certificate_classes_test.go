package credentials_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net/url"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/transport/handshake"
)

// certificateClasses are certificates that fail the handshake, and those that it accepts
// and that name no caller.
func (f *forger) certificateClasses() []class {
	all := append(f.untrustedCertificates(), f.unfitCertificates()...)
	return append(all, f.namelessCertificates()...)
}

// fails is a class of certificates that end the handshake.
func fails(name string, forge func() *tls.Certificate, want ...string) class {
	return class{name: name, handshakes: want, isOwn: true, forge: func() attempt { return attempt{shown: forge()} }}
}

func (f *forger) untrustedCertificates() []class {
	signAlone := func() *tls.Certificate { // with the name of the CA
		template := f.clientTemplate(func(c *x509.Certificate) { c.Subject = f.ca.cert.Subject })
		made := authority{template, newKey()}.issue(template)
		return &made
	}
	return []class{
		fails("no certificate", func() *tls.Certificate { return nil }, handshake.ReasonNoCertificate),
		fails("another CA of the same name", func() *tls.Certificate {
			made := f.otherCA.issue(f.clientTemplate(func(c *x509.Certificate) { c.Subject.CommonName = "alice" }))
			made.Certificate = append(made.Certificate, pick(f, f.otherCA, f.ca).cert.Raw)
			return &made
		}, handshake.ReasonUnknownAuthority),
		fails("self-signed", signAlone, handshake.ReasonUnknownAuthority),
		fails("signed by a client", func() *tls.Certificate {
			client := f.issueAlice()
			template := f.clientTemplate(func(c *x509.Certificate) { c.Subject.CommonName = "alice" })
			made := authorityOf(client).issue(template)
			made.Certificate = append(made.Certificate, client.Certificate[0])
			return &made
		}, handshake.ReasonUnknownAuthority, handshake.ReasonCertificateInvalid),
		fails("a bit of the certificate", func() *tls.Certificate {
			made := f.issueAlice()
			text := append([]byte(nil), made.Certificate[0]...)
			text[len(text)-1-f.random.IntN(60)] ^= 1 << f.random.IntN(8)
			return &tls.Certificate{Certificate: [][]byte{text}, PrivateKey: made.PrivateKey}
		}, handshake.ReasonUnknownAuthority, handshake.ReasonCertificateInvalid, handshake.ReasonOther),
		fails("without its key", func() *tls.Certificate {
			return &tls.Certificate{Certificate: f.issueAlice().Certificate, PrivateKey: newKey()}
		}, handshake.ReasonOther),
		fails("nonsense as a certificate", func() *tls.Certificate {
			return &tls.Certificate{Certificate: [][]byte{f.randomBytes(1 + f.random.IntN(500))}, PrivateKey: newKey()}
		}, handshake.ReasonOther, handshake.ReasonCertificateInvalid),
	}
}

func (f *forger) unfitCertificates() []class {
	alice := func(change func(*x509.Certificate)) func() *tls.Certificate {
		return func() *tls.Certificate {
			return f.issue(func(c *x509.Certificate) {
				c.Subject.CommonName = "alice"
				change(c)
			})
		}
	}
	return []class{
		fails("expired certificate", alice(func(c *x509.Certificate) {
			c.NotAfter = time.Now().Add(-f.between(time.Minute, 1000*time.Hour))
			c.NotBefore = c.NotAfter.Add(-time.Hour)
		}), handshake.ReasonCertificateExpired),
		fails("certificate not yet valid", alice(func(c *x509.Certificate) {
			c.NotBefore = time.Now().Add(f.between(time.Minute, 20*time.Hour))
		}), handshake.ReasonCertificateExpired),
		fails("for another use", alice(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{
				pick(f, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageCodeSigning, x509.ExtKeyUsageEmailProtection, x509.ExtKeyUsageOCSPSigning),
			}
		}), handshake.ReasonCertificateInvalid),
		fails("critical extension", alice(func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 1 + f.random.IntN(1000)}, Critical: true, Value: f.randomBytes(8)}}
		}), handshake.ReasonCertificateInvalid),
	}
}

// namelessCertificates pass the handshake.
func (f *forger) namelessCertificates() []class {
	unmapped := func(name string, change func(*x509.Certificate)) class {
		return class{
			name: name, reasons: []identity.Reason{identity.CertificateUnmapped}, isOwn: true,
			forge: func() attempt { return attempt{shown: f.issue(change)} },
		}
	}
	return []class{
		unmapped("without names", func(c *x509.Certificate) { c.Subject = pkix.Name{Organization: []string{f.makeName()}} }),
		unmapped("certificate of a CA", func(c *x509.Certificate) {
			c.Subject.CommonName, c.IsCA, c.KeyUsage = "alice", true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
			c.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/admin"}}
		}),
		unmapped("SPIFFE look-alikes", func(c *x509.Certificate) {
			text := pick(f, "spiffe://example.org.evil/ns/workers/a", "spiffe://EXAMPLE.org/ns/workers/a", "spiffe://example.org/ns/workersx/a",
				"spiffe://example.org/ns/workers/", "spiffe://example.org/ns/workers/../../admin", "spiffe://example.org/ns/workers/.",
				"spiffe://u@example.org/admin", "spiffe://example.org:443/admin", "spiffe://example.org/admin?x", "spiffe://example.org/admin#x",
				"spiffe://example.org/%61dmin", "spiffe://example.org/admin%00",
				"https://example.org/admin", "spiffe:example.org/admin", "spiffe://example.org//admin", "SPIFFE:///example.org/admin")
			u, err := url.Parse(text)
			if err != nil {
				panic(err)
			}
			c.URIs = []*url.URL{u}
		}),
		unmapped("common names", func(c *x509.Certificate) {
			c.Subject.CommonName = pick(f, "alice\x00", "alice\x00.evil", "alice ", " alice", "Alice", "ALICE", "аlice", "al\u200bice", "alice\n",
				"alice,CN=x", "old-", "old-\x1b[2J", "old-\x00", "old-"+strings.Repeat("a", 300), "build.example.org", "x.clients.example.org",
				"spiffe://example.org/admin", "*")
		}),
		unmapped("names of hosts", func(c *x509.Certificate) {
			c.DNSNames = []string{pick(f, "*.clients.example.org", "*.example.org", "clients.example.org", "a.b.clients.example.org", "build.example.org.evil.example",
				"xbuild.example.org", "*", f.makeName()+".clients.example.net")}
		}),
		unmapped("1,000 names", func(c *x509.Certificate) {
			for range 1000 {
				c.DNSNames = append(c.DNSNames, f.randomText(8)+".example.net")
			}
		}),
	}
}
