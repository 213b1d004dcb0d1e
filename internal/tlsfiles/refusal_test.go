package tlsfiles_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/tlsfiles"
)

func replaceFile(t *testing.T, path string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", text, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

func removeFile(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.Remove(path))
}

func encodeBlock(blockType string, bytes []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: bytes})
}

// Every file that can't be used is refused at the start, with an error that names
// it and its problem.
func TestUnusableFilesAreRefused(t *testing.T) {
	ca := newAuthority(t, "ca")
	cert, key := ca.issue(t, "server", time.Now().Add(time.Hour))
	_, otherKey := ca.issue(t, "other", time.Now().Add(time.Hour))
	usage := newAuthority(t, "ca without a usage", x509.KeyUsageDigitalSignature)
	dir := t.TempDir()
	good := tlsfiles.ServerFiles{Cert: writeFile(t, dir, "cert", cert), Key: writeFile(t, dir, "key", key), ClientCA: writeFile(t, dir, "ca", ca.text)}
	for name, test := range map[string]struct {
		option string
		text   []byte // nil = no file
		says   string
	}{
		"no certificate file":   {option: "--tls-cert", says: "no such file"},
		"empty certificate":     {option: "--tls-cert", text: []byte{}, says: "not PEM"},
		"DER":                   {option: "--tls-cert", text: ca.certificate.Raw, says: "not PEM"},
		"key for certificate":   {option: "--tls-cert", text: key, says: "a private key and no certificate"},
		"request":               {option: "--tls-cert", text: encodeBlock("CERTIFICATE REQUEST", nil), says: "no certificate"},
		"broken certificate":    {option: "--tls-cert", text: encodeBlock("CERTIFICATE", []byte("hush")), says: "certificate 1 of the file can't be read"},
		"broken intermediate":   {option: "--tls-cert", text: append(bytes.Clone(cert), encodeBlock("CERTIFICATE", nil)...), says: "certificate 2"},
		"large certificate":     {option: "--tls-cert", text: make([]byte, 5<<20), says: "more than 4 MiB"},
		"no key file":           {option: "--tls-key", says: "no such file"},
		"no key PEM":            {option: "--tls-key", text: []byte("hush"), says: "not PEM"},
		"certificate for key":   {option: "--tls-key", text: cert, says: "no private key"},
		"broken key":            {option: "--tls-key", text: encodeBlock("EC PRIVATE KEY", []byte("hush")), says: "can't be read"},
		"encrypted key":         {option: "--tls-key", text: encodeBlock("ENCRYPTED PRIVATE KEY", []byte("hush")), says: "encrypted"},
		"key of another":        {option: "--tls-key", text: otherKey, says: "does not fit the first certificate of " + good.Cert},
		"no CA file":            {option: "--tls-client-ca", says: "no such file"},
		"empty CA":              {option: "--tls-client-ca", text: []byte("\n"), says: "not PEM"},
		"key of a CA in its CA": {option: "--tls-client-ca", text: key, says: "a private key and no certificate"},
		"no CA":                 {option: "--tls-client-ca", text: cert, says: `certificate 1 of the file, of "CN=server", is not that of a CA`},
		"no CA behind a CA": {
			option: "--tls-client-ca", text: append(bytes.Clone(ca.text), cert...), says: `certificate 2 of the file, of "CN=server", is not that of a CA`,
		},
		"a CA that may not sign": {
			option: "--tls-client-ca", text: usage.text, says: `certificate 1 of the file, of "CN=ca without a usage", is not for signing certificates`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			files, path := good, filepath.Join(t.TempDir(), "wrong")
			if test.text != nil {
				require.NoError(t, os.WriteFile(path, test.text, 0o600))
			}
			switch test.option {
			case "--tls-cert":
				files.Cert = path
			case "--tls-key":
				files.Key = path
			default:
				files.ClientCA = path
			}
			_, err := tlsfiles.OpenServer(files, zap.NewNop(), time.Now)
			var refused *tlsfiles.FileError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, test.option, refused.Option)
			require.Equal(t, path, refused.Path)
			require.Contains(t, refused.Problem, test.says)
			require.Contains(t, refused.Want, "want a PEM file")
			require.NotContains(t, err.Error(), "hush")
		})
	}
	t.Run("a folder", func(t *testing.T) {
		_, err := tlsfiles.NewClientConfig(tlsfiles.ClientFiles{CA: dir})
		require.EqualError(t, err, "--tls-ca "+dir+": is a directory")
	})
	t.Run("no option", func(t *testing.T) {
		_, err := tlsfiles.ReadPair(good.Key, good.Key)
		require.EqualError(t, err, good.Key+": the file has a private key and no certificate")
	})
}
