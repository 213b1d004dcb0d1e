package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// browserClient makes the requests of a browser.
type browserClient struct {
	http.Client

	token string
}

// newBrowser makes a browser that trusts a CA, nil = none.
func newBrowser(t *testing.T, authority []byte) *browserClient {
	t.Helper()
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &browserClient{Client: http.Client{Transport: transport, Timeout: time.Minute}}
}

func (b *browserClient) readPage(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	status, text := b.sendRequest(t, request)
	require.Equal(t, http.StatusOK, status, text)
	return text
}

// callMethod calls a method as the page does. The address may be any of the page.
func (b *browserClient) callMethod(t *testing.T, page, method, body string) (status int, answer string) {
	t.Helper()
	origin := regexp.MustCompile(`^https?://[^/]+`).FindString(page)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, origin+"/graphd.v1."+method, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	if b.token != "" {
		request.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.sendRequest(t, request)
}

func (b *browserClient) sendRequest(t *testing.T, request *http.Request) (status int, text string) {
	t.Helper()
	response, err := b.Do(request)
	require.NoError(t, err)
	content, err := io.ReadAll(response.Body)
	require.NoError(t, errors.Join(err, response.Body.Close()))
	return response.StatusCode, string(content)
}

// openedPages are the addresses that were opened in a browser.
type openedPages struct {
	mu  sync.Mutex
	all []string
}

func (o *openedPages) openBrowser(url string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, url)
	return errors.New("no browser is there")
}

func (o *openedPages) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all
}

// runningCommand is a command that runs until it ends or is interrupted.
type runningCommand struct {
	out, complaints *lockedBuffer
	interrupt       func()
	ended           chan int
}

func (c commandRunner) launchCommand(t *testing.T, args ...string) *runningCommand {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &runningCommand{out: newLockedBuffer(), complaints: newLockedBuffer(), interrupt: cancel, ended: make(chan int, 1)}
	go func() { r.ended <- c.executeCommand(ctx, r.out, r.complaints, args) }()
	t.Cleanup(cancel)
	return r
}

// waitForEnd returns the exit code.
func (r *runningCommand) waitForEnd(t *testing.T) int {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case code := <-r.ended:
		return code
	case <-limit.C:
		require.FailNow(t, "the command goes on", "%s\n%s", r.out, r.complaints)
		return 0
	}
}

var pageLink = regexp.MustCompile(`(?m)^the page: (\S+)$`)

func TestDevServesThePage(t *testing.T) {
	taken, err := net.Listen("tcp", devPage)
	if err == nil { // otherwise another process has it
		defer func() { require.NoError(t, taken.Close()) }()
	}
	t.Chdir(t.TempDir())
	opened := &openedPages{}
	dev := commandRunner{isErrTerminal: true, openBrowser: opened.openBrowser}.launchCommand(t, "dev", "--listen", "127.0.0.1:0", "--store", "memory")
	page := dev.complaints.waitForMatch(t, pageLink)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/$`, page)
	require.NotContains(t, page, ":7780/")
	require.Contains(t, dev.complaints.String(), "Port 7780 is taken")
	browser := newBrowser(t, nil)
	require.Contains(t, browser.readPage(t, page), `<script type="module"`)
	status, answer := browser.callMethod(t, page, "RegistryService/ListGraphs", `{}`)
	require.Equal(t, http.StatusOK, status, answer)
	dev.interrupt()
	require.Equal(t, exit.CodeDone, dev.waitForEnd(t), dev.complaints)
	require.Equal(t, []string{page}, opened.list())
	require.NoFileExists(t, filepath.Join(".graphd", "dev.db"), "--store says where")
}

func TestDevServesThePageWhereAnOptionSays(t *testing.T) {
	t.Chdir(t.TempDir())
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
	}{
		"option":   {nil, []string{"--http", taken.Addr().String()}},
		"variable": {map[string]string{"GRAPHD_HTTP": taken.Addr().String()}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := commandRunner{env: c.env}.runCommand(t, append([]string{"dev", "--listen", "127.0.0.1:0"}, c.args...)...)
			require.Equal(t, exit.CodeError, r.code)
			require.Contains(t, r.err, "choose another address with --http")
		})
	}
	dev := commandRunner{}.launchCommand(t, "dev", "--listen", "127.0.0.1:0", "--http", "")
	dev.complaints.waitForMatch(t, regexp.MustCompile(`graphd inbox`))
	dev.interrupt()
	require.Equal(t, exit.CodeDone, dev.waitForEnd(t))
	require.NotContains(t, dev.complaints.String(), "the page")
}

// Other machines reach the page over TLS and with a token. The link with it is opened only by
// the person, because other users of the machine can read with what a process was started.
func TestDevForOtherBrowsersIsSecure(t *testing.T) {
	t.Chdir(t.TempDir())
	opened := &openedPages{}
	dev := commandRunner{isErrTerminal: true, openBrowser: opened.openBrowser}.launchCommand(t, "dev", "--listen", "127.0.0.1:0", "--http", "0.0.0.0:0")
	page := dev.complaints.waitForMatch(t, pageLink)
	token := dev.complaints.waitForMatch(t, regexp.MustCompile(`(?m)^  export GRAPHD_TOKEN=(gk_\S+)$`))
	require.Regexp(t, `^https://localhost:\d+/#t=`+token+`$`, page)
	other := dev.complaints.waitForMatch(t, regexp.MustCompile(`(?m)^on other machines: (\S+)$`))
	require.Regexp(t, `^https://\S+/#t=`+token+`$`, other)
	require.NotContains(t, dev.complaints.String(), "Other machines need", "gRPC serves this machine alone")
	authority, err := os.ReadFile(filepath.Join(".graphd", "certs", "ca.pem"))
	require.NoError(t, err)
	require.Contains(t, newBrowser(t, authority).readPage(t, page), `<script type="module"`)
	dev.interrupt()
	require.Equal(t, exit.CodeDone, dev.waitForEnd(t), dev.complaints)
	require.Empty(t, opened.list())
}

