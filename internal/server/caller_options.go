package server

import (
	"context"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/identity/certificate"
	"github.com/graphd-dev/graphd/internal/identity/jwt"
)

// CallerOptions are the files that say who may call. Without any, callers are not
// known.
type CallerOptions struct {
	APIKeys          string
	TokenIssuers     string
	CertificateRules string
	// Insecure permits to serve other machines without TLS or without knowing callers.
	Insecure bool
	// IssuerTransport makes requests to issuers. nil = one of its own; it is no option of
	// the command.
	IssuerTransport http.RoundTripper
}

// RegisterFlags registers the options.
func (o *CallerOptions) RegisterFlags(f *pflag.FlagSet) {
	f.StringVar(&o.APIKeys, "api-keys", "", "file with the hashes of API keys: calls need credentials; read again when it changes")
	f.StringVar(&o.TokenIssuers, "token-issuers", "",
		"YAML file with the issuers whose JWTs callers may have, and at one of which people may sign in: calls need credentials; read again when it changes")
	f.StringVar(&o.CertificateRules, "certificate-rules", "",
		"YAML file with rules that name the callers of client certificates, with --tls-client-ca: calls need credentials; read again when it changes")
	f.BoolVar(&o.Insecure, "insecure", false, "serve other machines than this one without TLS, or without knowing who calls")
}

// validateCallers returns an *exit.UsageError for files that don't suffice.
func (o *Options) validateCallers() error {
	if o.CertificateRules != "" && o.TLSClientCA == "" {
		return exit.Usagef("--certificate-rules needs --tls-client-ca").
			WithHint("give --tls-client-ca FILE with the CAs of clients, besides --tls-cert and --tls-key")
	}
	return nil
}

// KnowsCallers reports whether an option says who may call.
func (o *CallerOptions) KnowsCallers() bool {
	return o.APIKeys != "" || o.TokenIssuers != "" || o.CertificateRules != ""
}

// callerFileInterval is how often the files of callers are read again.
const callerFileInterval = 5 * time.Second

// callerHint is the hint for a file of callers that can't be used.
const callerHint = "correct the file; docs/security.md describes it"

// listRoles returns the names of the roles.
func listRoles() []string {
	var all []string
	for _, row := range access.Roles() {
		all = append(all, string(row.Role))
	}
	return all
}

// callerFiles tell who calls, by files that are read again when they change.
type callerFiles struct {
	identity.Chain

	tokens    *jwt.Follower               // nil = no issuer is accepted
	followers []func(ctx context.Context) // each follows a file until ctx ends
}

// openCallerFiles reads the files of callers, nil without any. The error is an
// *exit.UsageError.
func (o *CallerOptions) openCallerFiles(every time.Duration, log *zap.Logger) (*callerFiles, error) {
	if !o.KnowsCallers() {
		return nil, nil
	}
	report := func(err error) { log.Error("what says who calls can't be renewed", zap.Error(err)) }
	tell := func(path string) func() {
		return func() { log.Info("what says who calls has changed and is in use", zap.String("file", path)) }
	}
	c := &callerFiles{}
	if o.APIKeys != "" {
		keys, err := apikey.New(apikey.Options{Path: o.APIKeys, Report: report})
		if err != nil {
			return nil, exit.Usagef("--api-keys: %v", err).WithHint(callerHint)
		}
		keys.ReportChanges(tell(o.APIKeys))
		c.APIKeys = keys
		c.followers = append(c.followers, func(ctx context.Context) { keys.WatchFile(ctx, every) })
	}
	if o.TokenIssuers != "" {
		tokens, err := jwt.OpenFile(o.TokenIssuers, jwt.Options{Transport: o.IssuerTransport, Report: report})
		if err != nil {
			return nil, exit.Usagef("--token-issuers: %v", err).WithHint(callerHint)
		}
		tokens.ReportChanges(tell(o.TokenIssuers))
		c.JWTs, c.tokens = tokens, tokens
		c.followers = append(c.followers, func(ctx context.Context) { tokens.Run(ctx, every) })
	}
	if o.CertificateRules != "" {
		rules, err := certificate.OpenFile(o.CertificateRules, listRoles(), report)
		if err != nil {
			return nil, exit.Usagef("--certificate-rules: %v", err).WithHint(callerHint)
		}
		rules.ReportChanges(tell(o.CertificateRules))
		c.Certificates = rules
		c.followers = append(c.followers, func(ctx context.Context) { rules.WatchFile(ctx, every) })
	}
	return c, nil
}
