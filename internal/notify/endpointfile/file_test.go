package endpointfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/egress"
	"github.com/graphd-dev/graphd/internal/notify/endpointfile"
	"github.com/graphd-dev/graphd/internal/trail"
)

const key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func parse(t *testing.T, text string, allow ...string) ([]endpointfile.Endpoint, error) {
	t.Helper()
	policy, err := egress.NewPolicy(allow)
	require.NoError(t, err)
	return endpointfile.Parse("webhooks.yaml", []byte(text), endpointfile.Sources{
		Allowed: policy, Option: "--webhook-allow",
		ReadFile: func(path string) ([]byte, error) {
			if path == "/run/secrets/mail" {
				return []byte(key + "\n"), nil
			}
			return nil, errors.New("no such file")
		},
		Getenv: func(name string) string { return map[string]string{"MAIL_SECRET": key}[name] },
	})
}

func TestParse(t *testing.T) {
	list, err := parse(t, `endpoints:
- name: mail
  url: https://hooks.example.com/graphd?x=1
  secrets: [{ file: /run/secrets/mail }, { env: MAIL_SECRET }]
  tenant: acme
  graphs: [refund]
  groups: [finance]
  kinds: [asked, escalated]
- name: chat
  url: http://hooks.internal:8080
  secrets: [{ value: `+key+` }]
`, "hooks.internal:8080")
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "https://hooks.example.com/graphd?x=1", list[0].URL.String())
	require.Len(t, list[0].Secrets, 2)
	require.Equal(t, "acme", list[0].Tenant)
	require.Equal(t, []string{"refund"}, list[0].Graphs)
	require.Equal(t, []string{"finance"}, list[0].Groups)
	require.Equal(t, []trail.Kind{trail.Asked, trail.Escalated}, list[0].Kinds)
	require.Error(t, list[0].CheckAddress("tcp", "10.0.0.1:443"))
	require.NoError(t, list[1].CheckAddress("tcp", "10.0.0.1:8080"))
	require.Empty(t, list[1].Kinds)
}

func TestErrorsNameTheEntryAndTheField(t *testing.T) {
	entry := func(fields string) string { return "endpoints:\n- name: mail\n" + fields }
	const url, secrets = "  url: https://hooks.example.com\n", "  secrets: [{ value: " + key + " }]\n"
	for text, want := range map[string]string{
		"":                                 "webhooks.yaml:1: endpoints has 0 entries: want 1 to 32",
		entry(url + secrets + "  to: x\n"): "webhooks.yaml:5: to is an unknown field: want one of name, url, secrets, tenant, graphs, groups, kinds",
		"endpoints:\n- name: Mail\n" + url + secrets:          `webhooks.yaml:2: endpoints[0].name is "Mail": want 1 to 64 of a-z 0-9 _ -, like mail`,
		entry(url+secrets) + "- name: mail\n" + url + secrets: `webhooks.yaml:5: endpoints[1].name "mail" is there twice: want a name of its own`,
		entry(secrets):                             "webhooks.yaml:2: endpoints[0].url is missing: want https://HOST/PATH",
		entry("  url: ftp://a\n" + secrets):        `webhooks.yaml:3: endpoints[0].url has the scheme "ftp": want https://HOST/PATH`,
		entry("  url: https://u:p@a/\n" + secrets): "webhooks.yaml:3: endpoints[0].url has a user: want https://HOST/PATH",
		entry("  url: http://hooks.example.com\n" + secrets): "webhooks.yaml:3: endpoints[0].url would send in plain text: " +
			"want https://, or --webhook-allow hooks.example.com:80 for a host in your network",
		entry("  url: https://127.0.0.1:9/x\n" + secrets): `webhooks.yaml:3: endpoints[0].url is refused: endpoint "127.0.0.1:9" leads to "127.0.0.1:9", ` +
			"which is not allowed; the server would allow it with --webhook-allow 127.0.0.1:9",
		entry(url): "webhooks.yaml:2: endpoints[0].secrets has 0 entries: want one, or two while they are exchanged",
		entry(url + "  secrets: [{ value: " + key + ", env: X }]\n"): "webhooks.yaml:4: endpoints[0].secrets[0] has not exactly one of value, file and env: want whsec_",
		entry(url + "  secrets: [{ value: topsecret }]\n"):           "webhooks.yaml:4: endpoints[0].secrets[0].value does not begin with whsec_: want whsec_",
		entry(url + "  secrets: [{ file: /x }]\n"):                   "webhooks.yaml:4: endpoints[0].secrets[0].file can't be read: no such file: want whsec_",
		entry(url + "  secrets: [{ env: X }]\n"):                     `webhooks.yaml:4: endpoints[0].secrets[0].env names the variable "X", which is empty: want whsec_`,
		entry(url + secrets + "  tenant: a@b\n"):                     `webhooks.yaml:5: endpoints[0].tenant is "a@b": want 1 to 64 of A-Z a-z 0-9 _ . : -`,
		entry(url + secrets + "  kinds: [asked, open]\n"):            `webhooks.yaml:5: endpoints[0].kinds[1] is "open": want one of asked, voted`,
		entry(url + secrets + "  groups: ['']\n"):                    "webhooks.yaml:5: endpoints[0].groups[0] is empty: want a name",
	} {
		_, err := parse(t, text)
		require.Error(t, err, text)
		require.True(t, strings.HasPrefix(err.Error(), want), "%s\nis not\n%s", err, want)
		require.NotContains(t, err.Error(), "topsecret")
		require.NotContains(t, err.Error(), "u:p@")
	}
}
