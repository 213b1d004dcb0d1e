package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/visible"
)

// Tokens verifies the ID tokens of issuers, by the rules that hold for all their tokens. The error
// is an *identity.Error, or the cause of ctx.
type Tokens interface {
	VerifySignIn(ctx context.Context, token, issuer, client string) (identity.SignIn, error)
}

// ProviderOptions say at whom people sign in. All fields but Secret must be set.
type ProviderOptions struct {
	// Issuer is the URL of the issuer, whose metadata name its endpoints.
	Issuer string
	// Client is the id of this server at the issuer, Secret its secret; "" = it has none.
	Client string
	Secret string
	Scopes []string
	// RedirectURL is that of PathCallback.
	RedirectURL string
	Tokens      Tokens
	// HTTP makes requests to the issuer, which it bounds.
	HTTP *http.Client
	// IsSafeURL reports whether requests to a URL reach its host alone.
	IsSafeURL func(string) bool
	Now       func() time.Time
}

// Provider is an issuer at whom people sign in. Its methods may be called at the same time.
type Provider struct {
	opts ProviderOptions

	turn     chan struct{} // has a value while the metadata are looked at or fetched
	config   *oauth2.Config
	fetched  time.Time // when there was a fetch, with or without success
	fetchErr error
}

// NewProvider makes a Provider. Nothing is fetched until a person signs in.
func NewProvider(o ProviderOptions) *Provider {
	return &Provider{opts: o, turn: make(chan struct{}, 1)}
}

const (
	metadataTime      = time.Hour       // after which the metadata are fetched again
	metadataRetryTime = 5 * time.Second // after a fetch that has failed
)

// name returns what people call the issuer.
func (p *Provider) name() string {
	at, err := url.Parse(p.opts.Issuer)
	if err != nil {
		return p.opts.Issuer
	}
	return at.Host
}

// loadConfig returns the flow with the endpoints of the issuer. Metadata from before stay in use when
// there are no new ones.
func (p *Provider) loadConfig(ctx context.Context) (*oauth2.Config, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	age := p.opts.Now().Sub(p.fetched)
	if p.config != nil && p.fetchErr == nil && age < metadataTime || p.fetchErr != nil && age < metadataRetryTime {
		return p.chooseConfig(p.fetchErr)
	}
	config, err := p.fetchConfig(ctx)
	p.fetched, p.fetchErr = p.opts.Now(), err
	if err == nil {
		p.config = config
	}
	return p.chooseConfig(err)
}

// chooseConfig returns the newest flow, or the error where there was never one.
func (p *Provider) chooseConfig(err error) (*oauth2.Config, error) {
	if p.config != nil {
		return p.config, nil
	}
	return nil, err
}

// fetchConfig fetches the metadata of the issuer.
func (p *Provider) fetchConfig(ctx context.Context) (*oauth2.Config, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), metadataRetryTime) // it is for others as well
	defer cancel()
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.opts.HTTP), p.opts.Issuer)
	if err != nil {
		return nil, err
	}
	var metadata struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&metadata); err != nil {
		return nil, err
	}
	at := found.Endpoint()
	if !p.opts.IsSafeURL(at.TokenURL) || !isPageURL(at.AuthURL, p.opts.IsSafeURL) {
		return nil, errors.New("an endpoint in the metadata of the issuer is no safe URL")
	}
	at.AuthStyle = oauth2.AuthStyleInHeader // the default of OpenID Connect; trying out would use a code twice
	if p.opts.Secret == "" || len(metadata.Methods) > 0 && !slices.Contains(metadata.Methods, "client_secret_basic") {
		at.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: p.opts.Client, ClientSecret: p.opts.Secret, Endpoint: at, RedirectURL: p.opts.RedirectURL, Scopes: p.opts.Scopes,
	}, nil
}

// isPageURL reports whether browsers may be sent to a URL, which may have a query.
func isPageURL(text string, isSafe func(string) bool) bool {
	at, err := url.Parse(text)
	if err != nil {
		return false
	}
	at.RawQuery = ""
	return isSafe(at.String())
}

// exchangeCode returns the person of a code.
func (p *Provider) exchangeCode(ctx context.Context, code, verifier string) (identity.SignIn, error) {
	flow, err := p.loadConfig(ctx)
	if err != nil {
		return identity.SignIn{}, err
	}
	answer, err := flow.Exchange(context.WithValue(ctx, oauth2.HTTPClient, p.opts.HTTP), code, oauth2.VerifierOption(verifier))
	if err != nil {
		return identity.SignIn{}, err
	}
	token, ok := answer.Extra("id_token").(string)
	if !ok {
		return identity.SignIn{}, errors.New("the answer of the issuer has no ID token")
	}
	return p.opts.Tokens.VerifySignIn(ctx, token, p.opts.Issuer, p.opts.Client)
}

// describeCause returns the text of an error for the log. The answer of an issuer may repeat what
// it was sent, so that of it only the code of its error is shown.
func describeCause(err error) string {
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		status := 0
		if answer.Response != nil {
			status = answer.Response.StatusCode
		}
		return fmt.Sprintf("the issuer answers %d with the error %q", status, answer.ErrorCode)
	}
	return err.Error()
}

const maxLoggedBytes = 300

// shortenText returns a text of others for the log.
func shortenText(text string) string { return visible.Brief(text, maxLoggedBytes) }
