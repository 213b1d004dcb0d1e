package handshake

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"

	"github.com/graphd-dev/graphd/internal/tlsalert"
)

// The reasons of handshakes that failed. They are labels of a metric.
const (
	ReasonNoCertificate      = "no_certificate"      // the client has shown none
	ReasonUnknownAuthority   = "unknown_authority"   // no CA of --tls-client-ca has signed the client's
	ReasonCertificateExpired = "certificate_expired" // the client's, or it is not valid yet
	ReasonCertificateInvalid = "certificate_invalid" // the client's, in another way
	ReasonNotTLS             = "not_tls"             // the client speaks plain text, or another protocol
	ReasonRefusedByClient    = "refused_by_client"   // the client does not accept the server's certificate, or its TLS
	ReasonClosed             = "closed"              // the client has left, as probes of ports do
	ReasonTimeout            = "timeout"             // the client has sent too little in time
	ReasonOther              = "other"               // as with a TLS version or a cipher that both don't have
)

// Reasons lists all reasons.
func Reasons() []string {
	return []string{
		ReasonNoCertificate, ReasonUnknownAuthority, ReasonCertificateExpired, ReasonCertificateInvalid, ReasonNotTLS,
		ReasonRefusedByClient, ReasonClosed, ReasonTimeout, ReasonOther,
	}
}

// ClassifyError returns the reason of a handshake's error.
func ClassifyError(err error) string {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return ReasonNotTLS
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return classifyCertificateError(e.Err)
	}
	if _, ok := tlsalert.Describe(err); ok {
		return ReasonRefusedByClient
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ReasonTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), isReset(err):
		return ReasonClosed
	case strings.Contains(err.Error(), "didn't provide a certificate"): // crypto/tls has no type for it
		return ReasonNoCertificate
	}
	return ReasonOther
}

// isReset reports whether the connection broke.
func isReset(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && (e.Op == "read" || e.Op == "write")
}

// classifyCertificateError returns the reason for which a certificate of a client is
// refused.
func classifyCertificateError(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return ReasonUnknownAuthority
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return ReasonCertificateExpired
	}
	return ReasonCertificateInvalid
}
