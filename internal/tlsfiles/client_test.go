package tlsfiles_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/tlsfiles"
)

// A client uses new files for its next connection: its own certificate, and the CAs that
// it trusts. Files that can't be used leave those before in use.
func TestAClientTakesUpNewFiles(t *testing.T) {
	ca, next := newAuthority(t, "ca"), newAuthority(t, "next")
	hour := time.Now().Add(time.Hour)
	cert, key := ca.issue(t, "server", hour)
	s := startServer(t, cert, key, append(append([]byte(nil), ca.text...), next.text...))
	own, ownKey := ca.issue(t, "first", hour)
	dir := t.TempDir()
	files := tlsfiles.ClientFiles{
		CA: writeFile(t, dir, "ca.pem", ca.text), Cert: writeFile(t, dir, "own.pem", own), Key: writeFile(t, dir, "own-key.pem", ownKey),
		OptionPrefix: "endpoint-",
	}
	core, log := observer.New(zap.InfoLevel)
	now := time.Now()
	c, err := tlsfiles.OpenClient(files, zap.New(core), func() time.Time { return now })
	require.NoError(t, err)
	present := func() string {
		certificate, err := c.CurrentConfig().GetClientCertificate(nil)
		require.NoError(t, err)
		_, err = s.dial(t, c.CurrentConfig())
		require.NoError(t, err)
		return certificate.Leaf.Subject.CommonName
	}
	require.Equal(t, "first", present())

	own, ownKey = next.issue(t, "second", hour)
	replaceFile(t, files.Cert, own)
	now = now.Add(time.Second)
	require.Equal(t, "first", present(), "the key is not there yet")
	told := log.FilterMessageSnippet("can't be used").All()
	require.Len(t, told, 1)
	require.Contains(t, told[0].ContextMap()["error"], "--endpoint-tls-key "+files.Key)
	replaceFile(t, files.Key, ownKey)
	require.Equal(t, "first", present(), "the files are looked at once a second")
	now = now.Add(time.Second)
	require.Equal(t, "second", present())

	replaceFile(t, files.CA, next.text)
	now = now.Add(time.Second)
	_, err = s.dial(t, c.CurrentConfig())
	require.ErrorContains(t, err, "unknown authority")
}