func TestAPageIsOpenedWhereAPersonSits(t *testing.T) {
	for name, test := range map[string]struct {
		env       map[string]string
		isPiped   bool
		noBrowser bool
		opens     bool
	}{
		"at a terminal":    {opens: true},
		"without terminal": {isPiped: true},
		"in CI":            {env: map[string]string{"CI": "true"}},
		"over SSH":         {env: map[string]string{"SSH_CONNECTION": "10.0.0.1 50000 10.0.0.2 22"}},
		"not wanted":       {noBrowser: true},
	} {
		t.Run(name, func(t *testing.T) {
			opened := &openedPages{}
			p := &program{
				isErrTerminal: !test.isPiped, openBrowser: opened.openBrowser, getenv: func(name string) string { return test.env[name] },
			}
			p.openPage("http://127.0.0.1:7780/", test.noBrowser)
			require.Equal(t, test.opens, len(opened.list()) == 1)
			p.openPage("", test.noBrowser)
			require.Equal(t, test.opens, len(opened.list()) == 1, "no page is served")
		})
	}
}

func TestTheBrowserOfASystem(t *testing.T) {
	const url = "http://127.0.0.1:7780/"
	for name, test := range map[string]struct {
		system string
		env    map[string]string
		want   []string
	}{
		"Windows":          {"windows", nil, []string{"rundll32", "url.dll,FileProtocolHandler", url}},
		"macOS":            {"darwin", nil, []string{"open", url}},
		"X11":              {"linux", map[string]string{"DISPLAY": ":0"}, []string{"xdg-open", url}},
		"Wayland":          {"freebsd", map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, []string{"xdg-open", url}},
		"no screen":        {"linux", nil, nil},
		"a chosen one":     {"linux", map[string]string{"BROWSER": "firefox --new-window:chromium"}, []string{"firefox", "--new-window", url}},
		"a chosen place":   {"darwin", map[string]string{"BROWSER": "chromium --app=%s"}, []string{"chromium", "--app=" + url}},
		"an empty choice":  {"linux", map[string]string{"BROWSER": " "}, []string{}},
		"a choice of none": {"linux", map[string]string{"BROWSER": "", "DISPLAY": ":0"}, []string{"xdg-open", url}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, browserCommand(test.system, func(name string) string { return test.env[name] }, url))
		})
	}
}

func TestTheBrowserIsStarted(t *testing.T) {
	dir := t.TempDir()
	script, seen := filepath.Join(dir, "browser"), filepath.Join(dir, "seen")
	text := `#!/bin/sh
cd "${0%/*}" && echo "$1" > part && mv part seen
while [ -e browser ] && [ ! -e closed ]; do sleep 0.1; done
`
	require.NoError(t, os.WriteFile(script, []byte(text), 0o700))
	t.Setenv("BROWSER", script)
	require.NoError(t, openBrowser("http://127.0.0.1:7780/")) // which does not wait until it is closed
	defer func() { require.NoError(t, os.WriteFile(filepath.Join(dir, "closed"), nil, 0o600)) }()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(seen)
		return err == nil && string(text) == "http://127.0.0.1:7780/\n"
	}, time.Minute, 10*time.Millisecond)
	t.Setenv("BROWSER", filepath.Join(dir, "missing"))
	require.Error(t, openBrowser("http://127.0.0.1:7780/"))
}
