// Package credential makes what a server needs to know its callers, and what the
// callers show: certificates, tokens and API keys.
package credential

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	grpccredentials "google.golang.org/grpc/credentials"
)

const (
	issuer   = "https://issuer.bench.example"
	audience = "graphd"
	keyID    = "bench"
	// validity is longer than any benchmark.
	validity = 24 * time.Hour
	// coordinateBytes is the size of a coordinate and of a half of a signature on P-256.
	coordinateBytes = 32
)

// Set are the files of servers, and what their clients show.
type Set struct {
	// Token is a JWT of the issuer, signed with ES256.
	Token string

	graphd, dir string
	client      *tls.Config
}

// MakeSet makes a CA, a certificate of a server and one of a client, an issuer and a
// token in a folder. The certificates are made by graphd.
func MakeSet(ctx context.Context, graphd, dir string) (*Set, error) {
	s := &Set{graphd: graphd, dir: dir}
	if _, err := s.callGraphd(ctx, "certs", "--dir", s.joinPath("certs"), "--client", "bench"); err != nil {
		return nil, err
	}
	own, err := tls.LoadX509KeyPair(s.joinPath("certs", "client-bench.pem"), s.joinPath("certs", "client-bench-key.pem"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(s.joinPath("certs", "ca.pem"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("credential: the CA is no certificate")
	}
	s.client = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13}
	if err := s.makeToken(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Set) joinPath(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}

// callGraphd returns what a command of graphd prints.
func (s *Set) callGraphd(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, s.graphd, arguments...) //nolint:gosec // who runs the benchmark names it
	command.Env = append(os.Environ(), "GRAPHD_CONFIG=")
	var said bytes.Buffer
	command.Stderr = &said
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("graphd %s: %w: %s", arguments[0], err, said.String())
	}
	return strings.TrimSpace(string(text)), nil
}

// makeToken writes the files of an issuer, and signs a token.
func (s *Set) makeToken() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		return err
	}
	x, y := point[1:1+coordinateBytes], point[1+coordinateBytes:]
	keys, err := json.Marshal(map[string]any{"keys": []map[string]string{{
		"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": keyID, "x": encodeBase64(x), "y": encodeBase64(y),
	}}})
	if err != nil {
		return err
	}
	issuers := fmt.Sprintf("issuers:\n- issuer: %s\n  audiences: [%s]\n  jwks_file: %s\n  claims: { roles: roles }\n",
		issuer, audience, s.joinPath("jwks.json"))
	if err := errors.Join(s.writeFile("jwks.json", string(keys)), s.writeFile("issuers.yaml", issuers)); err != nil {
		return err
	}
	s.Token, err = signToken(key)
	return err
}

func (s *Set) writeFile(name, text string) error {
	return os.WriteFile(s.joinPath(name), []byte(text), 0o600)
}

// signToken makes a token like those of common issuers.
func signToken(key *ecdsa.PrivateKey) (string, error) {
	header, err := json.Marshal(map[string]string{"alg": "ES256", "typ": "JWT", "kid": keyID})
	if err != nil {
		return "", err
	}
	now := time.Now()
	claims, err := json.Marshal(map[string]any{
		"iss": issuer, "aud": []string{audience}, "sub": "bench@issuer.bench.example", "iat": now.Unix(), "nbf": now.Unix(),
		"exp": now.Add(validity).Unix(), "jti": rand.Text(), "roles": listRoles(),
	})
	if err != nil {
		return "", err
	}
	text := encodeBase64(header) + "." + encodeBase64(claims)
	sum := sha256.Sum256([]byte(text))
	r, z, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return "", err
	}
	signature := append(r.FillBytes(make([]byte, coordinateBytes)), z.FillBytes(make([]byte, coordinateBytes))...)
	return text + "." + encodeBase64(signature), nil
}

func encodeBase64(text []byte) string { return base64.RawURLEncoding.EncodeToString(text) }

// roles are those that the workloads need, and that of who brings their graphs.
func listRoles() []string { return []string{"starter", "answerer", "author"} }

// PutGraphs puts the graphs of a folder for the tenant of a token.
func (s *Set) PutGraphs(ctx context.Context, address, token, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if _, err := s.callGraphd(ctx, "graph", "put", file, "--server", address, "--token", token); err != nil {
			return err
		}
	}
	return nil
}

// Caller is who calls with an API key.
type Caller struct {
	Name, Tenant  string
	Groups, Roles []string
}

// MakeKey adds an API key to a file of keys, and returns its token. A caller without roles has
// those that the workloads need.
func (s *Set) MakeKey(ctx context.Context, file string, c Caller) (token string, err error) {
	arguments := []string{"keys", "create", "--file", s.joinPath(file), "--name", c.Name, "--tenant", c.Tenant, "--expires", validity.String()}
	roles := c.Roles
	if len(roles) == 0 {
		roles = listRoles()
	}
	for _, role := range roles {
		arguments = append(arguments, "--role", role)
	}
	for _, group := range c.Groups {
		arguments = append(arguments, "--group", group)
	}
	return s.callGraphd(ctx, arguments...)
}

// KeyOptions are those of a server that knows callers by a file of keys.
func (s *Set) KeyOptions(file string) []string { return []string{"--api-keys", s.joinPath(file)} }

// TokenOptions are those of a server that knows callers by tokens.
func (s *Set) TokenOptions() []string { return []string{"--token-issuers", s.joinPath("issuers.yaml")} }

// TLSOptions are those of a server that wants a certificate of its clients.
func (s *Set) TLSOptions() []string {
	return []string{
		"--tls-cert", s.joinPath("certs", "server.pem"), "--tls-key", s.joinPath("certs", "server-key.pem"), "--tls-client-ca", s.joinPath("certs", "ca.pem"),
	}
}

// QuotaOptions write the limits of tenants, and are those of a server that has them.
func (s *Set) QuotaOptions(limits string) ([]string, error) {
	return []string{"--quotas", s.joinPath("quotas.yaml")}, s.writeFile("quotas.yaml", limits)
}

// ShowCertificate makes connections that show the certificate of the client.
func (s *Set) ShowCertificate() grpc.DialOption {
	return grpc.WithTransportCredentials(grpccredentials.NewTLS(s.client.Clone()))
}

// bearer has every call of a connection carry a token.
type bearer map[string]string

// SendToken makes connections whose calls carry a token.
func SendToken(token string) grpc.DialOption {
	return grpc.WithPerRPCCredentials(bearer{"authorization": "Bearer " + token})
}

// GetRequestMetadata returns the header.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return b, nil
}

// RequireTransportSecurity says that a token may go over plain text: all are on this machine.
func (bearer) RequireTransportSecurity() bool { return false }
